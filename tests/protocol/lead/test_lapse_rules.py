"""Lapse decisions: which seats trimming stops waiting for."""

import pytest
from tests.protocol.builders import (
    G2,
    generation,
    header,
    make_reports,
    merge_report,
    replica_report,
    running_state,
    seated,
    state_of,
)
from tests.protocol.lead.seat_reports import CROWDED, FULL, LATE, joiner, lagging, replica, three

from tandem_runtime.protocol.lead.lapse_rules import answer_lapse_calls, call_lapses, can_lapse
from tandem_runtime.protocol.lead.peer_reports import LastReport, PeerReports
from tandem_runtime.protocol.lead.seat_rules import is_any_lane_full, is_shadow
from tandem_runtime.protocol.log.entries import (
    Entry,
    GenerationKnown,
    LapseCalled,
    Lapsed,
    LapseDropped,
    Seated,
    Vacated,
    Verified,
)


def test_full_lane_calls_replica_behind_to_lapse() -> None:  # [5]
    assert list(call_lapses(three(), lagging(), 0)) == [LapseCalled("x", 1, "x1")]


def test_no_replica_lapses_without_full_lane() -> None:
    assert not is_any_lane_full(lagging(full=False))
    assert is_any_lane_full(lagging())
    assert list(call_lapses(three(), lagging(full=False), 0)) == []


def test_lapse_call_is_made_once() -> None:
    assert list(call_lapses(three(LapseCalled("x", 1, "x1")), lagging(), 0)) == []


def test_replica_ahead_or_level_with_twin_is_not_called_to_lapse() -> None:  # [5] lapse-both
    assert list(call_lapses(three(), lagging(x0=1, x1=1), 0)) == []
    assert not can_lapse(three(), lagging(), "x", 0)
    assert can_lapse(three(), lagging(), "x", 1)


@pytest.mark.parametrize(
    "change",
    [Lapsed("x", 0, "x0"), Vacated("x", 0, "x0", ""), Seated("x", 0, "n")],
)
def test_replica_with_lapsed_empty_or_unverified_twin_is_not_called_to_lapse(change: Entry) -> None:
    """[5] lapse-both"""
    log_state = three(change)
    assert not can_lapse(log_state, lagging(), "x", 1)
    assert LapseCalled("x", 1, "x1") not in list(call_lapses(log_state, lagging(), 0))


def test_empty_seat_does_not_lapse() -> None:
    assert not can_lapse(three(Vacated("x", 1, "x1", "")), lagging(), "x", 1)


def test_slightly_lagging_twin_is_tolerated_under_backlog() -> None:
    reports = lagging(x0=3, x1=2)
    reports.splits = make_reports(splits=CROWDED).splits
    reports.lanes = make_reports(splits=CROWDED).lanes
    assert is_any_lane_full(reports)
    assert list(call_lapses(three(), reports, 0)) == []
    assert list(call_lapses(three(), reports, LATE)) == [LapseCalled("x", 1, "x1")]


def test_no_replica_lapses_while_sink_holds_trim_point() -> None:
    reports = lagging(x0=3, x1=1)
    reports.delivered = {0: 1}
    assert list(call_lapses(three(), reports, 0)) == []
    reports.delivered = {0: 2}
    assert list(call_lapses(three(), reports, 0)) == [LapseCalled("x", 1, "x1")]


def test_only_replicas_furthest_behind_are_called_to_lapse() -> None:
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


def test_shadows_lapse_first_and_without_call() -> None:  # [5]
    log_state = three(GenerationKnown(G2, 2), Seated("y", 0, "y0"))
    found = list(call_lapses(log_state, lagging(x1=0), 0))
    assert found == [Vacated("y", 0, "y0", "lapsed")]


def test_shadow_belongs_only_to_future_generation() -> None:
    log_state = three(GenerationKnown(G2, 2))
    assert is_shadow(log_state, "y")
    assert not is_shadow(log_state, "x")
    log_state.apply(header(4, generation=2))
    assert not is_shadow(log_state, "y")
    assert not is_shadow(log_state, "x")


def test_lapse_call_takes_effect_once_twin_has_answered() -> None:  # [5]
    log_state = three(
        LapseCalled("x", 0, "x0"), LapseDropped("x", 0, "x0"), LapseCalled("x", 1, "x1")
    )
    assert list(answer_lapse_calls(log_state, lagging(calls=1), 0)) == []
    assert list(answer_lapse_calls(log_state, lagging(calls=2), 0)) == [Lapsed("x", 1, "x1")]
    unheard = lagging()
    del unheard.replicas["x0"]
    unheard.replicas["x1"] = LastReport(1, 0, replica_report(1))
    assert list(answer_lapse_calls(log_state, unheard, 0)) == [LapseDropped("x", 1, "x1")]


def test_lapse_call_stands_while_leading_twin_is_unheard() -> None:  # [5]
    log_state = three(Verified("x", 0, "x0", 3), LapseCalled("x", 1, "x1"))
    reports = lagging()
    del reports.replicas["x0"]
    assert list(answer_lapse_calls(log_state, reports, 0)) == []


def test_lapse_call_is_dropped_when_lane_has_room_or_replica_caught_up() -> None:
    log_state = three(LapseCalled("x", 1, "x1"))
    dropped = [LapseDropped("x", 1, "x1")]
    assert list(answer_lapse_calls(log_state, lagging(full=False, calls=1), 0)) == dropped
    assert list(answer_lapse_calls(log_state, lagging(x1=3, calls=1), 0)) == dropped
    assert list(answer_lapse_calls(three(), lagging(calls=1), 0)) == []


def silent_x1(x0: int = 4, x1: int = 3) -> PeerReports:
    """Only x0 has spoken lately; both said how far they are."""
    reports = make_reports()
    replica(reports, "x0", LATE, committed=x0)
    replica(reports, "x1", 0, committed=x1)
    return reports


def test_silent_replica_is_not_called_without_waiting_joiner() -> None:
    assert list(call_lapses(running_state(), silent_x1(), LATE)) == []


def test_silent_seated_foreign_or_stateful_joiner_does_not_count_as_waiting() -> None:
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


def test_one_of_two_silent_level_twins_is_called() -> None:  # [5] lapse-both
    reports = make_reports()
    replica(reports, "x0", 0, committed=3)
    replica(reports, "x1", 0, committed=3)
    joiner(reports, "n")
    assert list(call_lapses(running_state(), reports, LATE)) == [LapseCalled("x", 0, "x0")]


@pytest.mark.parametrize(
    "change", [LapseCalled("x", 0, "x0"), Lapsed("x", 0, "x0"), Seated("x", 0, "new")]
)
def test_silent_replica_is_not_called_unless_its_twin_carries_pair(change: Entry) -> None:  # [5]
    reports = silent_x1()
    joiner(reports, "n")
    assert list(call_lapses(running_state(change), reports, LATE)) == []


def test_called_lapsed_or_stateless_replica_is_not_called() -> None:
    reports = silent_x1()
    joiner(reports, "n")
    for change in (LapseCalled("x", 1, "x1"), Lapsed("x", 1, "x1"), Seated("x", 1, "x1")):
        assert list(call_lapses(running_state(change), reports, LATE)) == []


def test_full_lane_takes_precedence_over_joiners() -> None:
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


def test_lapse_call_for_joiner_is_dropped_when_no_joiner_waits() -> None:
    log_state = running_state(LapseCalled("x", 1, "x1"))
    reports = silent_x1()
    reports.replicas["x0"] = LastReport(1, LATE, replica_report(4, calls=1))
    assert list(answer_lapse_calls(log_state, reports, LATE)) == [LapseDropped("x", 1, "x1")]


def test_lapse_call_for_differing_result_takes_effect_once_twin_has_answered() -> None:  # [4]
    log_state = running_state(LapseCalled("x", 1, "x1"))
    differs = {"m": merge_report(differing=(("x", 3, "x1"),))}
    reports = make_reports(merges=differs, replicas={"x0": replica_report(calls=1)})
    assert list(answer_lapse_calls(log_state, reports, 0)) == [Lapsed("x", 1, "x1")]
    waiting = make_reports(merges=differs, replicas={"x0": replica_report()})
    assert list(answer_lapse_calls(log_state, waiting, 0)) == []
    agreed = make_reports(replicas={"x0": replica_report(calls=1)})
    assert list(answer_lapse_calls(log_state, agreed, 0)) == [LapseDropped("x", 1, "x1")]
