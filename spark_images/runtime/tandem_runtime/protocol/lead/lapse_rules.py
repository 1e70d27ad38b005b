"""Lapse decisions of the lead: which replica trimming no longer waits for [5]."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import (
    PeerReports,
    committed,
    delivered_through,
)
from tandem_runtime.protocol.lead.seat_rules import can_carry_pair, is_any_lane_full, is_shadow
from tandem_runtime.protocol.log.entries import (
    Entry,
    LapseCalled,
    Lapsed,
    LapseDropped,
    Vacated,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.types import Seat

_VERIFIED = SeatState.VERIFIED
"""Enum member bound to a global: class attribute lookup is slow in hot loops."""


def call_lapses(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Calls replicas to lapse; they do once their twin has answered.

    The causes: a full lane waits for the replica, a joiner waits for its seat while it is silent,
    or its answer differs from its twin's. Replicas of a generation to come that a full lane waits
    for are vacated at once and first: nothing is lost with them.
    """
    behind = _seats_that_hold(log_state, reports) if is_any_lane_full(reports) else []
    shadows = [found for found in behind if is_shadow(log_state, found[0])]
    for pair, number, seat in shadows:
        yield Vacated(pair, number, seat.volume, "lapsed")
    called = [
        LapseCalled(pair, number, seat.volume)
        for pair, number, seat in behind
        if not seat.called and not shadows and _may_go(log_state, reports, pair, number, now)
    ]
    yield from called
    if not shadows and not called:
        yield from _others_to_call(log_state, reports, now)


def _others_to_call(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    differing = diverged_volumes(reports)
    waiting = _pairs_with_joiners(log_state, reports, now)
    if not differing and not waiting:
        return
    for pair, seats in log_state.seats.items():
        if pair not in waiting and not _any_of(seats, differing):
            continue
        for number, seat in enumerate(seats):
            if seat is None or seat.state is not _VERIFIED:
                continue
            if _replaceable(log_state, reports, pair, number, now) or _differs(
                log_state, reports, pair, number
            ):
                yield LapseCalled(pair, number, seat.volume)
                break


def answer_lapse_calls(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Ends calls to lapse that the twin has answered, or that are no longer needed.

    The twin's answer shows that it was alive after the log recorded the call: had it died before,
    the replica behind would still be the pair's second copy.
    """
    for pair, seats in log_state.seats.items():
        for number, seat in enumerate(seats):
            if seat is None or not seat.called:
                continue
            twin = seats[1 - number]
            heard = reports.replicas.get(twin.volume) if twin is not None else None
            if not _still_needed(log_state, reports, pair, number, now):
                yield LapseDropped(pair, number, seat.volume)
            elif heard is not None and heard.report.calls >= seat.call:
                yield Lapsed(pair, number, seat.volume)


def _still_needed(
    log_state: LogState, reports: PeerReports, pair: str, number: int, now: int
) -> bool:
    return (
        (is_any_lane_full(reports) and _may_go(log_state, reports, pair, number, now))
        or _replaceable(log_state, reports, pair, number, now)
        or _differs(log_state, reports, pair, number)
    )


def _replaceable(
    log_state: LogState, reports: PeerReports, pair: str, number: int, now: int
) -> bool:
    """Whether a holder is silent and not ahead while a joiner waits for a seat."""
    seat, twin = log_state.seats[pair][number], log_state.seats[pair][1 - number]
    if (
        seat is None
        or twin is None
        or not can_carry_pair(twin)
        or not reports.silent(seat.volume, now)
    ):
        return False
    behind = committed(seat, reports) <= committed(twin, reports)
    return behind and pair in _pairs_with_joiners(log_state, reports, now)


def _pairs_with_joiners(log_state: LogState, reports: PeerReports, now: int) -> set[str]:
    """Returns pairs for which a joiner waits without a seat."""
    return {
        heard.report.pair
        for volume, heard in reports.replicas.items()
        if heard.report.fresh
        and heard.report.pair in log_state.seats
        and not reports.silent(volume, now)
        and log_state.seat_of(volume) is None
    }


def _differs(log_state: LogState, reports: PeerReports, pair: str, number: int) -> bool:
    """Whether a holder's answer differs from that of its twin, whose answer counts."""
    seat, twin = log_state.seats[pair][number], log_state.seats[pair][1 - number]
    differing = diverged_volumes(reports)
    if seat is None or twin is None or seat.volume not in differing:
        return False
    return can_carry_pair(twin) and twin.volume not in differing


def diverged_volumes(reports: PeerReports) -> set[str]:
    """Returns volumes whose answer differs from the delivered one."""
    return {volume for heard in reports.merges.values() for _, _, volume in heard.report.differing}


def _any_of(seats: list[Seat | None], volumes: set[str]) -> bool:
    return any(seat is not None and seat.volume in volumes for seat in seats)


def _seats_that_hold(log_state: LogState, reports: PeerReports) -> list[tuple[str, int, Seat]]:
    """Returns the seats that hold the trim point back, unless a sink does."""
    standing = [
        (pair, number, seat)
        for pair, seats in log_state.seats.items()
        for number, seat in enumerate(seats)
        if seat is not None and not seat.lapsed
    ]
    lowest = min((committed(seat, reports) for _, _, seat in standing), default=0)
    if lowest >= min(log_state.epoch, delivered_through(log_state, reports)):
        return []
    return [found for found in standing if committed(found[2], reports) == lowest]


def _may_go(log_state: LogState, reports: PeerReports, pair: str, number: int, now: int) -> bool:
    """Whether a holder is behind and the lanes need not wait for it any longer.

    Under backlog lanes are full all the time, and one of two twins is always behind. It catches up
    soon, unless it is silent, or no chunk could be trimmed for long.
    """
    seat = log_state.seats[pair][number]
    if seat is None or not can_lapse(log_state, reports, pair, number):
        return False
    return reports.silent(seat.volume, now) or any(lane.stuck for lane in reports.lanes.values())


def can_lapse(log_state: LogState, reports: PeerReports, pair: str, number: int) -> bool:
    """Whether trimming may depend on this seat's twin alone [5]."""
    seat, twin = log_state.seats[pair][number], log_state.seats[pair][1 - number]
    if seat is None or twin is None or not twin.verified:
        return False
    return committed(twin, reports) > committed(seat, reports)
