"""Loss decisions of the lead: which pairs and sinks have lost data."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.copy_rules import build_sources
from tandem_runtime.protocol.lead.peer_reports import PeerReports, delivered_through
from tandem_runtime.protocol.log.entries import DataLost, Entry
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import MergeReport
from tandem_runtime.protocol.types import Seat


def report_sinks_ahead(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Reports sinks that have an epoch unknown here: the header log was lost and rebuilt."""
    if "sinks" in log_state.lost:
        return
    if max(reports.delivered.values(), default=0) > log_state.epoch:
        yield DataLost("sinks", f"ahead of header {log_state.epoch}")
    elif any(_delivered_otherwise(log_state, heard.report) for heard in reports.merges.values()):
        yield DataLost("sinks", "have epochs of another history")


def _delivered_otherwise(log_state: LogState, report: MergeReport) -> bool:
    """Whether a merge has delivered an epoch whose header here is another one."""
    known = log_state.digest_of(report.delivered)
    return bool(report.delivered_digest) and known not in (None, report.delivered_digest)


def report_lost_pairs(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Reports, once, pairs whose state no replica holds and no parent pair can rebuild."""
    if log_state.generation == 0 or log_state.trim == 0:
        return
    pairs = {pair for names in log_state.names.values() for pair in names}
    stateless = {pair for pair in pairs if not _has_state(log_state.seats.get(pair, []))}
    if not stateless:
        return
    for pair in answering_pairs(log_state, reports):
        if pair in stateless and pair not in log_state.lost and not build_sources(log_state, pair):
            yield DataLost(pair, "no replica holds its state")


def _has_state(seats: list[Seat | None]) -> bool:
    return any(seat is not None and seat.verified for seat in seats)


def answering_pairs(log_state: LogState, reports: PeerReports) -> list[str]:
    """Returns pairs that answer for epochs to come, or for one that is cut and not delivered.

    A retired pair's epochs are all delivered, even if a new lead has no report of that yet.
    """
    delivered = delivered_through(log_state, reports)
    numbers = {h.generation for e, h in log_state.headers.items() if e > delivered}
    numbers.add(log_state.generation)
    pairs = dict.fromkeys(pair for n in sorted(numbers) for pair in log_state.pairs(n))
    return [pair for pair in pairs if pair not in log_state.retired]
