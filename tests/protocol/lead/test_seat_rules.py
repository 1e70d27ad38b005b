"""Seat decisions: seating, verification, and what a new pair is built from."""

from tests.protocol.builders import (
    G1,
    G2,
    generation,
    header,
    intent,
    joiner_report,
    make_reports,
    merge_report,
    record,
    replica_report,
    running_state,
    seated,
    state_of,
)
from tests.protocol.lead.seat_reports import FULL, LATE, joiner, replica

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.copy_rules import build_epoch, build_sources
from tandem_runtime.protocol.lead.lapse_rules import answer_lapse_calls, call_lapses
from tandem_runtime.protocol.lead.peer_reports import LastReport
from tandem_runtime.protocol.lead.seat_rules import seat_joiners, vacate_seats, verify_seats
from tandem_runtime.protocol.log.entries import (
    GenerationKnown,
    LapseCalled,
    Lapsed,
    LapseDropped,
    Seated,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.types import Seat


def test_joiners_take_empty_seats_one_per_pair_at_a_time() -> None:
    log_state = state_of(GenerationKnown(G1, 1))
    reports = make_reports()
    joiner(reports, "n0")
    joiner(reports, "n1")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 0, "n0")]
    log_state.apply(Seated("x", 0, "n0"))
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n1")]


def test_single_replica_pipeline_has_one_seat() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"))
    reports = make_reports(known=intent(replicas=1))
    replica(reports, "x0", LATE)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_seated_gone_silent_pairless_or_stateful_volume_gets_no_seat() -> None:
    log_state = state_of(GenerationKnown(G1, 1), Seated("x", 1, "has a seat"))
    reports = make_reports(gone={"gone"})
    reports.replicas["has state"] = LastReport(1, LATE, replica_report())
    joiner(reports, "has a seat")
    joiner(reports, "gone")
    joiner(reports, "silent", at=0)
    joiner(reports, "other", pair="no such pair")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_shadow_waits_while_lane_is_full() -> None:  # [12]
    log_state = running_state(header(1), GenerationKnown(G2, 2))
    reports = make_reports(splits=FULL)
    joiner(reports, "n", at=0, pair="y")
    assert list(seat_joiners(log_state, reports, 0)) == []
    reports.splits = {}
    assert list(seat_joiners(log_state, reports, 0)) == [Seated("y", 0, "n")]


def test_current_pair_is_seated_even_while_lane_is_full() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"), header(1))
    reports = make_reports(splits=FULL)
    joiner(reports, "n", at=0)
    assert list(seat_joiners(log_state, reports, 0)) == [Seated("x", 1, "n")]


def test_lapsed_holder_is_displaced_even_if_it_reports() -> None:
    log_state = running_state(Lapsed("x", 1, "x1"))
    reports = make_reports()
    replica(reports, "x0", LATE)
    replica(reports, "x1", LATE)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n")]


def test_lapsed_holder_stays_while_its_twin_is_no_full_member() -> None:  # [5]
    log_state = running_state(Lapsed("x", 1, "x1"))
    log_state.seats["x"][0] = Seat("x0", 0)
    reports = make_reports()
    replica(reports, "x0", LATE)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_silent_holder_behind_is_called_to_lapse_but_never_one_ahead() -> None:  # [5]
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


def test_silent_holder_is_displaced_once_its_twin_has_answered() -> None:  # [5]
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


def test_holder_that_reports_again_keeps_its_seat() -> None:
    log_state = running_state(LapseCalled("x", 1, "x1"))
    reports = make_reports()
    replica(reports, "x0", LATE, committed=4)
    replica(reports, "x1", LATE, committed=3)
    joiner(reports, "n")
    assert list(answer_lapse_calls(log_state, reports, LATE)) == [LapseDropped("x", 1, "x1")]


def test_reporting_holder_or_one_with_silent_or_called_twin_is_not_displaced() -> None:  # [5]
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


def test_lapsed_joiner_is_displaced_even_if_it_reports() -> None:
    log_state = running_state()
    log_state.seats["x"][1] = Seat("x1", 0, SeatState.LAPSED)
    reports = make_reports()
    joiner(reports, "x1")
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n")]


def test_lapsed_holder_is_displaced_before_its_silent_twin() -> None:  # [5]
    log_state = running_state(Lapsed("x", 0, "x0"))
    reports = make_reports()
    replica(reports, "x0", LATE, committed=4)
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 0, "n")]


def test_silent_holder_whose_twin_has_no_state_stays() -> None:  # [5]
    log_state = running_state(Seated("x", 0, "new"))
    reports = make_reports()
    joiner(reports, "new")
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []


def test_silent_joiner_without_state_is_displaced() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"), Seated("x", 1, "x1"))
    reports = make_reports()
    joiner(reports, "x1", at=1)
    joiner(reports, "n")
    assert list(seat_joiners(log_state, reports, LATE)) == []
    joiner(reports, "x1", at=0)
    assert list(seat_joiners(log_state, reports, LATE)) == [Seated("x", 1, "n")]


def test_verified_copy_makes_full_member() -> None:
    log_state = running_state(header(1), header(2), Trimmed(2), Seated("x", 1, "n"))
    reports = make_reports(replicas={"n": replica_report(2)})
    assert list(verify_seats(log_state, reports, 0)) == [Verified("x", 1, "n", 2)]
    assert list(verify_seats(log_state, make_reports(replicas={"n": replica_report(1)}), 0)) == []
    assert list(verify_seats(log_state, make_reports(replicas={"n": joiner_report()}), 0)) == []
    assert list(verify_seats(log_state, make_reports(), 0)) == []


def test_verified_or_lapsed_seat_is_not_verified_again() -> None:
    reports = make_reports(replicas={"x0": replica_report(2), "x1": replica_report(2)})
    assert list(verify_seats(running_state(), reports, 0)) == []
    log_state = state_of(GenerationKnown(G1, 1), Seated("x", 0, "x0"), Lapsed("x", 0, "x0"))
    assert list(verify_seats(log_state, reports, 0)) == []


def test_seats_of_gone_volumes_are_vacated() -> None:
    log_state = state_of(GenerationKnown(G1, 1), *seated("x", "x0"))
    reports = make_reports(gone={"x0"})
    assert list(vacate_seats(log_state, reports, 0)) == [Vacated("x", 0, "x0", "gone")]
    assert list(vacate_seats(log_state, make_reports(), 0)) == []


def test_replica_with_differing_result_is_called_to_lapse_if_its_twin_can_continue() -> (
    None
):  # [4] TwinsDiffer
    differs = {"m": merge_report(differing=(("x", 3, "x1"),))}
    called = [LapseCalled("x", 1, "x1")]
    assert list(call_lapses(running_state(), make_reports(merges=differs), 0)) == called
    lapsed = running_state(Lapsed("x", 0, "x0"))
    assert list(call_lapses(lapsed, make_reports(merges=differs), 0)) == []
    alone = running_state(Vacated("x", 0, "x0", ""))
    assert list(call_lapses(alone, make_reports(merges=differs), 0)) == []
    joining = running_state(Seated("x", 0, "n"))
    assert list(call_lapses(joining, make_reports(merges=differs), 0)) == []


def test_twins_do_not_both_lapse() -> None:  # [8]
    both = {"m": merge_report(differing=(("x", 3, "x1"), ("x", 4, "x0")))}
    assert list(call_lapses(running_state(), make_reports(merges=both), 0)) == []


def test_build_sources_are_full_members_of_parents() -> None:
    log_state = running_state(GenerationKnown(G2, 2))
    assert build_sources(log_state, "y") == (("x0", "x1"),)
    assert build_sources(log_state, "x") == ()
    log_state.apply(Lapsed("x", 0, "x0"))
    assert build_sources(log_state, "y") == (("x1",),)
    record(log_state, Seated("x", 1, "n"))
    assert build_sources(log_state, "y") == ()


def test_build_needs_full_member_of_every_parent() -> None:
    both = generation(2, "w", w=("x", "v"))
    log_state = running_state()
    log_state.apply(GenerationKnown(generation(1, "x", "v"), 1))
    log_state.apply(GenerationKnown(both, 2))
    assert build_sources(log_state, "w") == ()
    for entry in seated("v", "v0"):
        log_state.apply(entry)
    assert build_sources(log_state, "w") == (("x0", "x1"), ("v0",))


def test_parents_are_copied_at_last_delivered_epoch_once_all_committed_it() -> None:
    log_state = running_state(GenerationKnown(G2, 2), header(1), header(2))
    reports = make_reports(delivered=2, replicas={"x0": replica_report(1)})
    assert build_epoch(log_state, reports, "y") is None
    reports = make_reports(delivered=2, replicas={"x0": replica_report(1), "x1": replica_report(2)})
    assert build_epoch(log_state, reports, "y") == 2


def test_lagging_parent_delays_pair_built_from_two() -> None:
    log_state = running_state(header(1))
    log_state.apply(GenerationKnown(generation(1, "x", "v"), 1))
    log_state.apply(GenerationKnown(generation(2, "w", w=("x", "v")), 2))
    for entry in seated("v", "v0"):
        log_state.apply(entry)
    committed_by = {"x0": replica_report(1), "v0": replica_report(0, pair="v")}
    assert build_epoch(log_state, make_reports(delivered=1, replicas=committed_by), "w") is None
    committed_by["v0"] = replica_report(1, pair="v")
    assert build_epoch(log_state, make_reports(delivered=1, replicas=committed_by), "w") == 1
