"""The book: what each entry of the header log changes, and what is forgotten when."""

import pytest
from tests.protocol.builders import (
    A1,
    A2,
    B1,
    G1,
    G2,
    generation,
    header,
    note,
    running_state,
    seated,
    state_of,
    told,
)

from tandem_core.model.lifecycle import IllegalMove
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    Completed,
    DataLost,
    Entry,
    GenerationGivenUp,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    LapseCalled,
    Lapsed,
    LapseDropped,
    MergeChosen,
    PairsRetired,
    PartitionOwned,
    RetirementCalled,
    Seated,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.log_state import REMEMBERED, LogState
from tandem_runtime.protocol.states import LaneState, PartitionState
from tandem_runtime.protocol.types import BEGINNING_OF_TIME, Lane, LaneId, Mark, Seat, Span


def seat(log_state: LogState, number: int, pair: str = "x") -> Seat:
    found = log_state.seats[pair][number]
    assert found is not None
    return found


def test_empty_log_state_has_initial_values() -> None:  # (g) epochs start at 1
    log_state = LogState()
    assert (log_state.epoch, log_state.generation, log_state.first_of_generation) == (0, 0, 1)
    assert (
        log_state.trim,
        log_state.delivered,
        log_state.calls,
        log_state.retiring,
        log_state.intent_version,
    ) == (0,) * 5
    assert not (log_state.final or log_state.raised or log_state.completed)
    assert not (
        log_state.lanes
        or log_state.seats
        or log_state.headers
        or log_state.generations
        or log_state.lost
    )


# --- headers ----------------------------------------------------------------------------------


def test_header_updates_epoch_marks_watermarks_and_reaches() -> None:  # [3]
    cut = header(1, Span(A1, 1, 3), marks={"p": Mark(7, 50)}, watermarks={"s": 40}, delivered=0)
    log_state = running_state(cut)
    assert (log_state.epoch, log_state.headers, log_state.generation) == (1, {1: cut}, 1)
    assert (log_state.marks, log_state.watermarks) == ({"p": Mark(7, 50)}, {"s": 40})
    assert log_state.lanes[A1].reach == 3


def test_delivered_never_falls() -> None:
    log_state = running_state(header(1), header(2, delivered=1), header(3, delivered=0))
    assert log_state.delivered == 1


def test_header_sets_raised_only_if_some_watermark_grew() -> None:
    log_state = running_state()
    low = {"s": BEGINNING_OF_TIME, "t": BEGINNING_OF_TIME}
    raised = []
    for epoch, at in ((1, BEGINNING_OF_TIME), (2, 5), (3, 5), (4, 6)):
        log_state.apply(header(epoch, watermarks={**low, "t": at}))
        raised.append(log_state.raised)
    assert raised == [False, True, False, True]


def test_final_header_is_remembered() -> None:
    assert running_state(header(1, final=True)).final
    assert not running_state(header(1)).final


def test_new_generation_begins_with_its_first_header() -> None:  # [7]
    log_state = running_state(header(1), GenerationKnown(G2, 2), header(2), RetirementCalled())
    assert (log_state.generation, log_state.first_of_generation, log_state.retiring) == (1, 1, 1)
    log_state.apply(header(3, generation=2))
    assert (log_state.generation, log_state.first_of_generation, log_state.retiring) == (2, 3, 0)
    log_state.apply(header(4, generation=2))
    assert log_state.first_of_generation == 3


def test_abandoned_generations_are_remembered_until_higher_one_is_cut() -> None:  # [7]
    third = generation(3, "w")
    log_state = running_state(GenerationKnown(G2, 2), GenerationGivenUp(2, 3))
    remembered = []
    for entry in (header(1), GenerationKnown(third, 4), header(2, generation=3)):
        log_state.apply(entry)
        remembered.append(log_state.given_up)
    assert remembered == [(2,), (2,), ()]


# --- lanes ------------------------------------------------------------------------------------


def test_opened_lane_records_its_buddy_and_number() -> None:
    log_state = state_of(LaneOpened(A1, "b"), LaneOpened(B1, None))
    assert log_state.lanes == {A1: Lane("b"), B1: Lane(None)}
    assert list(log_state.lanes) == [A1, B1]
    assert log_state.lane_numbers == {"a": 1, "b": 1}
    fresh = log_state.lanes[A1]
    assert (fresh.view, fresh.state, fresh.reach, fresh.trimmed) == (1, LaneState.OPEN, 0, 0)


def test_remembered_lane_numbers_are_bounded() -> None:  # [12]
    log_state = LogState()
    for number in range(REMEMBERED + 1):
        log_state.apply(LaneOpened(LaneId(f"split-{number}", 1), None))
        log_state.apply(LaneOpened(LaneId("split-0", number + 2), None))
    assert len(log_state.lane_numbers) == REMEMBERED
    assert log_state.lane_numbers["split-0"] == REMEMBERED + 2
    assert "split-1" not in log_state.lane_numbers
    assert f"split-{REMEMBERED}" in log_state.lane_numbers


def test_buddy_change_increments_view() -> None:
    log_state = state_of(LaneOpened(A1, "b"), BuddyChanged(A1, 2, None))
    assert log_state.lanes[A1] == Lane(None, view=2)


def test_closing_is_cancelled_or_ends_with_last_chunk() -> None:
    log_state = state_of(LaneOpened(A1, "b"), PartitionOwned("p", A1), LaneClosing(A1))
    assert log_state.lanes[A1].state == LaneState.CLOSING
    log_state.apply(LaneResumed(A1))
    assert log_state.lanes[A1].state == LaneState.OPEN
    log_state.apply(LaneClosing(A1))
    notes = ((1, note(5)),)
    log_state.apply(LaneClosed(A1, 1, notes))
    lane = log_state.lanes[A1]
    assert (lane.state, lane.last, lane.notes, lane.buddy) == (LaneState.CLOSED, 1, notes, "b")


def test_closed_lane_is_forgotten_once_trimmed_and_its_partitions_moved() -> None:  # [12]
    log_state = running_state(header(1, Span(A1, 1, 2)), LaneClosing(A1), LaneClosed(A1, 2, ()))
    log_state.apply(PartitionOwned("p", B1))
    assert A1 in log_state.lanes
    log_state.apply(Trimmed(1))
    assert A1 not in log_state.lanes


def test_closed_and_trimmed_lane_stays_while_it_owns_partition() -> None:  # [9]
    log_state = running_state(header(1, Span(A1, 1, 2)), Trimmed(1), LaneClosed(A1, 2, ()))
    assert A1 in log_state.lanes
    log_state.apply(PartitionOwned("p", B1))
    assert A1 not in log_state.lanes


def test_empty_closed_lane_is_forgotten_at_once() -> None:
    assert state_of(LaneOpened(A1, "b"), LaneClosed(A1, 0, ())).lanes == {}
    assert A1 in state_of(LaneOpened(A1, "b")).lanes


def test_assignment_counts_tenures_and_reactivates_released_partition() -> None:  # [9]
    log_state = running_state(
        header(
            1,
            marks={"p": Mark(3, 9, PartitionState.RELEASED), "q": Mark(1, 2, PartitionState.IDLE)},
        )
    )
    assert log_state.tenures == {"p": 1}
    log_state.apply(PartitionOwned("p", B1))
    log_state.apply(PartitionOwned("q", B1))
    assert log_state.owners == {"p": B1, "q": B1}
    assert log_state.tenures == {"p": 2, "q": 1}
    assert log_state.marks == {
        "p": Mark(3, 9, PartitionState.ACTIVE),
        "q": Mark(1, 2, PartitionState.IDLE),
    }


def test_lane_buddies_lists_lanes_kept_by_split() -> None:
    log_state = state_of(LaneOpened(A1, "b"), LaneOpened(B1, "a"), LaneOpened(A2, "b"))
    assert log_state.lane_buddies("b") == [A1, A2]


# --- seats ------------------------------------------------------------------------------------


def test_seated_joiner_holds_current_trim_point() -> None:  # [5] trim-without-joiner
    log_state = running_state(header(1), header(2), Trimmed(2), Seated("x", 1, "new"))
    assert seat(log_state, 1) == Seat("new", 2)
    assert seat(log_state, 0).volume == "x0"


def test_verified_holder_counts_from_its_epoch() -> None:
    log_state = state_of(GenerationKnown(G1, 1), Seated("x", 0, "v"), Verified("x", 0, "v", 5))
    assert seat(log_state, 0) == Seat("v", 5, SeatState.VERIFIED)
    assert log_state.seats["x"][1] is None


def test_vacating_empties_seat_and_cancels_lapse_call_of_twin() -> None:  # [5]
    log_state = running_state(LapseCalled("x", 1, "x1"))
    assert seat(log_state, 1).call == 1
    log_state.apply(Vacated("x", 0, "x0", "gone"))
    assert log_state.seats["x"][0] is None
    assert seat(log_state, 1) == Seat("x1", 0, SeatState.VERIFIED)
    log_state.apply(Vacated("x", 1, "x1", "gone"))
    assert log_state.seats["x"] == [None, None]


def test_lapse_calls_are_numbered_answered_or_dropped() -> None:  # [5]
    log_state = running_state(LapseCalled("x", 0, "x0"))
    assert (seat(log_state, 0), log_state.calls) == (Seat("x0", 0, SeatState.VERIFIED_CALLED, 1), 1)
    log_state.apply(LapseDropped("x", 0, "x0"))
    assert seat(log_state, 0) == Seat("x0", 0, SeatState.VERIFIED)
    log_state.apply(LapseCalled("x", 0, "x0"))
    assert (seat(log_state, 0).call, log_state.calls) == (2, 2)
    log_state.apply(Lapsed("x", 0, "x0"))
    assert seat(log_state, 0) == Seat("x0", 0, SeatState.LAPSED)
    assert not seat(log_state, 1).lapsed


@pytest.mark.parametrize("record", [LapseCalled, LapseDropped, Lapsed])
def test_seat_record_for_volume_without_that_seat_is_illegal(
    record: type[LapseCalled | LapseDropped | Lapsed],
) -> None:  # shared-name
    for log_state in (running_state(), state_of(GenerationKnown(G1, 1))):
        with pytest.raises(IllegalMove):
            log_state.apply(record("x", 0, "other"))


def test_seat_of_finds_seat_of_volume() -> None:
    log_state = running_state()
    assert log_state.seat_of("x1") == ("x", 1, Seat("x1", 0, SeatState.VERIFIED))
    assert log_state.seat_of("nobody") is None


# --- the trim point ----------------------------------------------------------------------------


def test_trimming_drops_headers_and_trims_lanes() -> None:  # [5] [12]
    log_state = running_state(
        header(1, Span(A1, 1, 2)), header(2, Span(A1, 3, 5)), header(3, Span(A1, 6, 6)), Trimmed(2)
    )
    assert (log_state.trim, list(log_state.headers), log_state.lanes[A1].trimmed) == (2, [3], 5)


def test_trimming_tolerates_missing_header_after_rebuild() -> None:  # (i)
    log_state = running_state(header(1), header(2, Span(A1, 1, 1)))
    del log_state.headers[1]
    log_state.apply(Trimmed(2))
    assert (log_state.trim, log_state.lanes[A1].trimmed) == (2, 1)


def test_old_generation_is_forgotten_when_unnamed_and_retired() -> None:  # [12]
    log_state = running_state(GenerationKnown(G2, 2), header(1), header(2, generation=2))
    log_state.apply(Trimmed(1))
    assert set(log_state.generations) == {1, 2}
    log_state.apply(PairsRetired(("x",)))
    log_state.apply(header(3, generation=2))
    log_state.apply(Trimmed(2))
    assert set(log_state.generations) == set(log_state.names) == {2}


def test_generation_named_by_kept_headers_stays() -> None:  # [12]
    log_state = running_state(
        GenerationKnown(G2, 2), header(1), header(2), header(3, generation=2), PairsRetired(("x",))
    )
    log_state.apply(Trimmed(1))
    assert set(log_state.generations) == {1, 2}
    log_state.apply(Trimmed(2))
    assert set(log_state.generations) == {2}


def test_fully_carried_over_generation_is_forgotten_without_retirement() -> None:
    wider = generation(2, "x", "y")
    log_state = running_state(
        GenerationKnown(wider, 2), header(1), header(2, generation=2), Trimmed(1)
    )
    assert set(log_state.generations) == {2}


def test_trimming_keeps_future_generations() -> None:
    log_state = running_state(GenerationKnown(G2, 2), header(1), Trimmed(1))
    assert set(log_state.generations) == {1, 2}


# --- generations --------------------------------------------------------------------------------


def test_known_generation_adds_empty_seats_and_keeps_taken_ones() -> None:
    log_state = running_state(GenerationKnown(G2, 4))
    assert log_state.seats["y"] == log_state.seats["z"] == [None, None]
    assert seat(log_state, 0).volume == "x0"
    assert log_state.intent_version == 4
    log_state.apply(GenerationKnown(generation(3, "x"), 2))
    assert log_state.intent_version == 4
    assert seat(log_state, 0).volume == "x0"


def test_abandoned_generation_drops_only_its_own_pairs() -> None:
    wider = generation(2, "x", "y")
    log_state = running_state(GenerationKnown(wider, 2), GenerationGivenUp(2, 3))
    assert (log_state.generations, log_state.names) == ({1: G1}, {1: ("x",)})
    assert (log_state.given_up, log_state.intent_version, log_state.retired) == ((2,), 3, ("y",))
    assert set(log_state.seats) == {"x"}
    log_state.apply(GenerationKnown(generation(3, "w"), 5))
    log_state.apply(GenerationGivenUp(3, 4))
    assert (log_state.intent_version, log_state.given_up) == (5, (2, 3))


def test_retirement_call_precedes_retirement() -> None:  # early-retire
    log_state = running_state(GenerationKnown(G2, 2), header(1, generation=2), RetirementCalled())
    assert (log_state.calls, log_state.retiring) == (1, 1)
    log_state.apply(PairsRetired(("x",)))
    assert (log_state.retiring, log_state.retired) == (0, ("x",))
    assert "x" not in log_state.seats
    assert log_state.living_pairs() == ["y", "z"]


def test_retired_pair_names_are_bounded_to_newest() -> None:  # [12]
    log_state = LogState()
    for number in range(REMEMBERED + 3):
        log_state.apply(PairsRetired((f"pair-{number}",)))
    assert len(log_state.retired) == REMEMBERED
    assert log_state.retired[0] == "pair-3"


def test_living_pairs_are_unique_in_order_of_generations() -> None:
    log_state = state_of(GenerationKnown(generation(2, "y", "x"), 1))
    log_state.know(G1)
    assert log_state.living_pairs() == ["x", "y"]
    assert log_state.pairs(2) == ("y", "x")


# --- the rest ---------------------------------------------------------------------------------


def test_merges_losses_and_completion_are_recorded() -> None:
    log_state = state_of(MergeChosen(0, "m0"), MergeChosen(1, "m1"), MergeChosen(0, "m2"))
    assert log_state.merges == {0: "m2", 1: "m1"}
    log_state.apply(DataLost("lane a/1", "why"))
    assert log_state.lost == {"lane a/1": "why"}
    log_state.apply(Completed())
    assert log_state.completed


def test_copy_is_not_changed_by_later_entries() -> None:  # [6]
    log_state = running_state(
        header(1, Span(A1, 1, 1), marks={"p": Mark(1, 1)}), MergeChosen(0, "m")
    )
    before, copy = told(log_state.copy()), log_state.copy()
    assert told(copy) == told(log_state)
    later: list[Entry] = [
        header(2, Span(A1, 2, 2), marks={"p": Mark(2, 2)}, watermarks={"s": 3}),
        LaneOpened(B1, "a"),
        PartitionOwned("p", B1),
        Vacated("x", 0, "x0", "gone"),
        GenerationKnown(G2, 2),
        *seated("y", "y0"),
        MergeChosen(0, "n"),
        DataLost("x", "why"),
        RetirementCalled(),
        Trimmed(1),
        Completed(),
    ]
    for entry in later:
        log_state.apply(entry)
    assert told(copy) == before


# --- history --------------------------------------------------------------------------------------


def test_digests_of_kept_headers_trim_point_and_last_header_are_known() -> None:  # (i)
    log_state = running_state()
    assert (log_state.digest_of(0), log_state.digest_of(1)) == ("", None)
    for epoch in (1, 2, 3):
        log_state.apply(header(epoch))
    log_state.apply(Trimmed(1))
    log_state.apply(Trimmed(2))
    known = [log_state.digest_of(epoch) for epoch in (1, 2, 3, 4)]
    assert known == [None, header(2).digest, header(3).digest, None]
    log_state.apply(Trimmed(3))
    assert log_state.headers == {}
    assert log_state.digest == log_state.digest_of(3) == header(3).digest
