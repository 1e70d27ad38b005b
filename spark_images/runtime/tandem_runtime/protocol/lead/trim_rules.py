"""Trim decision of the lead: which chunks lanes may erase."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.peer_reports import PeerReports, committed, delivered_through
from tandem_runtime.protocol.log.entries import Entry, Trimmed
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.types import Seat

_BOTH_SEATS_FREE: list[Seat | None] = [None, None]


def trim_point(log_state: LogState, reports: PeerReports) -> Iterator[Entry]:
    """Raises the trim point to what every unlapsed seat has committed and every sink has [5].

    Computed from seats that stand in the log. A pair of the current generation without any seat
    holds the trim point: a joiner will have to rebuild that pair.
    """
    point = min(delivered_through(log_state, reports), log_state.epoch)
    for pair, seats in log_state.seats.items():
        for seat in seats:
            if seat is not None and not seat.lapsed:
                point = min(point, committed(seat, reports))
        if (
            seats == _BOTH_SEATS_FREE
            and log_state.generation
            and pair in log_state.pairs(log_state.generation)
        ):
            return
    if point > log_state.trim:
        yield Trimmed(point)
