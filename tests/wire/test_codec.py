import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough

from tandem_core.contract.records import Record, Tagged, Undecodable, UnknownRecord, decode, encode
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.log.entries import Entry, Trimmed
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import CopyEntry, FillLog, ReplicaReport
from tandem_runtime.protocol.types import Header, Lane, LaneId, Mark, Position, Seat, Span
from tandem_runtime.wire.frames import read_frame

LANE = LaneId("split-0.a", 3)
REPORT = ReplicaReport(1, "pair-0", 3, verified=True, fresh=False, have=4, calls=0)

POSITIONS: Any = Position

positions = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.text(),
    st.lists(st.none() | st.integers(0, 2**63) | st.text()).map(tuple),
)


@thorough(100)
@given(positions)
def test_positions_come_back_as_they_were(value: Position) -> None:
    assert decode(encode(value), POSITIONS) == value


def test_a_header_comes_back_with_its_kinds() -> None:
    mark = Mark(("part-7.json", 120), 5, rows=9)
    header = Header(4, 1, (Span(LANE, 1, 2),), (("p", mark),), (("s", -3),), 2, final=True)
    found = decode(encode(header), Header)
    assert found == header
    assert (type(found.spans[0].lane), type(found.marks[0][1])) == (LaneId, Mark)


def test_a_snapshot_comes_back_whole_and_can_go_on() -> None:
    log_state = LogState()
    log_state.lanes[LANE] = Lane("split-1.b")
    log_state.seats["pair-0"] = [Seat("v", 3, SeatState.VERIFIED), None]
    log_state.merges[0] = "merge-0.c"
    found = decode(encode(FillLog((1, 2), 7, log_state)), FillLog).log_state
    assert found == log_state
    found.seats["pair-0"][1] = Seat("w", 4)
    found.apply(Trimmed(3))
    assert found.trim == 3


def test_a_value_without_a_form_is_refused_when_written() -> None:
    with pytest.raises(TypeError):
        encode(object())


@pytest.mark.parametrize("form", [b"", b"\xc1", b"\xc7\x01\x63a", encode("x"), encode({"type": 3})])
def test_other_bytes_are_refused_when_read(form: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(form, ReplicaReport)


@thorough(100)
@given(st.binary(max_size=200))
def test_random_bytes_never_do_more_than_be_refused(form: bytes) -> None:
    with contextlib.suppress(Undecodable):
        read_frame(memoryview(form))


def test_an_incomplete_message_is_refused() -> None:
    whole = encode(REPORT)
    for length in range(len(whole)):
        with pytest.raises(Undecodable):
            decode(whole[:length], ReplicaReport)


# --- what later versions write ------------------------------------------------------------------


class LaterReport(Tagged, tag="ReplicaReport"):
    """A report as a later version has it: with two more fields, one of them in front."""

    reads: int
    sequence: int
    pair: str
    committed: int
    verified: bool
    fresh: bool
    have: int
    calls: int
    load: float = 0.0


class Recounted(Tagged):
    """A kind of log entry that a later version writes."""

    epoch: int


class LaterCopy(Tagged, tag="CopyEntry"):
    fence: tuple[int, int]
    number: int
    entry: Recounted
    published: int


def test_added_fields_are_skipped_by_older_readers() -> None:
    later = LaterReport(2, 1, "pair-0", 3, True, False, 4, 0, load=0.5)
    assert read_frame(memoryview(encode(later))) == REPORT


def test_fields_that_an_older_writer_lacks_take_their_default() -> None:
    class Grown(Record):
        split: str
        number: int
        zone: str = "anywhere"

    assert decode(encode(LANE), Grown) == Grown("split-0.a", 3, "anywhere")


def test_an_unknown_kind_of_message_is_refused_and_names_no_log_entry() -> None:
    with pytest.raises(Undecodable) as refused:
        read_frame(memoryview(encode(Recounted(4))))
    assert not isinstance(refused.value, UnknownRecord)


def test_an_unknown_kind_of_log_entry_is_told_apart() -> None:
    with pytest.raises(UnknownRecord):
        read_frame(memoryview(encode(LaterCopy((1, 0), 4, Recounted(4), 3))))


@pytest.mark.parametrize("entry", [Trimmed(4), Header(1, 1, (), (), (), 0)])
def test_known_kinds_of_log_entries_are_read(entry: Entry) -> None:
    copy = CopyEntry((1, 0), 4, entry, 3)
    assert read_frame(memoryview(encode(copy))) == copy
