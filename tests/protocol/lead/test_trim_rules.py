"""Trim decision: how far lanes may erase."""

from tests.protocol.builders import (
    G2,
    make_reports,
    replica_report,
)
from tests.protocol.lead.seat_reports import lagging, three

from tandem_runtime.protocol.lead.trim_rules import trim_point
from tandem_runtime.protocol.log.entries import (
    GenerationKnown,
    Lapsed,
    Seated,
    Trimmed,
    Vacated,
)


def test_trim_point_is_minimum_over_seats_and_sinks() -> None:  # [5]
    log_state = three()
    assert list(trim_point(log_state, lagging(x0=3, x1=2))) == [Trimmed(2)]
    reports = lagging(x0=3, x1=3)
    assert list(trim_point(log_state, reports)) == [Trimmed(3)]
    reports.delivered = {0: 1}
    assert list(trim_point(log_state, reports)) == [Trimmed(1)]


def test_trim_point_never_passes_last_header_nor_falls() -> None:  # [5]
    reports = lagging(x0=9, x1=9)
    reports.delivered = {0: 9}
    assert list(trim_point(three(), reports)) == [Trimmed(3)]
    assert list(trim_point(three(Trimmed(2)), lagging(x1=1))) == []
    assert list(trim_point(three(Trimmed(2)), lagging(x1=2))) == []


def test_recorded_joiner_holds_trim_point() -> None:  # [5] trim-without-joiner
    log_state = three(Trimmed(1), Seated("x", 1, "n"))
    reports = make_reports(replicas={"x0": replica_report(3), "n": replica_report(3)}, delivered=3)
    assert list(trim_point(log_state, reports)) == []


def test_lapsed_seat_does_not_hold_trim_point() -> None:  # [5]
    log_state = three(Lapsed("x", 1, "x1"))
    assert list(trim_point(log_state, lagging(x0=3, x1=1))) == [Trimmed(3)]


def test_shadow_seat_holds_trim_point() -> None:  # [5]
    log_state = three(GenerationKnown(G2, 2), Seated("y", 0, "y0"))
    assert list(trim_point(log_state, lagging(x0=3, x1=3))) == []


def test_current_pair_without_seats_holds_trim_point() -> None:  # [5]
    log_state = three(Vacated("x", 0, "x0", ""), Vacated("x", 1, "x1", ""))
    assert list(trim_point(log_state, make_reports(delivered=3))) == []


def test_future_pair_without_seats_does_not_hold_trim_point() -> None:
    log_state = three(GenerationKnown(G2, 2))
    assert list(trim_point(log_state, lagging(x0=3, x1=3))) == [Trimmed(3)]
