"""From which parents and at which epoch a new pair copies its state, and what is pinned for it."""

from __future__ import annotations

from tandem_runtime.protocol.lead.peer_reports import (
    PeerReports,
    committed_by_faster,
    delivered_through,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.types import Seat


def build_sources(log_state: LogState, pair: str) -> tuple[tuple[str, ...], ...]:
    """Returns the volumes that a pair without state can be rebuilt from, by parent pair.

    Parents keep running, muted, until both replicas of a new pair have committed, so they still
    have the state of its keys. Empty if some parent has no full member left.
    """
    birth = next((g for g in log_state.generations.values() if g.parents_of(pair)), None)
    if birth is None:
        return ()
    groups = []
    for parent in birth.parents_of(pair):
        seats = [s for s in log_state.seats.get(parent, ()) if s and s.verified]
        if not seats:
            return ()
        groups.append(tuple(seat.volume for seat in seats))
    return tuple(groups)


def build_epoch(log_state: LogState, reports: PeerReports, pair: str) -> int | None:
    """Returns the epoch at which all parents' state is taken: the last one delivered.

    The new pair may have to answer for later epochs itself, and holders keep no earlier state. The
    trim point may be ahead of what a new lead knows of the sinks. None while some parent has not
    committed that epoch.
    """
    epoch = max(log_state.trim, delivered_through(log_state, reports))
    birth = next(g for g in log_state.generations.values() if g.parents_of(pair))
    behind = any(
        committed_by_faster(log_state, reports, parent) < epoch for parent in birth.parents_of(pair)
    )
    return None if behind else epoch


def pinned_epochs(log_state: LogState, reports: PeerReports, parent: str) -> tuple[int, ...]:
    """Returns the epochs at which new pairs copy, or may copy, this parent's state, in order.

    A joiner that has not reported its epoch was told one that is not before its seat's hold.
    """
    epochs = {
        building_epoch(seat, reports) or seat.hold
        for child in _children(log_state, parent)
        for seats in (log_state.seats.get(child, ()),)
        if not any(seat and seat.verified for seat in seats)
        for seat in seats
        if seat is not None and seat.joins
    }
    return tuple(sorted(epochs))


def _children(log_state: LogState, parent: str) -> set[str]:
    return {
        pair.name
        for generation in log_state.generations.values()
        for pair in generation.pairs
        if parent in pair.parents
    }


def building_epoch(seat: Seat, reports: PeerReports) -> int | None:
    """Returns the epoch at which a joiner reports to copy its parents, if its seat allows it.

    With the state of an epoch before the seat's hold, rows that it needs may be trimmed.
    """
    heard = reports.replicas.get(seat.volume)
    epoch = heard.report.building if heard is not None else None
    return epoch if epoch is not None and epoch >= seat.hold else None
