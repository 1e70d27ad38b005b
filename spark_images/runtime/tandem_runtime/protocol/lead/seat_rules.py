"""Seat decisions of the lead: who sits, whose state is verified, whose seat is taken away."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import (
    PeerReports,
)
from tandem_runtime.protocol.log.entries import (
    Entry,
    Seated,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.types import Seat

_VERIFIED = SeatState.VERIFIED
"""Enum member bound to a global: class attribute lookup is slow in hot loops."""


def seat_joiners(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Seats joiners. Only a volume without state joins; it will copy.

    A joiner of a generation to come waits while a lane is full: it would hold the trim point.
    """
    taken: set[tuple[str, int]] = set()
    for volume, heard in reports.replicas.items():
        pair = heard.report.pair
        if not heard.report.fresh or pair not in log_state.seats or volume in reports.gone:
            continue
        if reports.silent(volume, now) or log_state.seat_of(volume) is not None:
            continue
        if is_any_lane_full(reports) and is_shadow(log_state, pair):
            continue
        number = _seat_for(log_state, reports, pair, now)
        if number is not None and (pair, number) not in taken:
            taken.add((pair, number))
            yield Seated(pair, number, volume)


def _seat_for(log_state: LogState, reports: PeerReports, pair: str, now: int) -> int | None:
    """Returns a joiner's seat: an empty one, else a lapsed one or a silent joiner's.

    Never that of the replica ahead: the pair's state might be lost with it.
    """
    numbers = range(reports.intent.replicas if reports.intent else 2)
    seats = log_state.seats[pair]
    for number in numbers:
        if seats[number] is None:
            return number
    for number in numbers:
        seat, twin = seats[number], seats[1 - number]
        if seat is not None and _dispensable(seat, twin, reports, now):
            return number
    return None


def _dispensable(seat: Seat, twin: Seat | None, reports: PeerReports, now: int) -> bool:
    """Whether a seat may be taken from its holder at once.

    True for a lapsed seat while its twin carries the pair, and for one whose holder is silent and
    never had the state.
    """
    if seat.joins:
        return reports.silent(seat.volume, now)
    return seat.lapsed and can_carry_pair(twin)


def can_carry_pair(twin: Seat | None) -> bool:
    """Whether a pair can run on this seat alone."""
    return twin is not None and twin.state is _VERIFIED


def verify_seats(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Makes joiners whose copy is verified full members; they may still be late."""
    for pair, seats in log_state.seats.items():
        for number, seat in enumerate(seats):
            heard = reports.replicas.get(seat.volume) if seat is not None else None
            if seat is None or heard is None or not seat.joins:
                continue
            if heard.report.verified and heard.report.committed >= seat.hold:
                yield Verified(pair, number, seat.volume, heard.report.committed)


def vacate_seats(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Vacates seats whose volume is gone for good, or has the state of another history."""
    for pair, seats in log_state.seats.items():
        for number, seat in enumerate(seats):
            if seat is not None and seat.volume in reports.gone:
                yield Vacated(pair, number, seat.volume, "gone")
            elif seat is not None and seat.volume in reports.foreign:
                yield Vacated(pair, number, seat.volume, "other history")


def is_any_lane_full(reports: PeerReports) -> bool:
    """Whether some lane waits for room."""
    for heard in reports.splits.values():
        for report in heard.report.lanes:
            if report.over_bound:
                return True
    return False


def is_shadow(log_state: LogState, pair: str) -> bool:
    """Whether a pair is only of a generation to come; it can be rebuilt, so no data is lost."""
    return all(
        pair not in names
        for number, names in log_state.names.items()
        if number <= log_state.generation
    )
