"""Histories of headers: digests made at birth, and the chain that leads to a header."""

import pytest
from tests.protocol.builders import A1, B1, header

from tandem_runtime.protocol.log.history import chain_to, digests_on, newest, with_digest
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import END_OF_TIME, Header, Mark, Span

WHOLE = header(
    3, Span(A1, 1, 2), marks={"p": Mark(("file", 4), 7)}, watermarks={"s": 5}, delivered=1
)


def test_digest_of_header_is_deterministic() -> None:
    assert with_digest(WHOLE) == with_digest(WHOLE.replace(digest="something else"))
    assert with_digest(WHOLE).digest == "d6943b87779590457e601d172073c87f"


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 4},
        {"generation": 2},
        {"spans": (Span(A1, 1, 3),)},
        {"spans": (Span(B1, 1, 2),)},
        {"marks": (("q", Mark(("file", 4), 7)),)},
        {"marks": (("p", Mark(("file", 5), 7)),)},
        {"marks": (("p", Mark(("file", 4), 8)),)},
        {"marks": (("p", Mark(("file", 4), 7, PartitionState.IDLE)),)},
        {"marks": (("p", Mark(("file", 4), 7, rows=1)),)},
        {"marks": (("p", Mark(("file", 4), 7, rejected=1)),)},
        {"watermarks": (("s", END_OF_TIME),)},
        {"delivered": 2},
        {"final": True},
        {"term": 2},
        {"previous": "another"},
    ],
)
def test_digest_covers_every_header_field(change: dict[str, object]) -> None:
    changed: Header = WHOLE.replace(**change)
    assert with_digest(changed).digest != with_digest(WHOLE).digest


def test_newest_is_last_header_of_latest_term() -> None:  # (i)
    old = [header(epoch, history="a") for epoch in (1, 2, 3)]
    new = [header(epoch, history="b", term=2) for epoch in (1, 2)]
    assert newest([*new, *old]) == newest([*old, *new]) == new[-1]
    assert newest([]) is None


def test_chain_follows_digests_back_to_first_gap() -> None:  # (i)
    known = [header(epoch) for epoch in (1, 2, 4, 5)]
    assert chain_to(header(2), known) == {1: header(1), 2: header(2)}
    assert chain_to(header(5), known) == {4: header(4), 5: header(5)}


def test_header_of_another_history_is_not_on_chain() -> None:  # (i) rebuild-by-number
    other = header(1, history="other")
    assert chain_to(header(2), [header(2), other]) == {2: header(2)}
    assert chain_to(header(2), [other, header(1), header(2), other]) == {
        1: header(1),
        2: header(2),
    }


def test_digests_on_chain_include_predecessor_of_first_header() -> None:  # (i)
    known = {3: header(3), 4: header(4)}
    assert digests_on(known) == {e: header(e).digest for e in (2, 3, 4)}
    assert digests_on({1: header(1)}) == {0: "", 1: header(1).digest}
