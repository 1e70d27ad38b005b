"""The state machines: their tables, and that the book makes no move that is not in them."""

from enum import StrEnum
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.builders import A1, B1, G1, PROPERTY, header, running_state
from tests.protocol.diagrams import DRAWN, diagram, drawn

from tandem_core.contract.records import encode
from tandem_core.model.lifecycle import IllegalMove, Lifecycle, Transition
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    Entry,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    LapseCalled,
    Lapsed,
    LapseDropped,
    PartitionOwned,
    Seated,
    SlotEnded,
    SlotOpened,
    SlotSealed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.log.replicated_log import OwnedLog
from tandem_runtime.protocol.states import (
    LANE,
    SEAT,
    SLOT,
    LaneState,
    PartitionState,
    ReplicaLife,
    SlotState,
)
from tandem_runtime.protocol.types import Lane, Mark, Seat, Slot, Span

MACHINES = pytest.mark.parametrize("lifecycle", DRAWN, ids=lambda each: each.machine)


@MACHINES
def test_documented_diagram_matches_table(lifecycle: Lifecycle[Any]) -> None:
    assert drawn(lifecycle.machine) == diagram(lifecycle), "run python -m tests.protocol.diagrams"


def test_replica_copies_until_it_has_state_and_while_skipping() -> None:
    assert {life for life in ReplicaLife if life.copies} == {
        ReplicaLife.WAITING,
        ReplicaLife.COPYING,
        ReplicaLife.INSTALLING,
        ReplicaLife.SKIPPING,
        ReplicaLife.REPLACING,
    }


@MACHINES
def test_every_state_is_reachable(lifecycle: Lifecycle[Any]) -> None:
    reached: set[StrEnum | None] = {None}
    while more := {m.after for m in lifecycle.moves if m.before in reached} - reached:
        reached |= more
    (states,) = {type(move.after) for move in lifecycle.moves if move.after is not None}
    assert reached - {None} == {*cast("type[StrEnum]", states)}


@pytest.mark.parametrize("second", [LaneState.CLOSING, LaneState.CLOSED])
def test_second_transition_for_same_cause_and_state_is_refused(second: LaneState) -> None:
    first = Transition(LaneState.OPEN, LaneState.CLOSING, "LaneClosing")
    with pytest.raises(ValueError, match="LaneClosing"):
        Lifecycle("lane", first, Transition(LaneState.OPEN, second, "LaneClosing"))
    Lifecycle("lane", first, Transition(LaneState.CLOSED, second, "LaneClosing"))


@MACHINES
def test_unlisted_moves_are_refused(lifecycle: Lifecycle[Any]) -> None:
    states = {state for move in lifecycle.moves for state in (move.before, move.after)} | {None}
    legal = {(move.before, move.after) for move in lifecycle.moves}
    for before in states:
        for after in states:
            if (before, after) in legal:
                lifecycle.check(before, after, "it")
            else:
                with pytest.raises(IllegalMove, match="it"):
                    lifecycle.check(before, after, "it")


# --- the book ---------------------------------------------------------------------------------


LANES = st.sampled_from((A1, B1))
SEATS = st.integers(0, 1)
VOLUMES = st.sampled_from(("v", "w"))
SLOTS = st.integers(0, 2)
LANE_RECORDS = st.one_of(
    st.builds(LaneOpened, LANES, st.just("b")),
    st.builds(BuddyChanged, LANES, st.just(2), st.just("c")),
    st.builds(LaneClosing, LANES),
    st.builds(LaneResumed, LANES),
    st.builds(LaneClosed, LANES, st.just(4), st.just(())),
)
SEAT_RECORDS = st.one_of(
    st.builds(Seated, st.just("x"), SEATS, VOLUMES),
    st.builds(Verified, st.just("x"), SEATS, VOLUMES, st.just(0)),
    st.builds(Vacated, st.just("x"), SEATS, VOLUMES, st.just("gone")),
    *(
        st.builds(kind, st.just("x"), SEATS, VOLUMES)
        for kind in (LapseCalled, LapseDropped, Lapsed)
    ),
)
SLOT_RECORDS = st.one_of(
    st.builds(SlotOpened, SLOTS, st.just(1), st.just(0)),
    st.builds(SlotEnded, SLOTS, st.just(1), st.just(0)),
    st.builds(SlotSealed, SLOTS),
)


def lane_state(log_state: LogState, record: Any) -> StrEnum | None:
    lane: Lane | None = log_state.lanes.get(record.lane)
    return None if lane is None else lane.state


def seat_state(log_state: LogState, record: Any) -> StrEnum | None:
    seat: Seat | None = log_state.seats["x"][record.seat]
    if seat is None or (seat.volume != record.volume and not isinstance(record, Seated)):
        return None
    return seat.state


def slot_state(log_state: LogState, record: Any) -> StrEnum | None:
    slot: Slot | None = log_state.slots.get(record.slot)
    if slot is not None:
        return slot.state
    return SlotState.SEALED if record.slot < log_state.next_slot else None


def taken(log_state: LogState, entry: Entry) -> bool:
    """Whether a book takes an entry; if it does not, nothing has changed."""
    before = encode(log_state)
    try:
        log_state.apply(entry)
    except IllegalMove:
        assert encode(log_state) == before
        return False
    return True


@PROPERTY
@given(st.lists(LANE_RECORDS | SEAT_RECORDS | SLOT_RECORDS, max_size=60))
def test_log_state_makes_only_legal_moves_along_any_records(records: list[Any]) -> None:
    log_state = LogState()
    log_state.apply(GenerationKnown(G1, 1))
    for record in records:
        if hasattr(record, "lane"):
            table, state_of = LANE.moves, lane_state
        elif hasattr(record, "slot"):
            table, state_of = SLOT.moves, slot_state  # type: ignore[assignment]
        else:
            table, state_of = SEAT.moves, seat_state  # type: ignore[assignment]
        before = state_of(log_state, record)
        cause = type(record).__name__
        legal = {move.after for move in table if (move.cause, move.before) == (cause, before)}
        assert taken(log_state, record) is bool(legal)
        if legal:
            assert state_of(log_state, record) in legal


@pytest.mark.parametrize("last", [PartitionState.RELEASED, PartitionState.ENDED])
@pytest.mark.parametrize("state", PartitionState)
def test_released_or_ended_partition_accepts_no_other_state(
    last: PartitionState, state: PartitionState
) -> None:
    log_state = running_state(header(1, Span(A1, 1, 1), marks={"p": Mark(1, 1, last)}))
    later = header(2, Span(A1, 2, 2), marks={"p": Mark(2, 2, state)})
    assert taken(log_state, later) is (state is last)


def test_released_partition_can_be_reassigned_and_ended_one_cannot() -> None:  # [9]
    for last, owned in ((PartitionState.RELEASED, True), (PartitionState.ENDED, False)):
        log_state = running_state(header(1, Span(A1, 1, 1), marks={"p": Mark(1, 1, last)}))
        assert taken(log_state, PartitionOwned("p", A1)) is owned


def test_log_with_follower_refuses_second_fill() -> None:  # (c)
    log = OwnedLog(0, 0, 1, 0)
    log.fill("b", 0)
    with pytest.raises(IllegalMove):
        log.fill("c", 0)
    assert log.follower == "b"
