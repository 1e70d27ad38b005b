"""What the lead decides about seats and merges: who joins, who counts, who lapses, the trim."""

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
    """Joiners that get a seat. Only a volume without state joins; it will copy.

    One of a generation to come waits while a lane is full: it would hold the trim point.
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
    """The seat for a joiner: the empty one, else the lapsed one, else a silent one behind.

    Never the one ahead: with it the pair's state might go.
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
    """May a seat be taken from its holder at once?

    A lapsed one, while its twin carries the pair; and one whose holder never had the state.
    """
    if seat.joins:
        return reports.silent(seat.volume, now)
    return seat.lapsed and can_carry_pair(twin)


def can_carry_pair(twin: Seat | None) -> bool:
    """Can a pair go on by this seat alone?"""
    return twin is not None and twin.state is _VERIFIED


def verify_seats(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Joiners whose copy is verified: full, late members from now on."""
    for pair, seats in log_state.seats.items():
        for number, seat in enumerate(seats):
            heard = reports.replicas.get(seat.volume) if seat is not None else None
            if seat is None or heard is None or not seat.joins:
                continue
            if heard.report.verified and heard.report.committed >= seat.hold:
                yield Verified(pair, number, seat.volume, heard.report.committed)


def vacate_seats(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Seats whose volume is gone for good, or has the state of another history."""
    for pair, seats in log_state.seats.items():
        for number, seat in enumerate(seats):
            if seat is not None and seat.volume in reports.gone:
                yield Vacated(pair, number, seat.volume, "gone")
            elif seat is not None and seat.volume in reports.foreign:
                yield Vacated(pair, number, seat.volume, "other history")


def report_sinks_ahead(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """A sink has an epoch that no header here knows: the header log was lost and rebuilt."""
    if "sinks" in log_state.lost:
        return
    if max(reports.delivered.values(), default=0) > log_state.epoch:
        yield DataLost("sinks", f"ahead of header {log_state.epoch}")
    elif any(_delivered_otherwise(log_state, heard.report) for heard in reports.merges.values()):
        yield DataLost("sinks", "have epochs of another history")


def _delivered_otherwise(log_state: LogState, report: MergeReport) -> bool:
    """Has a merge delivered an epoch whose header here is another one?"""
    known = log_state.digest_of(report.delivered)
    return bool(report.delivered_digest) and known not in (None, report.delivered_digest)


def report_lost_pairs(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Pairs whose state nobody holds any more and nobody can rebuild: said aloud, once."""
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
    """Pairs that answer for epochs to come, or for one that is cut and not delivered.

    A retired pair's epochs are all delivered, even if a new lead has not heard of it yet.
    """
    delivered = delivered_through(log_state, reports)
    numbers = {h.generation for e, h in log_state.headers.items() if e > delivered}
    numbers.add(log_state.generation)
    pairs = dict.fromkeys(pair for n in sorted(numbers) for pair in log_state.pairs(n))
    return [pair for pair in pairs if pair not in log_state.retired]


def build_sources(log_state: LogState, pair: str) -> tuple[tuple[str, ...], ...]:
    """Volumes that a pair without any state of its own can be rebuilt from, by parent pair.

    Parents run on, muted, until a new pair's both replicas stand on their own feet, so its keys'
    state can be had from them. Nothing if some parent has no full member left.
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
    """The epoch at which all parents' state is taken: the last one delivered.

    Later ones the new pair may have to answer for itself, and holders keep no earlier state. A new
    lead may know less of the sinks than the trim point says. None while some parent has not come
    that far.
    """
    epoch = max(log_state.trim, delivered_through(log_state, reports))
    birth = next(g for g in log_state.generations.values() if g.parents_of(pair))
    behind = any(
        committed_by_faster(log_state, reports, parent) < epoch for parent in birth.parents_of(pair)
    )
    return None if behind else epoch


def call_lapses(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Replicas that are given up, once their twin has answered.

    Because a full lane waits for them, because a joiner waits for the seat of one that is silent,
    or because they gave another answer than their twin. Those of a generation to come that a full
    lane waits for go at once and first: nothing is lost with them.
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
    """Calls to lapse that the twin has answered, or that are no longer needed.

    The twin's answer shows that it lived when the log already said that it is alone: had it died
    before, the one behind would still be the pair's second copy.
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
    """Is a holder silent and not ahead, and does a joiner wait for a seat?"""
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
    """Pairs for which somebody without a seat waits."""
    return {
        heard.report.pair
        for volume, heard in reports.replicas.items()
        if heard.report.fresh
        and heard.report.pair in log_state.seats
        and not reports.silent(volume, now)
        and log_state.seat_of(volume) is None
    }


def _differs(log_state: LogState, reports: PeerReports, pair: str, number: int) -> bool:
    """Did a holder give another answer than its twin, which counts?"""
    seat, twin = log_state.seats[pair][number], log_state.seats[pair][1 - number]
    differing = diverged_volumes(reports)
    if seat is None or twin is None or seat.volume not in differing:
        return False
    return can_carry_pair(twin) and twin.volume not in differing


def diverged_volumes(reports: PeerReports) -> set[str]:
    """Volumes that gave another answer than was delivered."""
    return {volume for heard in reports.merges.values() for _, _, volume in heard.report.differing}


def _any_of(seats: list[Seat | None], volumes: set[str]) -> bool:
    return any(seat is not None and seat.volume in volumes for seat in seats)


def is_any_lane_full(reports: PeerReports) -> bool:
    """Does some lane wait for room?"""
    for heard in reports.splits.values():
        for report in heard.report.lanes:
            if report.over_bound:
                return True
    return False


def is_shadow(log_state: LogState, pair: str) -> bool:
    """Is a pair only of a generation to come? It can be built again, so nothing is lost with it."""
    return all(
        pair not in names
        for number, names in log_state.names.items()
        if number <= log_state.generation
    )


def _seats_that_hold(log_state: LogState, reports: PeerReports) -> list[tuple[str, int, Seat]]:
    """The seats that keep the trim point where it is, if it is seats and not a sink."""
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
    """Is a holder behind, and no longer to be waited for?

    Under backlog lanes are full all the time, and of two twins one is always behind. It comes soon,
    unless it is silent, or nothing could be forgotten for long.
    """
    seat = log_state.seats[pair][number]
    if seat is None or not can_lapse(log_state, reports, pair, number):
        return False
    return reports.silent(seat.volume, now) or any(lane.stuck for lane in reports.lanes.values())


def can_lapse(log_state: LogState, reports: PeerReports, pair: str, number: int) -> bool:
    """May trimming go on by this seat's twin alone [5]?"""
    seat, twin = log_state.seats[pair][number], log_state.seats[pair][1 - number]
    if seat is None or twin is None or not twin.verified:
        return False
    return committed(twin, reports) > committed(seat, reports)


_NOBODY_SEATED: list[Seat | None] = [None, None]


def trim_point(log_state: LogState, reports: PeerReports) -> Iterator[Entry]:
    """Everything every seat that has not lapsed has committed, and every sink has [5].

    Computed from seats that stand in the log. A pair of the current generation without any seat
    holds it where it is: somebody will have to rebuild that pair.
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
    """Slots whose active merge is missing, gone, silent or leaves get one that speaks and stays."""
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
    """Is a merge there, as far as is known? One that has yet to report in this term may be."""
    heard = reports.merges.get(volume)
    leaving = heard is not None and heard.report.leaving
    return not leaving and volume not in reports.gone and not reports.silent(volume, now)
