"""What the lead decides about seats and merges: who joins, counts, lapses, and the trim."""

import pytest
from tests.protocol.builders import (
    A1,
    G1,
    G2,
    S,
    book_of,
    generation,
    header,
    hearsay,
    intent,
    joiner_report,
    lane_report,
    merge_report,
    record,
    replica_report,
    running_book,
    seated,
    split_report,
)

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import Heard, Hearsay
from tandem_runtime.protocol.lead.seat_rules import (
    a_lane_is_full,
    answered_calls,
    build_epoch,
    build_sources,
    calls_to_lapse,
    is_shadow,
    lost_pairs,
    may_lapse,
    merge_choices,
    seatings,
    sinks_ahead,
    trim_point,
    vacancies,
    verifications,
)
from tandem_runtime.protocol.log.entries import (
    DataLost,
    Entry,
    GenerationKnown,
    LapseCalled,
    Lapsed,
    LapseDropped,
    MergeChosen,
    PairsRetired,
    Seated,
    SlotEnded,
    SlotOpened,
    SlotSealed,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.types import Seat

LATE = S.silence
FULL = {"a": split_report(lane_report(A1, over_bound=True, stuck=True))}
CROWDED = {"a": split_report(lane_report(A1, over_bound=True))}
"""Lanes that are full without anything forgotten: for long, and for a while."""


def replica(hear: Hearsay, volume: str, at: int, committed: int = 0) -> None:
    hear.replicas[volume] = Heard(1, at, replica_report(committed))


def joiner(hear: Hearsay, volume: str, at: int = LATE, pair: str = "x") -> None:
    hear.replicas[volume] = Heard(1, at, joiner_report(pair))


# --- who gets a seat -----------------------------------------------------------------------------


def test_joiners_take_empty_seats_one_of_a_pair_at_a_time() -> None:
    book = book_of(GenerationKnown(G1, 1))
    hear = hearsay()
    joiner(hear, "n0")
    joiner(hear, "n1")
    assert list(seatings(book, hear, LATE)) == [Seated("x", 0, "n0")]
    book.apply(Seated("x", 0, "n0"))
    assert list(seatings(book, hear, LATE)) == [Seated("x", 1, "n1")]


def test_a_pipeline_of_single_replicas_has_one_seat() -> None:
    book = book_of(GenerationKnown(G1, 1), *seated("x", "x0"))
    hear = hearsay(known=intent(replicas=1))
    replica(hear, "x0", LATE)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == []


def test_no_seat_for_a_volume_with_state_or_seat_or_gone_or_silent_or_of_no_pair() -> None:
    book = book_of(GenerationKnown(G1, 1), Seated("x", 1, "has a seat"))
    hear = hearsay(gone={"gone"})
    hear.replicas["has state"] = Heard(1, LATE, replica_report())
    joiner(hear, "has a seat")
    joiner(hear, "gone")
    joiner(hear, "silent", at=0)
    joiner(hear, "other", pair="no such pair")
    assert list(seatings(book, hear, LATE)) == []


def test_a_shadow_waits_while_a_lane_is_full() -> None:  # [12]
    book = running_book(header(1), GenerationKnown(G2, 2))
    hear = hearsay(splits=FULL)
    joiner(hear, "n", at=0, pair="y")
    assert list(seatings(book, hear, 0)) == []
    hear.splits = {}
    assert list(seatings(book, hear, 0)) == [Seated("y", 0, "n")]


def test_a_pair_of_now_joins_also_while_a_lane_is_full() -> None:
    book = book_of(GenerationKnown(G1, 1), *seated("x", "x0"), header(1))
    hear = hearsay(splits=FULL)
    joiner(hear, "n", at=0)
    assert list(seatings(book, hear, 0)) == [Seated("x", 1, "n")]


def test_a_lapsed_holder_is_displaced_even_if_it_speaks() -> None:
    book = running_book(Lapsed("x", 1, "x1"))
    hear = hearsay()
    replica(hear, "x0", LATE)
    replica(hear, "x1", LATE)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == [Seated("x", 1, "n")]


def test_a_lapsed_holder_stays_while_its_twin_is_no_full_member() -> None:  # [5]
    book = running_book(Lapsed("x", 1, "x1"))
    book.seats["x"][0] = Seat("x0", 0)
    hear = hearsay()
    replica(hear, "x0", LATE)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == []


def test_a_silent_holder_behind_is_called_never_the_one_ahead() -> None:  # [5]
    book = running_book()
    hear = hearsay()
    replica(hear, "x0", LATE, committed=4)
    replica(hear, "x1", 0, committed=3)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == []
    assert list(calls_to_lapse(book, hear, LATE)) == [LapseCalled("x", 1, "x1")]
    replica(hear, "x1", 0, committed=5)
    assert list(calls_to_lapse(book, hear, LATE)) == []
    replica(hear, "x1", 0, committed=4)
    assert list(calls_to_lapse(book, hear, LATE)) == [LapseCalled("x", 1, "x1")]


def test_a_silent_holder_is_displaced_once_its_twin_has_answered() -> None:  # [5]
    book = running_book(LapseCalled("x", 1, "x1"))
    hear = hearsay()
    replica(hear, "x0", LATE, committed=4)
    replica(hear, "x1", 0, committed=3)
    joiner(hear, "n")
    assert list(answered_calls(book, hear, LATE)) == []
    hear.replicas["x0"] = Heard(1, LATE, replica_report(4, calls=1, sequence=9))
    assert list(answered_calls(book, hear, LATE)) == [Lapsed("x", 1, "x1")]
    book.apply(Lapsed("x", 1, "x1"))
    assert list(seatings(book, hear, LATE)) == [Seated("x", 1, "n")]


def test_a_holder_that_speaks_again_keeps_its_seat() -> None:
    book = running_book(LapseCalled("x", 1, "x1"))
    hear = hearsay()
    replica(hear, "x0", LATE, committed=4)
    replica(hear, "x1", LATE, committed=3)
    joiner(hear, "n")
    assert list(answered_calls(book, hear, LATE)) == [LapseDropped("x", 1, "x1")]


def test_nobody_who_speaks_is_displaced_nor_with_a_silent_or_called_twin() -> None:  # [5]
    book = running_book()
    hear = hearsay()
    replica(hear, "x0", LATE, committed=4)
    replica(hear, "x1", 1, committed=3)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == []
    replica(hear, "x0", 0, committed=4)
    replica(hear, "x1", 0, committed=3)
    assert list(seatings(book, hear, LATE)) == []
    replica(hear, "x0", LATE, committed=4)
    book.apply(LapseCalled("x", 0, "x0"))
    assert list(seatings(book, hear, LATE)) == []


def test_a_lapsed_joiner_goes_even_if_it_speaks() -> None:
    book = running_book()
    book.seats["x"][1] = Seat("x1", 0, SeatState.LAPSED)
    hear = hearsay()
    joiner(hear, "x1")
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == [Seated("x", 1, "n")]


def test_the_lapsed_one_goes_not_its_silent_twin() -> None:  # [5]
    book = running_book(Lapsed("x", 0, "x0"))
    hear = hearsay()
    replica(hear, "x0", LATE, committed=4)
    replica(hear, "x1", 0, committed=3)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == [Seated("x", 0, "n")]


def test_a_silent_holder_whose_twin_has_no_state_stays() -> None:  # [5]
    book = running_book(Seated("x", 0, "new"))
    hear = hearsay()
    joiner(hear, "new")
    replica(hear, "x1", 0, committed=3)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == []


def test_a_silent_joiner_without_state_is_displaced() -> None:
    book = book_of(GenerationKnown(G1, 1), *seated("x", "x0"), Seated("x", 1, "x1"))
    hear = hearsay()
    joiner(hear, "x1", at=1)
    joiner(hear, "n")
    assert list(seatings(book, hear, LATE)) == []
    joiner(hear, "x1", at=0)
    assert list(seatings(book, hear, LATE)) == [Seated("x", 1, "n")]


# --- who counts ----------------------------------------------------------------------------------


def test_a_verified_copy_makes_a_full_member() -> None:
    book = running_book(header(1), header(2), Trimmed(2), Seated("x", 1, "n"))
    hear = hearsay(replicas={"n": replica_report(2)})
    assert list(verifications(book, hear, 0)) == [Verified("x", 1, "n", 2)]
    assert list(verifications(book, hearsay(replicas={"n": replica_report(1)}), 0)) == []
    assert list(verifications(book, hearsay(replicas={"n": joiner_report()}), 0)) == []
    assert list(verifications(book, hearsay(), 0)) == []


def test_nobody_is_verified_twice_or_once_lapsed() -> None:
    hear = hearsay(replicas={"x0": replica_report(2), "x1": replica_report(2)})
    assert list(verifications(running_book(), hear, 0)) == []
    book = book_of(GenerationKnown(G1, 1), Seated("x", 0, "x0"), Lapsed("x", 0, "x0"))
    assert list(verifications(book, hear, 0)) == []


def test_seats_of_volumes_gone_for_good_are_vacated() -> None:
    book = book_of(GenerationKnown(G1, 1), *seated("x", "x0"))
    hear = hearsay(gone={"x0"})
    assert list(vacancies(book, hear, 0)) == [Vacated("x", 0, "x0", "gone")]
    assert list(vacancies(book, hearsay(), 0)) == []


def test_who_gave_another_answer_is_struck_if_its_twin_can_go_on() -> None:  # [4] TwinsDiffer
    differs = {"m": merge_report(differing=(("x", 3, "x1"),))}
    called = [LapseCalled("x", 1, "x1")]
    assert list(calls_to_lapse(running_book(), hearsay(merges=differs), 0)) == called
    lapsed = running_book(Lapsed("x", 0, "x0"))
    assert list(calls_to_lapse(lapsed, hearsay(merges=differs), 0)) == []
    alone = running_book(Vacated("x", 0, "x0", ""))
    assert list(calls_to_lapse(alone, hearsay(merges=differs), 0)) == []
    joining = running_book(Seated("x", 0, "n"))
    assert list(calls_to_lapse(joining, hearsay(merges=differs), 0)) == []


def test_not_both_twins_are_struck() -> None:  # [8]
    both = {"m": merge_report(differing=(("x", 3, "x1"), ("x", 4, "x0")))}
    assert list(calls_to_lapse(running_book(), hearsay(merges=both), 0)) == []


# --- losses --------------------------------------------------------------------------------------


def test_a_sink_ahead_of_every_header_is_said_once() -> None:  # (i) DataLost
    book = running_book(header(1))
    assert list(sinks_ahead(book, hearsay(delivered=1), 0)) == []
    (found,) = sinks_ahead(book, hearsay(delivered=2), 0)
    assert isinstance(found, DataLost)
    book.apply(found)
    assert list(sinks_ahead(book, hearsay(delivered=3), 0)) == []


def test_a_sink_with_an_epoch_of_another_history_is_said() -> None:  # (i) DataLost
    book = running_book(header(1), header(2), Trimmed(1))

    def said(delivered: int, digest: str) -> list[Entry]:
        report = merge_report(delivered, delivered_digest=digest)
        return list(sinks_ahead(book, hearsay(merges={"m": report}, delivered=delivered), 0))

    for epoch in (1, 2):
        assert said(epoch, header(epoch).digest) == said(epoch, "") == []
        assert [type(entry) for entry in said(epoch, "another")] == [DataLost]


def test_a_pair_whose_state_nobody_holds_is_said_once() -> None:  # DataLost
    book = running_book(header(1), Trimmed(1), Vacated("x", 0, "x0", ""))
    assert list(lost_pairs(book, hearsay(), 0)) == []
    book.apply(Vacated("x", 1, "x1", ""))
    (found,) = lost_pairs(book, hearsay(), 0)
    assert isinstance(found, DataLost)
    assert found.subject == "x"
    book.apply(found)
    assert list(lost_pairs(book, hearsay(), 0)) == []


def test_a_joiner_without_state_does_not_save_a_pair() -> None:
    book = book_of(GenerationKnown(G1, 1), header(1), Trimmed(1), Seated("x", 0, "n"))
    assert len(list(lost_pairs(book, hearsay(), 0))) == 1


def test_a_pair_that_a_rebuilt_log_only_names_is_lost_too() -> None:  # schedule 3441 of seed 1
    book = running_book(header(1), Trimmed(1))
    del book.seats["x"]
    assert [e.subject for e in lost_pairs(book, hearsay(), 0) if isinstance(e, DataLost)] == ["x"]


def test_a_lost_pair_that_still_owes_an_epoch_is_said_after_the_cut_too() -> None:  # DataLost
    carried = generation(2, "v")
    book = running_book(
        header(1),
        header(2),
        Trimmed(1),
        GenerationKnown(carried, 2),
        *seated("v", "v0"),
        header(3, generation=2),
        Vacated("x", 0, "x0", ""),
        Vacated("x", 1, "x1", ""),
    )
    found = [
        e.subject for e in lost_pairs(book, hearsay(delivered=1), 0) if isinstance(e, DataLost)
    ]
    assert found == ["x"]
    assert list(lost_pairs(book, hearsay(delivered=2), 0)) == []
    # Retired, it owes nothing, whatever a new lead has heard of the sinks so far.
    book.apply(PairsRetired(("x",)))
    assert list(lost_pairs(book, hearsay(), 0)) == []


def test_before_anything_is_trimmed_every_pair_can_begin_anew() -> None:
    assert list(lost_pairs(book_of(GenerationKnown(G1, 1), header(1)), hearsay(), 0)) == []
    assert list(lost_pairs(book_of(GenerationKnown(G1, 1)), hearsay(), 0)) == []


def test_a_new_pair_whose_parents_live_can_be_built_again() -> None:
    book = running_book(header(1), Trimmed(1), GenerationKnown(G2, 2))
    book.apply(header(2, generation=2))
    assert list(lost_pairs(book, hearsay(), 0)) == []
    book.apply(PairsRetired(("x",)))
    assert [e.subject for e in lost_pairs(book, hearsay(), 0) if isinstance(e, DataLost)] == [
        "y",
        "z",
    ]


def test_parents_that_a_pair_is_built_from() -> None:
    book = running_book(GenerationKnown(G2, 2))
    assert build_sources(book, "y") == (("x0", "x1"),)
    assert build_sources(book, "x") == ()
    book.apply(Lapsed("x", 0, "x0"))
    assert build_sources(book, "y") == (("x1",),)
    record(book, Seated("x", 1, "n"))
    assert build_sources(book, "y") == ()


def test_every_parent_must_have_a_full_member() -> None:
    both = generation(2, "w", w=("x", "v"))
    book = running_book()
    book.apply(GenerationKnown(generation(1, "x", "v"), 1))
    book.apply(GenerationKnown(both, 2))
    assert build_sources(book, "w") == ()
    for entry in seated("v", "v0"):
        book.apply(entry)
    assert build_sources(book, "w") == (("x0", "x1"), ("v0",))


def test_parents_are_copied_at_the_last_epoch_delivered_once_all_have_it() -> None:
    book = running_book(GenerationKnown(G2, 2), header(1), header(2))
    hear = hearsay(delivered=2, replicas={"x0": replica_report(1)})
    assert build_epoch(book, hear, "y") is None
    hear = hearsay(delivered=2, replicas={"x0": replica_report(1), "x1": replica_report(2)})
    assert build_epoch(book, hear, "y") == 2


def test_one_parent_that_is_behind_delays_a_pair_of_two() -> None:
    book = running_book(header(1))
    book.apply(GenerationKnown(generation(1, "x", "v"), 1))
    book.apply(GenerationKnown(generation(2, "w", w=("x", "v")), 2))
    for entry in seated("v", "v0"):
        book.apply(entry)
    reports = {"x0": replica_report(1), "v0": replica_report(0, pair="v")}
    assert build_epoch(book, hearsay(delivered=1, replicas=reports), "w") is None
    reports["v0"] = replica_report(1, pair="v")
    assert build_epoch(book, hearsay(delivered=1, replicas=reports), "w") == 1


# --- lapses --------------------------------------------------------------------------------------


def lagging(x0: int = 3, x1: int = 1, *, full: bool = True, calls: int = 0) -> Hearsay:
    return hearsay(
        splits=FULL if full else {},
        replicas={"x0": replica_report(x0, calls=calls), "x1": replica_report(x1)},
        delivered=3,
    )


def three(*more: Entry) -> Book:
    return running_book(header(1), header(2), header(3), *more)


def test_a_full_lane_calls_on_the_one_behind_to_lapse() -> None:  # [5]
    assert list(calls_to_lapse(three(), lagging(), 0)) == [LapseCalled("x", 1, "x1")]


def test_without_a_full_lane_nobody_lapses() -> None:
    assert not a_lane_is_full(lagging(full=False))
    assert a_lane_is_full(lagging())
    assert list(calls_to_lapse(three(), lagging(full=False), 0)) == []


def test_a_call_is_made_once() -> None:
    assert list(calls_to_lapse(three(LapseCalled("x", 1, "x1")), lagging(), 0)) == []


def test_never_the_one_ahead_nor_one_of_two_equals() -> None:  # [5] lapse-both
    assert list(calls_to_lapse(three(), lagging(x0=1, x1=1), 0)) == []
    assert not may_lapse(three(), lagging(), "x", 0)
    assert may_lapse(three(), lagging(), "x", 1)


@pytest.mark.parametrize(
    "change",
    [Lapsed("x", 0, "x0"), Vacated("x", 0, "x0", ""), Seated("x", 0, "n")],
)
def test_never_while_the_twin_is_lapsed_empty_or_unverified(change: Entry) -> None:
    """[5] lapse-both"""
    book = three(change)
    assert not may_lapse(book, lagging(), "x", 1)
    assert LapseCalled("x", 1, "x1") not in list(calls_to_lapse(book, lagging(), 0))


def test_an_empty_seat_does_not_lapse() -> None:
    assert not may_lapse(three(Vacated("x", 1, "x1", "")), lagging(), "x", 1)


def test_under_backlog_a_twin_that_is_a_little_behind_is_waited_for() -> None:
    hear = lagging(x0=3, x1=2)
    hear.splits = hearsay(splits=CROWDED).splits
    hear.lanes = hearsay(splits=CROWDED).lanes
    assert a_lane_is_full(hear)
    assert list(calls_to_lapse(three(), hear, 0)) == []
    assert list(calls_to_lapse(three(), hear, LATE)) == [LapseCalled("x", 1, "x1")]


def test_nobody_lapses_where_a_sink_holds_the_trim_point() -> None:
    hear = lagging(x0=3, x1=1)
    hear.delivered = {0: 1}
    assert list(calls_to_lapse(three(), hear, 0)) == []
    hear.delivered = {0: 2}
    assert list(calls_to_lapse(three(), hear, 0)) == [LapseCalled("x", 1, "x1")]


def test_only_those_furthest_behind_are_called() -> None:
    wide = generation(1, "x", "v")
    book = book_of(
        GenerationKnown(wide, 1), *seated("x", "x0", "x1"), *seated("v", "v0", "v1"), header(1)
    )
    book.apply(header(2))
    hear = hearsay(
        splits=FULL,
        replicas={
            "x0": replica_report(2),
            "x1": replica_report(1),
            "v0": replica_report(2, pair="v"),
            "v1": replica_report(0, pair="v"),
        },
        delivered=2,
    )
    assert list(calls_to_lapse(book, hear, 0)) == [LapseCalled("v", 1, "v1")]


def test_shadows_lapse_first_and_at_once() -> None:  # [5]
    book = three(GenerationKnown(G2, 2), Seated("y", 0, "y0"))
    found = list(calls_to_lapse(book, lagging(x1=0), 0))
    assert found == [Vacated("y", 0, "y0", "lapsed")]


def test_a_shadow_is_only_of_generations_to_come() -> None:
    book = three(GenerationKnown(G2, 2))
    assert is_shadow(book, "y")
    assert not is_shadow(book, "x")
    book.apply(header(4, generation=2))
    assert not is_shadow(book, "y")
    assert not is_shadow(book, "x")


def test_a_call_counts_once_the_twin_has_answered_it() -> None:  # [5]
    book = three(LapseCalled("x", 0, "x0"), LapseDropped("x", 0, "x0"), LapseCalled("x", 1, "x1"))
    assert list(answered_calls(book, lagging(calls=1), 0)) == []
    assert list(answered_calls(book, lagging(calls=2), 0)) == [Lapsed("x", 1, "x1")]
    unheard = lagging()
    del unheard.replicas["x0"]
    unheard.replicas["x1"] = Heard(1, 0, replica_report(1))
    assert list(answered_calls(book, unheard, 0)) == [LapseDropped("x", 1, "x1")]


def test_without_any_word_of_a_twin_that_is_ahead_the_call_stands() -> None:  # [5]
    book = three(Verified("x", 0, "x0", 3), LapseCalled("x", 1, "x1"))
    hear = lagging()
    del hear.replicas["x0"]
    assert list(answered_calls(book, hear, 0)) == []


def test_a_call_is_dropped_when_there_is_room_again_or_it_caught_up() -> None:
    book = three(LapseCalled("x", 1, "x1"))
    dropped = [LapseDropped("x", 1, "x1")]
    assert list(answered_calls(book, lagging(full=False, calls=1), 0)) == dropped
    assert list(answered_calls(book, lagging(x1=3, calls=1), 0)) == dropped
    assert list(answered_calls(three(), lagging(calls=1), 0)) == []


# --- seats given up for a joiner or a wrong answer ---------------------------------------------


def silent_x1(x0: int = 4, x1: int = 3) -> Hearsay:
    """Only x0 has spoken lately; both said how far they are."""
    hear = hearsay()
    replica(hear, "x0", LATE, committed=x0)
    replica(hear, "x1", 0, committed=x1)
    return hear


def test_without_a_joiner_nobody_silent_is_given_up() -> None:
    assert list(calls_to_lapse(running_book(), silent_x1(), LATE)) == []


def test_a_joiner_that_is_silent_seated_of_another_pair_or_with_state_does_not_wait() -> None:
    book = running_book(GenerationKnown(G2, 2), Seated("y", 0, "sits"))
    hear = silent_x1()
    joiner(hear, "silent", at=0)
    joiner(hear, "sits")
    joiner(hear, "other", pair="y")
    joiner(hear, "stranger", pair="no such pair")
    hear.replicas["has state"] = Heard(1, LATE, replica_report(9))
    assert list(calls_to_lapse(book, hear, LATE)) == []
    joiner(hear, "n")
    assert list(calls_to_lapse(book, hear, LATE)) == [LapseCalled("x", 1, "x1")]


def test_of_two_silent_equals_one_is_called() -> None:  # [5] lapse-both
    hear = hearsay()
    replica(hear, "x0", 0, committed=3)
    replica(hear, "x1", 0, committed=3)
    joiner(hear, "n")
    assert list(calls_to_lapse(running_book(), hear, LATE)) == [LapseCalled("x", 0, "x0")]


@pytest.mark.parametrize(
    "change", [LapseCalled("x", 0, "x0"), Lapsed("x", 0, "x0"), Seated("x", 0, "new")]
)
def test_nobody_is_given_up_whose_twin_does_not_carry_the_pair(change: Entry) -> None:  # [5]
    hear = silent_x1()
    joiner(hear, "n")
    assert list(calls_to_lapse(running_book(change), hear, LATE)) == []


def test_who_is_called_lapsed_or_without_state_is_not_called() -> None:
    hear = silent_x1()
    joiner(hear, "n")
    for change in (LapseCalled("x", 1, "x1"), Lapsed("x", 1, "x1"), Seated("x", 1, "x1")):
        assert list(calls_to_lapse(running_book(change), hear, LATE)) == []


def test_a_full_lane_comes_before_joiners() -> None:
    wide = generation(1, "x", "v")
    book = book_of(
        GenerationKnown(wide, 1), *seated("x", "x0", "x1"), *seated("v", "v0", "v1"), header(1)
    )
    hear = hearsay(splits=FULL, delivered=1)
    replica(hear, "x0", LATE, committed=1)
    replica(hear, "x1", 0, committed=1)
    joiner(hear, "n")
    hear.replicas["v0"] = Heard(1, LATE, replica_report(1, pair="v"))
    assert list(calls_to_lapse(book, hear, LATE)) == [LapseCalled("v", 1, "v1")]
    hear.replicas["v1"] = Heard(1, LATE, replica_report(1, pair="v"))
    assert list(calls_to_lapse(book, hear, LATE)) == [LapseCalled("x", 1, "x1")]


def test_a_call_for_a_joiner_is_dropped_when_nobody_waits_any_more() -> None:
    book = running_book(LapseCalled("x", 1, "x1"))
    hear = silent_x1()
    hear.replicas["x0"] = Heard(1, LATE, replica_report(4, calls=1))
    assert list(answered_calls(book, hear, LATE)) == [LapseDropped("x", 1, "x1")]


def test_a_call_for_another_answer_counts_once_the_twin_has_answered() -> None:  # [4]
    book = running_book(LapseCalled("x", 1, "x1"))
    differs = {"m": merge_report(differing=(("x", 3, "x1"),))}
    hear = hearsay(merges=differs, replicas={"x0": replica_report(calls=1)})
    assert list(answered_calls(book, hear, 0)) == [Lapsed("x", 1, "x1")]
    waiting = hearsay(merges=differs, replicas={"x0": replica_report()})
    assert list(answered_calls(book, waiting, 0)) == []
    agreed = hearsay(replicas={"x0": replica_report(calls=1)})
    assert list(answered_calls(book, agreed, 0)) == [LapseDropped("x", 1, "x1")]


# --- the trim point ----------------------------------------------------------------------------


def test_the_trim_point_is_what_every_seat_and_every_sink_has() -> None:  # [5]
    book = three()
    assert list(trim_point(book, lagging(x0=3, x1=2))) == [Trimmed(2)]
    hear = lagging(x0=3, x1=3)
    assert list(trim_point(book, hear)) == [Trimmed(3)]
    hear.delivered = {0: 1}
    assert list(trim_point(book, hear)) == [Trimmed(1)]


def test_it_never_passes_the_last_header_nor_falls() -> None:  # [5]
    hear = lagging(x0=9, x1=9)
    hear.delivered = {0: 9}
    assert list(trim_point(three(), hear)) == [Trimmed(3)]
    assert list(trim_point(three(Trimmed(2)), lagging(x1=1))) == []
    assert list(trim_point(three(Trimmed(2)), lagging(x1=2))) == []


def test_a_joiner_recorded_before_holds_it() -> None:  # [5] trim-without-joiner
    book = three(Trimmed(1), Seated("x", 1, "n"))
    hear = hearsay(replicas={"x0": replica_report(3), "n": replica_report(3)}, delivered=3)
    assert list(trim_point(book, hear)) == []


def test_a_lapsed_seat_does_not_hold_it() -> None:  # [5]
    book = three(Lapsed("x", 1, "x1"))
    assert list(trim_point(book, lagging(x0=3, x1=1))) == [Trimmed(3)]


def test_shadows_hold_it_too() -> None:  # [5]
    book = three(GenerationKnown(G2, 2), Seated("y", 0, "y0"))
    assert list(trim_point(book, lagging(x0=3, x1=3))) == []


def test_a_current_pair_without_any_seat_holds_it() -> None:  # [5]
    book = three(Vacated("x", 0, "x0", ""), Vacated("x", 1, "x1", ""))
    assert list(trim_point(book, hearsay(delivered=3))) == []


def test_a_future_pair_without_any_seat_does_not_hold_it() -> None:
    book = three(GenerationKnown(G2, 2))
    assert list(trim_point(book, lagging(x0=3, x1=3))) == [Trimmed(3)]


# --- merges ------------------------------------------------------------------------------------


def test_each_slot_gets_a_merge_that_speaks() -> None:
    hear = hearsay(merges={"m0": merge_report(), "m1": merge_report(slot=1)})
    two = book_of(SlotOpened(slot=1, first=1, intent_version=1))
    assert list(merge_choices(two, hear, 0)) == [MergeChosen(0, "m0"), MergeChosen(1, "m1")]
    assert list(merge_choices(book_of(), hear, 0)) == [MergeChosen(0, "m0")]


def test_an_ended_slot_has_a_merge_until_it_is_sealed() -> None:
    hear = hearsay(merges={"m1": merge_report(slot=1)})
    opened = SlotOpened(slot=1, first=1, intent_version=1)
    book = book_of(opened, SlotEnded(slot=1, last=4, intent_version=2))
    assert list(merge_choices(book, hear, 0)) == [MergeChosen(1, "m1")]
    book.apply(MergeChosen(1, "m1"))
    book.apply(SlotSealed(1))
    assert book.merges == {}
    assert list(merge_choices(book, hear, 0)) == []


def test_an_active_merge_stays_while_it_speaks() -> None:
    book = book_of(MergeChosen(0, "m0"))
    hear = hearsay(merges={"m0": merge_report(), "m1": merge_report()}, known=intent())
    assert list(merge_choices(book, hear, LATE - 1)) == []


def test_a_silent_or_gone_merge_is_replaced_by_whoever_spoke_last() -> None:  # (f)
    book = book_of(MergeChosen(0, "m0"))
    hear = hearsay(merges={"m0": merge_report()}, known=intent())
    hear.merges["m1"] = Heard(1, 10, merge_report())
    hear.merges["m2"] = Heard(1, 20, merge_report())
    hear.merges["other"] = Heard(1, 30, merge_report(slot=1))
    assert list(merge_choices(book, hear, LATE)) == [MergeChosen(0, "m2")]
    hear.gone = {"m0", "m2"}
    assert list(merge_choices(book, hear, 40)) == [MergeChosen(0, "m1")]


def test_a_merge_that_leaves_is_replaced_at_once_by_one_that_stays() -> None:
    book = book_of(MergeChosen(0, "m0"))
    leaving, staying = merge_report(leaving=True), merge_report()
    hear = hearsay(merges={"m0": leaving, "m1": leaving, "m2": staying}, known=intent())
    assert list(merge_choices(book, hear, 0)) == [MergeChosen(0, "m2")]
    hear.merges["m2"] = Heard(1, 0, leaving)
    assert list(merge_choices(book, hear, 0)) == []


def test_a_merge_that_has_yet_to_report_to_a_new_lead_stays() -> None:
    book = book_of(MergeChosen(0, "m0"))
    hear = hearsay(merges={"m1": merge_report()}, known=intent())
    assert list(merge_choices(book, hear, LATE - 1)) == []


def test_no_merge_is_chosen_where_none_speaks() -> None:
    book = book_of(MergeChosen(0, "m0"))
    hear = hearsay(merges={"m0": merge_report(), "m1": merge_report()}, known=intent())
    assert list(merge_choices(book, hear, LATE)) == []
