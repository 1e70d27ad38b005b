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
def test_positions_round_trip(value: Position) -> None:
    assert decode(encode(value), POSITIONS) == value


def test_header_round_trips_with_its_types() -> None:
    mark = Mark(("part-7.json", 120), 5, rows=9)
    header = Header(4, 1, (Span(LANE, 1, 2),), (("p", mark),), (("s", -3),), 2, final=True)
    found = decode(encode(header), Header)
    assert found == header
    assert (type(found.spans[0].lane), type(found.marks[0][1])) == (LaneId, Mark)


def test_decoded_snapshot_is_complete_and_mutable() -> None:
    log_state = LogState()
    log_state.lanes[LANE] = Lane("split-1.b")
    log_state.seats["pair-0"] = [Seat("v", 3, SeatState.VERIFIED), None]
    log_state.merges[0] = "merge-0.c"
    found = decode(encode(FillLog((1, 2), 7, log_state)), FillLog).log_state
    assert found == log_state
    found.seats["pair-0"][1] = Seat("w", 4)
    found.apply(Trimmed(3))
    assert found.trim == 3


def test_unsupported_value_is_refused_on_encode() -> None:
    with pytest.raises(TypeError):
        encode(object())


@pytest.mark.parametrize("form", [b"", b"\xc1", b"\xc7\x01\x63a", encode("x"), encode({"type": 3})])
def test_foreign_bytes_are_refused_on_decode(form: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(form, ReplicaReport)


@thorough(100)
@given(st.binary(max_size=200))
def test_random_bytes_raise_only_undecodable(form: bytes) -> None:
    with contextlib.suppress(Undecodable):
        read_frame(memoryview(form))


def test_truncated_message_is_refused() -> None:
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


def test_older_readers_skip_added_fields() -> None:
    later = LaterReport(2, 1, "pair-0", 3, True, False, 4, 0, load=0.5)
    assert read_frame(memoryview(encode(later))) == REPORT


def test_fields_missing_from_older_writer_take_their_default() -> None:
    class Grown(Record):
        split: str
        number: int
        zone: str = "anywhere"

    assert decode(encode(LANE), Grown) == Grown("split-0.a", 3, "anywhere")


def test_unknown_message_kind_is_undecodable_but_not_unknown_record() -> None:
    with pytest.raises(Undecodable) as refused:
        read_frame(memoryview(encode(Recounted(4))))
    assert not isinstance(refused.value, UnknownRecord)


def test_unknown_log_entry_kind_raises_unknown_record() -> None:
    with pytest.raises(UnknownRecord):
        read_frame(memoryview(encode(LaterCopy((1, 0), 4, Recounted(4), 3))))


@pytest.mark.parametrize("entry", [Trimmed(4), Header(1, 1, (), (), (), 0)])
def test_known_log_entry_kinds_are_decoded(entry: Entry) -> None:
    copy = CopyEntry((1, 0), 4, entry, 3)
    assert read_frame(memoryview(encode(copy))) == copy
