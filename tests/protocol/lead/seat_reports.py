"""Reports and logs for tests of seats: full lanes, joiners, a pair of which one lags."""

from tests.protocol.builders import (
    A1,
    S,
    header,
    joiner_report,
    lane_report,
    make_reports,
    replica_report,
    running_state,
    split_report,
)

from tandem_runtime.protocol.lead.peer_reports import LastReport, PeerReports
from tandem_runtime.protocol.log.entries import (
    Entry,
)
from tandem_runtime.protocol.log.log_state import LogState

LATE = S.silence
FULL = {"a": split_report(lane_report(A1, over_bound=True, stuck=True))}
CROWDED = {"a": split_report(lane_report(A1, over_bound=True))}
"""Lanes that are full without anything forgotten: for long, and for a while."""


def replica(reports: PeerReports, volume: str, at: int, committed: int = 0) -> None:
    reports.replicas[volume] = LastReport(1, at, replica_report(committed))


def joiner(reports: PeerReports, volume: str, at: int = LATE, pair: str = "x") -> None:
    reports.replicas[volume] = LastReport(1, at, joiner_report(pair))


def lagging(x0: int = 3, x1: int = 1, *, full: bool = True, calls: int = 0) -> PeerReports:
    return make_reports(
        splits=FULL if full else {},
        replicas={"x0": replica_report(x0, calls=calls), "x1": replica_report(x1)},
        delivered=3,
    )


def three(*more: Entry) -> LogState:
    return running_state(header(1), header(2), header(3), *more)
