"""Volumes that a shell has to watch for being gone for good.

There is no list of all volumes that are gone. So a split names the volumes it depends on, and its
shell finds out which of them are gone for good.
"""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.election.rebuild import Rebuild
from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.log.log_state import LogState

Found = Iterator[str | None]
"""Volumes, and None where a place is empty."""


def in_log_state(log_state: LogState) -> Found:
    """Yields owners and buddies of lanes, holders of seats, active merges."""
    for lane, state in log_state.lanes.items():
        yield from (lane.split, state.buddy)
    for seats in log_state.seats.values():
        yield from (seat.volume for seat in seats if seat is not None)
    yield from log_state.merges.values()


def in_peer_reports(reports: PeerReports) -> Found:
    """Yields members that reported, and the buddies that splits ask for."""
    for known in (reports.splits, reports.replicas, reports.merges):
        yield from known
    for heard in reports.splits.values():
        opening = heard.report.opening
        yield opening[1] if opening is not None else None
        yield from (lane.ask[1] for lane in heard.report.lanes if lane.ask is not None)


def in_rebuild(rebuild: Rebuild) -> Found:
    """Yields members that answered the muster, and splits that hold chunks."""
    yield from rebuild.present
    for holders in rebuild.copies.values():
        yield from holders
