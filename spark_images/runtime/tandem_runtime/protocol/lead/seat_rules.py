"""What the lead decides about seats and merges: who joins, who counts, who lapses, the trim."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import Hearsay, committed, delivered_through, faster
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
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.messages.peers import MergeReport
from tandem_runtime.protocol.types import Seat

_VERIFIED = SeatState.VERIFIED
"""Members at hand: looking one up on its class takes long in hot loops."""


def seatings(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    """Joiners that get a seat. Only a volume without state joins; it will copy.

    One of a generation to come waits while a lane is full: it would hold the trim point.
    """
    taken: set[tuple[str, int]] = set()
    for volume, heard in hear.replicas.items():
        pair = heard.report.pair
        if not heard.report.fresh or pair not in book.seats or volume in hear.gone:
            continue
        if hear.silent(volume, now) or book.seat_of(volume) is not None:
            continue
        if a_lane_is_full(hear) and is_shadow(book, pair):
            continue
        number = _seat_for(book, hear, pair, now)
        if number is not None and (pair, number) not in taken:
            taken.add((pair, number))
            yield Seated(pair, number, volume)


def _seat_for(book: Book, hear: Hearsay, pair: str, now: int) -> int | None:
    """The seat for a joiner: the empty one, else the lapsed one, else a silent one behind.

    Never the one ahead: with it the pair's state might go.
    """
    numbers = range(hear.intent.replicas if hear.intent else 2)
    seats = book.seats[pair]
    for number in numbers:
        if seats[number] is None:
            return number
    for number in numbers:
        seat, twin = seats[number], seats[1 - number]
        if seat is not None and _dispensable(seat, twin, hear, now):
            return number
    return None


def _dispensable(seat: Seat, twin: Seat | None, hear: Hearsay, now: int) -> bool:
    """May a seat be taken from its holder at once?

    A lapsed one, while its twin carries the pair; and one whose holder never had the state.
    """
    if seat.joins:
        return hear.silent(seat.volume, now)
    return seat.lapsed and carries(twin)


def carries(twin: Seat | None) -> bool:
    """Can a pair go on by this seat alone?"""
    return twin is not None and twin.state is _VERIFIED


def verifications(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Joiners whose copy is verified: full, late members from now on."""
    for pair, seats in book.seats.items():
        for number, seat in enumerate(seats):
            heard = hear.replicas.get(seat.volume) if seat is not None else None
            if seat is None or heard is None or not seat.joins:
                continue
            if heard.report.verified and heard.report.committed >= seat.hold:
                yield Verified(pair, number, seat.volume, heard.report.committed)


def vacancies(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Seats whose volume is gone for good, or has the state of another history."""
    for pair, seats in book.seats.items():
        for number, seat in enumerate(seats):
            if seat is not None and seat.volume in hear.gone:
                yield Vacated(pair, number, seat.volume, "gone")
            elif seat is not None and seat.volume in hear.foreign:
                yield Vacated(pair, number, seat.volume, "other history")


def sinks_ahead(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """A sink has an epoch that no header here knows: the header log was lost and rebuilt."""
    if "sinks" in book.lost:
        return
    if max(hear.delivered.values(), default=0) > book.epoch:
        yield DataLost("sinks", f"ahead of header {book.epoch}")
    elif any(_delivered_otherwise(book, heard.report) for heard in hear.merges.values()):
        yield DataLost("sinks", "have epochs of another history")


def _delivered_otherwise(book: Book, report: MergeReport) -> bool:
    """Has a merge delivered an epoch whose header here is another one?"""
    known = book.digest_of(report.delivered)
    return bool(report.delivered_digest) and known not in (None, report.delivered_digest)


def lost_pairs(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Pairs whose state nobody holds any more and nobody can rebuild: said aloud, once."""
    if book.generation == 0 or book.trim == 0:
        return
    pairs = {pair for names in book.names.values() for pair in names}
    stateless = {pair for pair in pairs if not _has_state(book.seats.get(pair, []))}
    if not stateless:
        return
    for pair in _answering_pairs(book, hear):
        if pair in stateless and pair not in book.lost and not build_sources(book, pair):
            yield DataLost(pair, "no replica holds its state")


def _has_state(seats: list[Seat | None]) -> bool:
    return any(seat is not None and seat.verified for seat in seats)


def _answering_pairs(book: Book, hear: Hearsay) -> list[str]:
    """Pairs that answer for epochs to come, or for one that is cut and not delivered.

    A retired pair's epochs are all delivered, even if a new lead has not heard of it yet.
    """
    delivered = delivered_through(book, hear)
    numbers = {h.generation for e, h in book.headers.items() if e > delivered}
    numbers.add(book.generation)
    pairs = dict.fromkeys(pair for n in sorted(numbers) for pair in book.pairs(n))
    return [pair for pair in pairs if pair not in book.retired]


def build_sources(book: Book, pair: str) -> tuple[tuple[str, ...], ...]:
    """Volumes that a pair without any state of its own can be rebuilt from, by parent pair.

    Parents run on, muted, until a new pair's both replicas stand on their own feet, so its keys'
    state can be had from them. Nothing if some parent has no full member left.
    """
    birth = next((g for g in book.generations.values() if g.parents_of(pair)), None)
    if birth is None:
        return ()
    groups = []
    for parent in birth.parents_of(pair):
        seats = [s for s in book.seats.get(parent, ()) if s and s.verified]
        if not seats:
            return ()
        groups.append(tuple(seat.volume for seat in seats))
    return tuple(groups)


def build_epoch(book: Book, hear: Hearsay, pair: str) -> int | None:
    """The epoch at which all parents' state is taken: the last one delivered.

    Later ones the new pair may have to answer for itself, and holders keep no earlier state. A new
    lead may know less of the sinks than the trim point says. None while some parent has not come
    that far.
    """
    epoch = max(book.trim, delivered_through(book, hear))
    birth = next(g for g in book.generations.values() if g.parents_of(pair))
    behind = any(faster(book, hear, parent) < epoch for parent in birth.parents_of(pair))
    return None if behind else epoch


def calls_to_lapse(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    """Replicas that are given up, once their twin has answered.

    Because a full lane waits for them, because a joiner waits for the seat of one that is silent,
    or because they gave another answer than their twin. Those of a generation to come that a full
    lane waits for go at once and first: nothing is lost with them.
    """
    behind = _seats_that_hold(book, hear) if a_lane_is_full(hear) else []
    shadows = [found for found in behind if is_shadow(book, found[0])]
    for pair, number, seat in shadows:
        yield Vacated(pair, number, seat.volume, "lapsed")
    called = [
        LapseCalled(pair, number, seat.volume)
        for pair, number, seat in behind
        if not seat.called and not shadows and _may_go(book, hear, pair, number, now)
    ]
    yield from called
    if not shadows and not called:
        yield from _others_to_call(book, hear, now)


def _others_to_call(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    differing = struck(hear)
    waiting = _pairs_with_joiners(book, hear, now)
    if not differing and not waiting:
        return
    for pair, seats in book.seats.items():
        if pair not in waiting and not _any_of(seats, differing):
            continue
        for number, seat in enumerate(seats):
            if seat is None or seat.state is not _VERIFIED:
                continue
            if _replaceable(book, hear, pair, number, now) or _differs(book, hear, pair, number):
                yield LapseCalled(pair, number, seat.volume)
                break


def answered_calls(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    """Calls to lapse that the twin has answered, or that are no longer needed.

    The twin's answer shows that it lived when the log already said that it is alone: had it died
    before, the one behind would still be the pair's second copy.
    """
    for pair, seats in book.seats.items():
        for number, seat in enumerate(seats):
            if seat is None or not seat.called:
                continue
            twin = seats[1 - number]
            heard = hear.replicas.get(twin.volume) if twin is not None else None
            if not _still_needed(book, hear, pair, number, now):
                yield LapseDropped(pair, number, seat.volume)
            elif heard is not None and heard.report.calls >= seat.call:
                yield Lapsed(pair, number, seat.volume)


def _still_needed(book: Book, hear: Hearsay, pair: str, number: int, now: int) -> bool:
    return (
        (a_lane_is_full(hear) and _may_go(book, hear, pair, number, now))
        or _replaceable(book, hear, pair, number, now)
        or _differs(book, hear, pair, number)
    )


def _replaceable(book: Book, hear: Hearsay, pair: str, number: int, now: int) -> bool:
    """Is a holder silent and not ahead, and does a joiner wait for a seat?"""
    seat, twin = book.seats[pair][number], book.seats[pair][1 - number]
    if seat is None or twin is None or not carries(twin) or not hear.silent(seat.volume, now):
        return False
    behind = committed(seat, hear) <= committed(twin, hear)
    return behind and pair in _pairs_with_joiners(book, hear, now)


def _pairs_with_joiners(book: Book, hear: Hearsay, now: int) -> set[str]:
    """Pairs for which somebody without a seat waits."""
    return {
        heard.report.pair
        for volume, heard in hear.replicas.items()
        if heard.report.fresh
        and heard.report.pair in book.seats
        and not hear.silent(volume, now)
        and book.seat_of(volume) is None
    }


def _differs(book: Book, hear: Hearsay, pair: str, number: int) -> bool:
    """Did a holder give another answer than its twin, which counts?"""
    seat, twin = book.seats[pair][number], book.seats[pair][1 - number]
    differing = struck(hear)
    if seat is None or twin is None or seat.volume not in differing:
        return False
    return carries(twin) and twin.volume not in differing


def struck(hear: Hearsay) -> set[str]:
    """Volumes that gave another answer than was delivered."""
    return {volume for heard in hear.merges.values() for _, _, volume in heard.report.differing}


def _any_of(seats: list[Seat | None], volumes: set[str]) -> bool:
    return any(seat is not None and seat.volume in volumes for seat in seats)


def a_lane_is_full(hear: Hearsay) -> bool:
    """Does some lane wait for room?"""
    for heard in hear.splits.values():
        for report in heard.report.lanes:
            if report.over_bound:
                return True
    return False


def is_shadow(book: Book, pair: str) -> bool:
    """Is a pair only of a generation to come? It can be built again, so nothing is lost with it."""
    return all(
        pair not in names for number, names in book.names.items() if number <= book.generation
    )


def _seats_that_hold(book: Book, hear: Hearsay) -> list[tuple[str, int, Seat]]:
    """The seats that keep the trim point where it is, if it is seats and not a sink."""
    standing = [
        (pair, number, seat)
        for pair, seats in book.seats.items()
        for number, seat in enumerate(seats)
        if seat is not None and not seat.lapsed
    ]
    lowest = min((committed(seat, hear) for _, _, seat in standing), default=0)
    if lowest >= min(book.epoch, delivered_through(book, hear)):
        return []
    return [found for found in standing if committed(found[2], hear) == lowest]


def _may_go(book: Book, hear: Hearsay, pair: str, number: int, now: int) -> bool:
    """Is a holder behind, and no longer to be waited for?

    Under backlog lanes are full all the time, and of two twins one is always behind. It comes soon,
    unless it is silent, or nothing could be forgotten for long.
    """
    seat = book.seats[pair][number]
    if seat is None or not may_lapse(book, hear, pair, number):
        return False
    return hear.silent(seat.volume, now) or any(lane.stuck for lane in hear.lanes.values())


def may_lapse(book: Book, hear: Hearsay, pair: str, number: int) -> bool:
    """May trimming go on by this seat's twin alone [5]?"""
    seat, twin = book.seats[pair][number], book.seats[pair][1 - number]
    if seat is None or twin is None or not twin.verified:
        return False
    return committed(twin, hear) > committed(seat, hear)


_NOBODY_SEATED: list[Seat | None] = [None, None]


def trim_point(book: Book, hear: Hearsay) -> Iterator[Entry]:
    """Everything every seat that has not lapsed has committed, and every sink has [5].

    Computed from seats that stand in the log. A pair of the current generation without any seat
    holds it where it is: somebody will have to rebuild that pair.
    """
    point = min(delivered_through(book, hear), book.epoch)
    for pair, seats in book.seats.items():
        for seat in seats:
            if seat is not None and not seat.lapsed:
                point = min(point, committed(seat, hear))
        if seats == _NOBODY_SEATED and book.generation and pair in book.pairs(book.generation):
            return
    if point > book.trim:
        yield Trimmed(point)


def merge_choices(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    """Slots whose active merge is missing, gone, silent or leaves get one that speaks and stays."""
    for slot in book.slots:
        active = book.merges.get(slot)
        if active and merge_stays(active, hear, now):
            continue
        speaking = [
            (-heard.at, volume)
            for volume, heard in hear.merges.items()
            if heard.report.slot == slot and volume != active and merge_stays(volume, hear, now)
        ]
        if speaking:
            yield MergeChosen(slot, min(speaking)[1])


def merge_stays(volume: str, hear: Hearsay, now: int) -> bool:
    """Is a merge there, as far as is known? One that has yet to report in this term may be."""
    heard = hear.merges.get(volume)
    leaving = heard is not None and heard.report.leaving
    return not leaving and volume not in hear.gone and not hear.silent(volume, now)
