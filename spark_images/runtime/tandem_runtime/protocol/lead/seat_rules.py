"""Seat and merge decisions of the lead: seating, verification, lapses, the trim point."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import (
    PeerReports,
    committed,
    committed_by_faster,
    delivered_through,
)
from tandem_runtime.protocol.log.entries import (
    DataLost,
    Entry,
    LapseCalled,
    Lapsed,
    LapseDropped,
    MergeChosen,
    Seated,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import MergeReport
from tandem_runtime.protocol.types import Seat

_VERIFIED = SeatState.VERIFIED
"""Members at hand: looking one up on its class takes long in hot loops."""


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
    for pair in _answering_pairs(log_state, reports):
        if pair in stateless and pair not in log_state.lost and not build_sources(log_state, pair):
            yield DataLost(pair, "no replica holds its state")


def _has_state(seats: list[Seat | None]) -> bool:
    return any(seat is not None and seat.verified for seat in seats)


def _answering_pairs(log_state: LogState, reports: PeerReports) -> list[str]:
    """Returns pairs that answer for epochs to come, or for one that is cut and not delivered.

    A retired pair's epochs are all delivered, even if a new lead has no report of that yet.
    """
    delivered = delivered_through(log_state, reports)
    numbers = {h.generation for e, h in log_state.headers.items() if e > delivered}
    numbers.add(log_state.generation)
    pairs = dict.fromkeys(pair for n in sorted(numbers) for pair in log_state.pairs(n))
    return [pair for pair in pairs if pair not in log_state.retired]


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

    The twin's answer shows that it lived when the log already recorded it as alone: had it died
    before, the replica behind would still be the pair's second copy.
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


_NOBODY_SEATED: list[Seat | None] = [None, None]


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
            seats == _NOBODY_SEATED
            and log_state.generation
            and pair in log_state.pairs(log_state.generation)
        ):
            return
    if point > log_state.trim:
        yield Trimmed(point)


def choose_merges(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Replaces active merges that are missing, gone, silent or leaving by one that reports."""
    for slot in log_state.slots:
        active = log_state.merges.get(slot)
        if active and is_merge_present(active, reports, now):
            continue
        speaking = [
            (-heard.at, volume)
            for volume, heard in reports.merges.items()
            if heard.report.slot == slot
            and volume != active
            and is_merge_present(volume, reports, now)
        ]
        if speaking:
            yield MergeChosen(slot, min(speaking)[1])


def is_merge_present(volume: str, reports: PeerReports, now: int) -> bool:
    """Whether a merge is present, as far as is known; it may have yet to report in this term."""
    heard = reports.merges.get(volume)
    leaving = heard is not None and heard.report.leaving
    return not leaving and volume not in reports.gone and not reports.silent(volume, now)
