import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough

from tandem_runtime.protocol.book import Book, Lane, Seat
from tandem_runtime.protocol.data import Header, Intent, LaneId, Mark, Span
from tandem_runtime.protocol.messages import FillLog, ReplicaReport
from tandem_runtime.wire.codec import Undecodable, decode, encode

LANE = LaneId("split-0.a", 3)

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(0, 99), inner)
    ),
)


@thorough(100)
@given(plain)
def test_plain_values_come_back_as_they_were(value: object) -> None:
    assert decode(encode(value)) == value


def test_a_header_comes_back_with_its_kinds() -> None:
    mark = Mark(("part-7.json", 120), 5, rows=9)
    header = Header(4, 1, (Span(LANE, 1, 2),), (("p", mark),), (("s", -3),), 2, final=True)
    found = decode(encode(header))
    assert found == header
    assert (type(found), type(found.spans[0].lane), type(found.marks[0][1])) == (
        Header,
        LaneId,
        Mark,
    )


def test_a_book_comes_back_whole_and_can_go_on() -> None:
    book = Book()
    book.lanes[LANE] = Lane("split-1.b")
    book.seats["pair-0"] = [Seat("v", 3, verified=True), None]
    book.merges[0] = "merge-0.c"
    found = decode(encode(FillLog((1, 2), 7, book))).book
    assert {slot: getattr(found, slot) for slot in Book.__slots__} == {
        slot: getattr(book, slot) for slot in Book.__slots__
    }
    found.seats["pair-0"][1] = Seat("w", 4)


def test_an_unknown_kind_of_value_is_refused_when_written() -> None:
    with pytest.raises(TypeError):
        encode(object())


@pytest.mark.parametrize("form", [b"", b"\xc1", b"\xc7\x01\x63a", encode("x")[:-1] + b"\xff"])
def test_other_bytes_are_refused_when_read(form: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(form)


@thorough(100)
@given(st.binary(max_size=200))
def test_random_bytes_never_do_more_than_be_refused(form: bytes) -> None:
    with contextlib.suppress(Undecodable):
        decode(form)


def test_an_incomplete_message_is_refused() -> None:
    whole = encode(ReplicaReport(1, "pair-0", 3, verified=True, fresh=False, have=4, calls=0))
    for length in range(len(whole)):
        with pytest.raises(Undecodable):
            decode(whole[:length])


def test_an_intent_with_bytes_of_a_routing_function_comes_back() -> None:
    intent = Intent(3, (), 1, (), primaries=(("pair-0", "v"),))
    assert decode(encode(intent)) == intent
