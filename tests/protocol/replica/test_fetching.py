"""How a replica comes by the rows of its next epoch."""

from tests.protocol.builders import A1, B1, header, sent

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.messages.results import Fetch, FetchAnswer, Fetched
from tandem_runtime.protocol.replica.fetching import Fetching
from tandem_runtime.protocol.types import Span

SHARE = Share("digest", "x")
OF_A, OF_B = Span(A1, 1, 1), Span(B1, 1, 2)
EPOCH = header(1, OF_A, OF_B)


def came(span: Span, answer: FetchAnswer, rows: object = None) -> Fetched:
    return Fetched(span, answer, payload=rows)


def test_rows_are_returned_in_header_order_and_not_kept() -> None:
    found = Fetching(0)
    found.came(came(OF_B, FetchAnswer.NO_ROWS))
    assert found.missing(EPOCH) == [OF_A]
    found.came(came(OF_A, FetchAnswer.ROWS, ("rows",)))
    assert found.hand_over(EPOCH) == (("rows",), ())
    assert found.missing(EPOCH) == [OF_A, OF_B]


def test_each_fetch_alternates_between_copies() -> None:
    found = Fetching(0)
    found.lanes[A1] = ("a", "b")
    asked = [to for _ in range(3) for to, _ in sent(Fetch, found.ask([OF_A], SHARE, 0))]
    assert asked == ["a", "b", "a"]
    found.clear()
    assert [to for to, _ in sent(Fetch, found.ask([OF_A], SHARE, 0))] == ["a"]
