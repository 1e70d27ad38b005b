"""What the lead decides about seats and merges: who joins, counts, lapses, and the trim."""

import pytest
from tests.protocol.builders import (
    A1,
    G1,
    G2,
    S,
    generation,
    header,
    intent,
    joiner_report,
    lane_report,
    make_reports,
    merge_report,
    record,
    replica_report,
    running_state,
    seated,
    split_report,
    state_of,
)

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import LastReport, PeerReports
from tandem_runtime.protocol.lead.seat_rules import (
    answer_lapse_calls,
    build_epoch,
    build_sources,
    call_lapses,
    can_lapse,
    choose_merges,
    is_any_lane_full,
    is_shadow,
    report_lost_pairs,
    report_sinks_ahead,
    seat_joiners,
    trim_point,
    vacate_seats,
    verify_seats,
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
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.types import Seat

LATE = S.silence
FULL = {"a": split_report(lane_report(A1, over_bound=True, stuck=True))}
CROWDED = {"a": split_report(lane_report(A1, over_bound=True))}
"""Lanes that are full without anything forgotten: for long, and for a while."""


def replica(reports: PeerReports, volume: str, at: int, committed: int = 0) -> None:
    reports.replicas[volume] = LastReport(1, at, replica_report(committed))


def joiner(reports: PeerReports, volume: str, at: int = LATE, pair: str = "x") -> None:
    reports.replicas[volume] = LastReport(1, at, joiner_report(pair))


# --- who gets a seat -----------------------------------------------------------------------------


def test_joiners_take_empty_seats_one_of_a_pair_at_a_time() -> None:
    log_state = state_of(GenerationKnown(G1, 1))
    reports = make_reports()
    joiner(reports, "n0")
    joiner(reports, "n1")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 0, "n0")]
    log_state.apply(Seated("x", 0, "n0"))
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n1")]


def test_a_pipeline_of_single_replicas_has_one_seat() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"))
    reports = make_reports(known=intent(replicas=1))
    replica(reports, "x0", LATE)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_no_seat_for_a_volume_with_state_or_seat_or_gone_or_silent_or_of_no_pair() -> None:
    log_state = state_of(GenerationKnown(G1, 1), Seated("x", 1, "has a seat"))
    reports = make_reports(gone={"gone"})
    reports.replicas["has state"] = LastReport(1, LATE, replica_report())
    joiner(reports, "has a seat")
    joiner(reports, "gone")
    joiner(reports, "silent", at=0)
    joiner(reports, "other", pair="no such pair")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_a_shadow_waits_while_a_lane_is_full() -> None:  # [12]
    log_state = running_state(header(1), GenerationKnown(G2, 2))
    reports = make_reports(splits=FULL)
    joiner(reports, "n", at=0, pair="y")
    assert list(seat_joiners(log_state, reports, 0)) == []
    reports.splits = {}
    assert list(seat_joiners(log_state, reports, 0)) == [Seated("y", 0, "n")]


def test_a_pair_of_now_joins_also_while_a_lane_is_full() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"), header(1))
    reports = make_reports(splits=FULL)
    joiner(reports, "n", at=0)
    assert list(seat_joiners(log_state, reports, 0)) == [Seated("x", 1, "n")]


def test_a_lapsed_holder_is_displaced_even_if_it_speaks() -> None:
    log_state = running_state(Lapsed("x", 1, "x1"))
    reports = make_reports()
    replica(reports, "x0", LATE)
    replica(reports, "x1", LATE)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n")]


def test_a_lapsed_holder_stays_while_its_twin_is_no_full_member() -> None:  # [5]
    log_state = running_state(Lapsed("x", 1, "x1"))
    log_state.seats["x"][0] = Seat("x0", 0)
    reports = make_reports()
    replica(reports, "x0", LATE)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_a_silent_holder_behind_is_called_never_the_one_ahead() -> None:  # [5]
    log_state = running_state()
    reports = make_reports()
    replica(reports, "x0", LATE, committed=4)
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []
    assert list(call_lapses(log_state, reports, LATE)) == [LapseCalled("x", 1, "x1")]
    replica(reports, "x1", 0, committed=5)
    assert list(call_lapses(log_state, reports, LATE)) == []
    replica(reports, "x1", 0, committed=4)
    assert list(call_lapses(log_state, reports, LATE)) == [LapseCalled("x", 1, "x1")]


def test_a_silent_holder_is_displaced_once_its_twin_has_answered() -> None:  # [5]
    log_state = running_state(LapseCalled("x", 1, "x1"))
    reports = make_reports()
    replica(reports, "x0", LATE, committed=4)
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(answer_lapse_calls(log_state, reports, LATE)) == []
    reports.replicas["x0"] = LastReport(1, LATE, replica_report(4, calls=1, sequence=9))
    assert list(answer_lapse_calls(log_state, reports, LATE)) == [Lapsed("x", 1, "x1")]
    log_state.apply(Lapsed("x", 1, "x1"))
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n")]


def test_a_holder_that_speaks_again_keeps_its_seat() -> None:
    log_state = running_state(LapseCalled("x", 1, "x1"))
    reports = make_reports()
    replica(reports, "x0", LATE, committed=4)
    replica(reports, "x1", LATE, committed=3)
    joiner(reports, "n")
    assert list(answer_lapse_calls(log_state, reports, LATE)) == [LapseDropped("x", 1, "x1")]


def test_nobody_who_speaks_is_displaced_nor_with_a_silent_or_called_twin() -> None:  # [5]
    log_state = running_state()
    reports = make_reports()
    replica(reports, "x0", LATE, committed=4)
    replica(reports, "x1", 1, committed=3)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []
    replica(reports, "x0", 0, committed=4)
    replica(reports, "x1", 0, committed=3)
    assert list(seat_joiners(log_state, reports, LATE)) == []
    replica(reports, "x0", LATE, committed=4)
    log_state.apply(LapseCalled("x", 0, "x0"))
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_a_lapsed_joiner_goes_even_if_it_speaks() -> None:
    log_state = running_state()
    log_state.seats["x"][1] = Seat("x1", 0, SeatState.LAPSED)
    reports = make_reports()
    joiner(reports, "x1")
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n")]


def test_the_lapsed_one_goes_not_its_silent_twin() -> None:  # [5]
    log_state = running_state(Lapsed("x", 0, "x0"))
    reports = make_reports()
    replica(reports, "x0", LATE, committed=4)
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 0, "n")]


def test_a_silent_holder_whose_twin_has_no_state_stays() -> None:  # [5]
    log_state = running_state(Seated("x", 0, "new"))
    reports = make_reports()
    joiner(reports, "new")
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_a_silent_joiner_without_state_is_displaced() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"), Seated("x", 1, "x1"))
    reports = make_reports()
    joiner(reports, "x1", at=1)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []
    joiner(reports, "x1", at=0)
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n")]


# --- who counts ----------------------------------------------------------------------------------


def test_a_verified_copy_makes_a_full_member() -> None:
    log_state = running_state(header(1), header(2), Trimmed(2), Seated("x", 1, "n"))
    reports = make_reports(replicas={"n": replica_report(2)})
    assert list(verify_seats(log_state, reports, 0)) == [Verified("x", 1, "n", 2)]
    assert list(verify_seats(log_state, make_reports(replicas={"n": replica_report(1)}), 0)) == []
    assert list(verify_seats(log_state, make_reports(replicas={"n": joiner_report()}), 0)) == []
    assert list(verify_seats(log_state, make_reports(), 0)) == []


def test_nobody_is_verified_twice_or_once_lapsed() -> None:
    reports = make_reports(replicas={"x0": replica_report(2), "x1": replica_report(2)})
    assert list(verify_seats(running_state(), reports, 0)) == []
    log_state = state_of(GenerationKnown(G1, 1), Seated("x", 0, "x0"), Lapsed("x", 0, "x0"))
    assert list(verify_seats(log_state, reports, 0)) == []


def test_seats_of_volumes_gone_for_good_are_vacated() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"))
    reports = make_reports(gone={"x0"})
    assert list(vacate_seats(log_state, reports, 0)) == [Vacated("x", 0, "x0", "gone")]
    assert list(vacate_seats(log_state, make_reports(), 0)) == []


def test_who_gave_another_answer_is_struck_if_its_twin_can_go_on() -> None:  # [4] TwinsDiffer
    differs = {"m": merge_report(differing=(("x", 3, "x1"),))}
    called = [LapseCalled("x", 1, "x1")]
    assert list(call_lapses(running_state(), make_reports(merges=differs), 0)) == called
    lapsed = running_state(Lapsed("x", 0, "x0"))
    assert list(call_lapses(lapsed, make_reports(merges=differs), 0)) == []
    alone = running_state(Vacated("x", 0, "x0", ""))
    assert list(call_lapses(alone, make_reports(merges=differs), 0)) == []
    joining = running_state(Seated("x", 0, "n"))
    assert list(call_lapses(joining, make_reports(merges=differs), 0)) == []


def test_not_both_twins_are_struck() -> None:  # [8]
    both = {"m": merge_report(differing=(("x", 3, "x1"), ("x", 4, "x0")))}
    assert list(call_lapses(running_state(), make_reports(merges=both), 0)) == []


# --- losses --------------------------------------------------------------------------------------


def test_a_sink_ahead_of_every_header_is_said_once() -> None:  # (i) DataLost
    log_state = running_state(header(1))
    assert list(report_sinks_ahead(log_state, make_reports(delivered=1), 0)) == []
    (found,) = report_sinks_ahead(log_state, make_reports(delivered=2), 0)
    assert isinstance(found, DataLost)
    log_state.apply(found)
    assert list(report_sinks_ahead(log_state, make_reports(delivered=3), 0)) == []


def test_a_sink_with_an_epoch_of_another_history_is_said() -> None:  # (i) DataLost
    log_state = running_state(header(1), header(2), Trimmed(1))

    def said(delivered: int, digest: str) -> list[Entry]:
        report = merge_report(delivered, delivered_digest=digest)
        return list(
            report_sinks_ahead(
                log_state, make_reports(merges={"m": report}, delivered=delivered), 0
            )
        )

    for epoch in (1, 2):
        assert said(epoch, header(epoch).digest) == said(epoch, "") == []
        assert [type(entry) for entry in said(epoch, "another")] == [DataLost]


def test_a_pair_whose_state_nobody_holds_is_said_once() -> None:  # DataLost
    log_state = running_state(header(1), Trimmed(1), Vacated("x", 0, "x0", ""))
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []
    log_state.apply(Vacated("x", 1, "x1", ""))
    (found,) = report_lost_pairs(log_state, make_reports(), 0)
    assert isinstance(found, DataLost)
    assert found.subject == "x"
    log_state.apply(found)
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []


def test_a_joiner_without_state_does_not_save_a_pair() -> None:
    log_state = state_of(GenerationKnown(G1, 1), header(1), Trimmed(1), Seated("x", 0, "n"))
    assert len(list(report_lost_pairs(log_state, make_reports(), 0))) == 1


def test_a_pair_that_a_rebuilt_log_only_names_is_lost_too() -> None:  # schedule 3441 of seed 1
    log_state = running_state(header(1), Trimmed(1))
    del log_state.seats["x"]
    assert [
        e.subject
        for e in report_lost_pairs(log_state, make_reports(), 0)
        if isinstance(e, DataLost)
    ] == ["x"]


def test_a_lost_pair_that_still_owes_an_epoch_is_said_after_the_cut_too() -> None:  # DataLost
    carried = generation(2, "v")
    log_state = running_state(
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
        e.subject
        for e in report_lost_pairs(log_state, make_reports(delivered=1), 0)
        if isinstance(e, DataLost)
    ]
    assert found == ["x"]
    assert list(report_lost_pairs(log_state, make_reports(delivered=2), 0)) == []
    # Retired, it owes nothing, whatever a new lead has heard of the sinks so far.
    log_state.apply(PairsRetired(("x",)))
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []


def test_before_anything_is_trimmed_every_pair_can_begin_anew() -> None:
    assert (
        list(report_lost_pairs(state_of(GenerationKnown(G1, 1), header(1)), make_reports(), 0))
        == []
    )
    assert list(report_lost_pairs(state_of(GenerationKnown(G1, 1)), make_reports(), 0)) == []


def test_a_new_pair_whose_parents_live_can_be_built_again() -> None:
    log_state = running_state(header(1), Trimmed(1), GenerationKnown(G2, 2))
    log_state.apply(header(2, generation=2))
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []
    log_state.apply(PairsRetired(("x",)))
    assert [
        e.subject
        for e in report_lost_pairs(log_state, make_reports(), 0)
        if isinstance(e, DataLost)
    ] == [
        "y",
        "z",
    ]


def test_parents_that_a_pair_is_built_from() -> None:
    log_state = running_state(GenerationKnown(G2, 2))
    assert build_sources(log_state, "y") == (("x0", "x1"),)
    assert build_sources(log_state, "x") == ()
    log_state.apply(Lapsed("x", 0, "x0"))
    assert build_sources(log_state, "y") == (("x1",),)
    record(log_state, Seated("x", 1, "n"))
    assert build_sources(log_state, "y") == ()


def test_every_parent_must_have_a_full_member() -> None:
    both = generation(2, "w", w=("x", "v"))
    log_state = running_state()
    log_state.apply(GenerationKnown(generation(1, "x", "v"), 1))
    log_state.apply(GenerationKnown(both, 2))
    assert build_sources(log_state, "w") == ()
    for entry in seated("v", "v0"):
        log_state.apply(entry)
    assert build_sources(log_state, "w") == (("x0", "x1"), ("v0",))


def test_parents_are_copied_at_the_last_epoch_delivered_once_all_have_it() -> None:
    log_state = running_state(GenerationKnown(G2, 2), header(1), header(2))
    reports = make_reports(delivered=2, replicas={"x0": replica_report(1)})
    assert build_epoch(log_state, reports, "y") is None
    reports = make_reports(delivered=2, replicas={"x0": replica_report(1), "x1": replica_report(2)})
    assert build_epoch(log_state, reports, "y") == 2


def test_one_parent_that_is_behind_delays_a_pair_of_two() -> None:
    log_state = running_state(header(1))
    log_state.apply(GenerationKnown(generation(1, "x", "v"), 1))
    log_state.apply(GenerationKnown(generation(2, "w", w=("x", "v")), 2))
    for entry in seated("v", "v0"):
        log_state.apply(entry)
    committed_by = {"x0": replica_report(1), "v0": replica_report(0, pair="v")}
    assert build_epoch(log_state, make_reports(delivered=1, replicas=committed_by), "w") is None
    committed_by["v0"] = replica_report(1, pair="v")
    assert build_epoch(log_state, make_reports(delivered=1, replicas=committed_by), "w") == 1


# --- lapses --------------------------------------------------------------------------------------


def lagging(x0: int = 3, x1: int = 1, *, full: bool = True, calls: int = 0) -> PeerReports:
    return make_reports(
        splits=FULL if full else {},
        replicas={"x0": replica_report(x0, calls=calls), "x1": replica_report(x1)},
        delivered=3,
    )


def three(*more: Entry) -> LogState:
    return running_state(header(1), header(2), header(3), *more)


def test_a_full_lane_calls_on_the_one_behind_to_lapse() -> None:  # [5]
    assert list(call_lapses(three(), lagging(), 0)) == [LapseCalled("x", 1, "x1")]


def test_without_a_full_lane_nobody_lapses() -> None:
    assert not is_any_lane_full(lagging(full=False))
    assert is_any_lane_full(lagging())
    assert list(call_lapses(three(), lagging(full=False), 0)) == []


def test_a_call_is_made_once() -> None:
    assert list(call_lapses(three(LapseCalled("x", 1, "x1")), lagging(), 0)) == []


def test_never_the_one_ahead_nor_one_of_two_equals() -> None:  # [5] lapse-both
    assert list(call_lapses(three(), lagging(x0=1, x1=1), 0)) == []
    assert not can_lapse(three(), lagging(), "x", 0)
    assert can_lapse(three(), lagging(), "x", 1)


@pytest.mark.parametrize(
    "change",
    [Lapsed("x", 0, "x0"), Vacated("x", 0, "x0", ""), Seated("x", 0, "n")],
)
def test_never_while_the_twin_is_lapsed_empty_or_unverified(change: Entry) -> None:
    """[5] lapse-both"""
    log_state = three(change)
    assert not can_lapse(log_state, lagging(), "x", 1)
    assert LapseCalled("x", 1, "x1") not in list(call_lapses(log_state, lagging(), 0))


def test_an_empty_seat_does_not_lapse() -> None:
    assert not can_lapse(three(Vacated("x", 1, "x1", "")), lagging(), "x", 1)


def test_under_backlog_a_twin_that_is_a_little_behind_is_waited_for() -> None:
    reports = lagging(x0=3, x1=2)
    reports.splits = make_reports(splits=CROWDED).splits
    reports.lanes = make_reports(splits=CROWDED).lanes
    assert is_any_lane_full(reports)
    assert list(call_lapses(three(), reports, 0)) == []
    assert list(call_lapses(three(), reports, LATE)) == [LapseCalled("x", 1, "x1")]


def test_nobody_lapses_where_a_sink_holds_the_trim_point() -> None:
    reports = lagging(x0=3, x1=1)
    reports.delivered = {0: 1}
    assert list(call_lapses(three(), reports, 0)) == []
    reports.delivered = {0: 2}
    assert list(call_lapses(three(), reports, 0)) == [LapseCalled("x", 1, "x1")]


def test_only_those_furthest_behind_are_called() -> None:
    wide = generation(1, "x", "v")
    log_state = state_of(
        GenerationKnown(wide, 1), *seated("x", "x0", "x1"), *seated("v", "v0", "v1"), header(1)
    )
    log_state.apply(header(2))
    reports = make_reports(
        splits=FULL,
        replicas={
            "x0": replica_report(2),
            "x1": replica_report(1),
            "v0": replica_report(2, pair="v"),
            "v1": replica_report(0, pair="v"),
        },
        delivered=2,
    )
    assert list(call_lapses(log_state, reports, 0)) == [LapseCalled("v", 1, "v1")]


def test_shadows_lapse_first_and_at_once() -> None:  # [5]
    log_state = three(GenerationKnown(G2, 2), Seated("y", 0, "y0"))
    found = list(call_lapses(log_state, lagging(x1=0), 0))
    assert found == [Vacated("y", 0, "y0", "lapsed")]


def test_a_shadow_is_only_of_generations_to_come() -> None:
    log_state = three(GenerationKnown(G2, 2))
    assert is_shadow(log_state, "y")
    assert not is_shadow(log_state, "x")
    log_state.apply(header(4, generation=2))
    assert not is_shadow(log_state, "y")
    assert not is_shadow(log_state, "x")


def test_a_call_counts_once_the_twin_has_answered_it() -> None:  # [5]
    log_state = three(
        LapseCalled("x", 0, "x0"), LapseDropped("x", 0, "x0"), LapseCalled("x", 1, "x1")
    )
    assert list(answer_lapse_calls(log_state, lagging(calls=1), 0)) == []
    assert list(answer_lapse_calls(log_state, lagging(calls=2), 0)) == [Lapsed("x", 1, "x1")]
    unheard = lagging()
    del unheard.replicas["x0"]
    unheard.replicas["x1"] = LastReport(1, 0, replica_report(1))
    assert list(answer_lapse_calls(log_state, unheard, 0)) == [LapseDropped("x", 1, "x1")]


def test_without_any_word_of_a_twin_that_is_ahead_the_call_stands() -> None:  # [5]
    log_state = three(Verified("x", 0, "x0", 3), LapseCalled("x", 1, "x1"))
    reports = lagging()
    del reports.replicas["x0"]
    assert list(answer_lapse_calls(log_state, reports, 0)) == []


def test_a_call_is_dropped_when_there_is_room_again_or_it_caught_up() -> None:
    log_state = three(LapseCalled("x", 1, "x1"))
    dropped = [LapseDropped("x", 1, "x1")]
    assert list(answer_lapse_calls(log_state, lagging(full=False, calls=1), 0)) == dropped
    assert list(answer_lapse_calls(log_state, lagging(x1=3, calls=1), 0)) == dropped
    assert list(answer_lapse_calls(three(), lagging(calls=1), 0)) == []


# --- seats given up for a joiner or a wrong answer ---------------------------------------------


def silent_x1(x0: int = 4, x1: int = 3) -> PeerReports:
    """Only x0 has spoken lately; both said how far they are."""
    reports = make_reports()
    replica(reports, "x0", LATE, committed=x0)
    replica(reports, "x1", 0, committed=x1)
    return reports


def test_without_a_joiner_nobody_silent_is_given_up() -> None:
    assert list(call_lapses(running_state(), silent_x1(), LATE)) == []


def test_a_joiner_that_is_silent_seated_of_another_pair_or_with_state_does_not_wait() -> None:
    log_state = running_state(GenerationKnown(G2, 2), Seated("y", 0, "sits"))
    reports = silent_x1()
    joiner(reports, "silent", at=0)
    joiner(reports, "sits")
    joiner(reports, "other", pair="y")
    joiner(reports, "stranger", pair="no such pair")
    reports.replicas["has state"] = LastReport(1, LATE, replica_report(9))
    assert list(call_lapses(log_state, reports, LATE)) == []
    joiner(reports, "n")
    assert list(call_lapses(log_state, reports, LATE)) == [LapseCalled("x", 1, "x1")]


def test_of_two_silent_equals_one_is_called() -> None:  # [5] lapse-both
    reports = make_reports()
    replica(reports, "x0", 0, committed=3)
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(call_lapses(running_state(), reports, LATE)) == [LapseCalled("x", 0, "x0")]


@pytest.mark.parametrize(
    "change", [LapseCalled("x", 0, "x0"), Lapsed("x", 0, "x0"), Seated("x", 0, "new")]
)
def test_nobody_is_given_up_whose_twin_does_not_carry_the_pair(change: Entry) -> None:  # [5]
    reports = silent_x1()
    joiner(reports, "n")
    assert list(call_lapses(running_state(change), reports, LATE)) == []


def test_who_is_called_lapsed_or_without_state_is_not_called() -> None:
    reports = silent_x1()
    joiner(reports, "n")
    for change in (LapseCalled("x", 1, "x1"), Lapsed("x", 1, "x1"), Seated("x", 1, "x1")):
        assert list(call_lapses(running_state(change), reports, LATE)) == []


def test_a_full_lane_comes_before_joiners() -> None:
    wide = generation(1, "x", "v")
    log_state = state_of(
        GenerationKnown(wide, 1), *seated("x", "x0", "x1"), *seated("v", "v0", "v1"), header(1)
    )
    reports = make_reports(splits=FULL, delivered=1)
    replica(reports, "x0", LATE, committed=1)
    replica(reports, "x1", 0, committed=1)
    joiner(reports, "n")
    reports.replicas["v0"] = LastReport(1, LATE, replica_report(1, pair="v"))
    assert list(call_lapses(log_state, reports, LATE)) == [LapseCalled("v", 1, "v1")]
    reports.replicas["v1"] = LastReport(1, LATE, replica_report(1, pair="v"))
    assert list(call_lapses(log_state, reports, LATE)) == [LapseCalled("x", 1, "x1")]


def test_a_call_for_a_joiner_is_dropped_when_nobody_waits_any_more() -> None:
    log_state = running_state(LapseCalled("x", 1, "x1"))
    reports = silent_x1()
    reports.replicas["x0"] = LastReport(1, LATE, replica_report(4, calls=1))
    assert list(answer_lapse_calls(log_state, reports, LATE)) == [LapseDropped("x", 1, "x1")]


def test_a_call_for_another_answer_counts_once_the_twin_has_answered() -> None:  # [4]
    log_state = running_state(LapseCalled("x", 1, "x1"))
    differs = {"m": merge_report(differing=(("x", 3, "x1"),))}
    reports = make_reports(merges=differs, replicas={"x0": replica_report(calls=1)})
    assert list(answer_lapse_calls(log_state, reports, 0)) == [Lapsed("x", 1, "x1")]
    waiting = make_reports(merges=differs, replicas={"x0": replica_report()})
    assert list(answer_lapse_calls(log_state, waiting, 0)) == []
    agreed = make_reports(replicas={"x0": replica_report(calls=1)})
    assert list(answer_lapse_calls(log_state, agreed, 0)) == [LapseDropped("x", 1, "x1")]


# --- the trim point ----------------------------------------------------------------------------


def test_the_trim_point_is_what_every_seat_and_every_sink_has() -> None:  # [5]
    log_state = three()
    assert list(trim_point(log_state, lagging(x0=3, x1=2))) == [Trimmed(2)]
    reports = lagging(x0=3, x1=3)
    assert list(trim_point(log_state, reports)) == [Trimmed(3)]
    reports.delivered = {0: 1}
    assert list(trim_point(log_state, reports)) == [Trimmed(1)]


def test_it_never_passes_the_last_header_nor_falls() -> None:  # [5]
    reports = lagging(x0=9, x1=9)
    reports.delivered = {0: 9}
    assert list(trim_point(three(), reports)) == [Trimmed(3)]
    assert list(trim_point(three(Trimmed(2)), lagging(x1=1))) == []
    assert list(trim_point(three(Trimmed(2)), lagging(x1=2))) == []


def test_a_joiner_recorded_before_holds_it() -> None:  # [5] trim-without-joiner
    log_state = three(Trimmed(1), Seated("x", 1, "n"))
    reports = make_reports(replicas={"x0": replica_report(3), "n": replica_report(3)}, delivered=3)
    assert list(trim_point(log_state, reports)) == []


def test_a_lapsed_seat_does_not_hold_it() -> None:  # [5]
    log_state = three(Lapsed("x", 1, "x1"))
    assert list(trim_point(log_state, lagging(x0=3, x1=1))) == [Trimmed(3)]


def test_shadows_hold_it_too() -> None:  # [5]
    log_state = three(GenerationKnown(G2, 2), Seated("y", 0, "y0"))
    assert list(trim_point(log_state, lagging(x0=3, x1=3))) == []


def test_a_current_pair_without_any_seat_holds_it() -> None:  # [5]
    log_state = three(Vacated("x", 0, "x0", ""), Vacated("x", 1, "x1", ""))
    assert list(trim_point(log_state, make_reports(delivered=3))) == []


def test_a_future_pair_without_any_seat_does_not_hold_it() -> None:
    log_state = three(GenerationKnown(G2, 2))
    assert list(trim_point(log_state, lagging(x0=3, x1=3))) == [Trimmed(3)]


# --- merges ------------------------------------------------------------------------------------


def test_each_slot_gets_a_merge_that_speaks() -> None:
    reports = make_reports(merges={"m0": merge_report(), "m1": merge_report(slot=1)})
    two = state_of(SlotOpened(slot=1, first=1, intent_version=1))
    assert list(choose_merges(two, reports, 0)) == [MergeChosen(0, "m0"), MergeChosen(1, "m1")]
    assert list(choose_merges(state_of(), reports, 0)) == [MergeChosen(0, "m0")]


def test_an_ended_slot_has_a_merge_until_it_is_sealed() -> None:
    reports = make_reports(merges={"m1": merge_report(slot=1)})
    opened = SlotOpened(slot=1, first=1, intent_version=1)
    log_state = state_of(opened, SlotEnded(slot=1, last=4, intent_version=2))
    assert list(choose_merges(log_state, reports, 0)) == [MergeChosen(1, "m1")]
    log_state.apply(MergeChosen(1, "m1"))
    log_state.apply(SlotSealed(1))
    assert log_state.merges == {}
    assert list(choose_merges(log_state, reports, 0)) == []


def test_an_active_merge_stays_while_it_speaks() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m0": merge_report(), "m1": merge_report()}, known=intent())
    assert list(choose_merges(log_state, reports, LATE - 1)) == []


def test_a_silent_or_gone_merge_is_replaced_by_whoever_spoke_last() -> None:  # (f)
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m0": merge_report()}, known=intent())
    reports.merges["m1"] = LastReport(1, 10, merge_report())
    reports.merges["m2"] = LastReport(1, 20, merge_report())
    reports.merges["other"] = LastReport(1, 30, merge_report(slot=1))
    assert list(choose_merges(log_state, reports, LATE)) == [MergeChosen(0, "m2")]
    reports.gone = {"m0", "m2"}
    assert list(choose_merges(log_state, reports, 40)) == [MergeChosen(0, "m1")]


def test_a_merge_that_leaves_is_replaced_at_once_by_one_that_stays() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    leaving, staying = merge_report(leaving=True), merge_report()
    reports = make_reports(merges={"m0": leaving, "m1": leaving, "m2": staying}, known=intent())
    assert list(choose_merges(log_state, reports, 0)) == [MergeChosen(0, "m2")]
    reports.merges["m2"] = LastReport(1, 0, leaving)
    assert list(choose_merges(log_state, reports, 0)) == []


def test_a_merge_that_has_yet_to_report_to_a_new_lead_stays() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m1": merge_report()}, known=intent())
    assert list(choose_merges(log_state, reports, LATE - 1)) == []


def test_no_merge_is_chosen_where_none_speaks() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m0": merge_report(), "m1": merge_report()}, known=intent())
    assert list(choose_merges(log_state, reports, LATE)) == []
