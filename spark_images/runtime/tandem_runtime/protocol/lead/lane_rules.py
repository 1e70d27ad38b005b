"""What the lead decides about lanes: opening, second copies, closing, owners of partitions.

For a lane the header log plays the part that the register plays for the header log.
"""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.peer_reports import Hearsay, committed, faster
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    DataLost,
    Entry,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    Lapsed,
    PartitionOwned,
    Vacated,
)
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.messages.peers import SealedCopy
from tandem_runtime.protocol.states import LaneState, PartitionState
from tandem_runtime.protocol.types import Lane, LaneId, Mark

_OPEN, _CLOSING, _CLOSED = LaneState
_ENDED, _RELEASED = PartitionState.ENDED, PartitionState.RELEASED
"""Members at hand: looking one up on its class takes long in hot loops."""


def openings(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Lanes that splits ask for. A lane takes no row before this is published."""
    for split, heard in hear.splits.items():
        asked = heard.report.opening
        if asked is None or heard.report.leaving or split in hear.gone:
            continue
        lane, buddy = asked
        if lane.number > book.lane_numbers.get(split, 0) and lane not in book.lanes:
            yield LaneOpened(lane, None if buddy in hear.gone else buddy)


def buddy_changes(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Changes of second copies that owners ask for; refused while a lane is closing."""
    for lane, state in book.lanes.items():
        report = hear.lanes.get(lane)
        if state.state is not _OPEN or report is None or not report.live or lane.split in hear.gone:
            continue
        if report.ask is not None:
            view, buddy = report.ask
            if view > state.view:
                yield BuddyChanged(lane, view, buddy)


def closings(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    """Lanes whose owner is gone, silent, or says itself that the lane takes no more rows."""
    for lane, state in book.lanes.items():
        if state.state is not _OPEN:
            continue
        report = hear.lanes.get(lane)
        ended = report is not None and not report.live
        if ended or lane.split in hear.gone or hear.silent(lane.split, now):
            yield LaneClosing(lane)


def settlements(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    """Lanes being closed whose end is known now, or whose closing is cancelled.

    The recorded buddy's answer counts: it refuses copies since, so nothing beyond it was ever
    acknowledged to a source. The owner's word counts where no buddy can answer.
    """
    for lane, state in book.lanes.items():
        if state.state is not _CLOSING:
            continue
        sealed = _buddy_answer(hear, lane, state)
        if sealed is not None:
            # A buddy filled late need not have what was forgotten before it was told so.
            yield LaneClosed(lane, max(sealed.through, state.trimmed), sealed.notes)
            continue
        if state.buddy and state.buddy not in hear.gone and not hear.silent(state.buddy, now):
            continue
        report = hear.lanes.get(lane)
        if lane.split in hear.gone:
            if _nobody_has(hear, lane, state):
                # Rows beyond are read again from the source, which says so if it cannot.
                yield LaneClosed(lane, state.reach, ())
        elif report is not None and not hear.silent(lane.split, now):
            if report.live:
                yield LaneResumed(lane)
            else:
                notes = tuple(note for note in report.notes if note[0] > state.reach)
                yield LaneClosed(lane, report.through, notes, alone=True)


def _buddy_answer(hear: Hearsay, lane: LaneId, state: Lane) -> SealedCopy | None:
    """What the recorded buddy, having sealed its copy, says is the lane's last chunk."""
    heard = hear.splits.get(state.buddy) if state.buddy else None
    if heard is None:
        return None
    for copy in heard.report.sealed:
        if copy.lane == lane and copy.view == state.view:
            return copy
    return None


def lost_lanes(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Closed lanes of which both copies are gone while somebody may still need them.

    Their rows are lost unless every pair has a replica that is past them; its twin lapses [5].
    Replicas of other generations that would need them let go.
    """
    told: set[str] = set()
    for lane, state in book.lanes.items():
        name = _named(lane)
        if state.state is not _CLOSED or name in book.lost or not _nobody_has(hear, lane, state):
            continue
        epochs = [e for e, h in book.headers.items() if any(s.lane == lane for s in h.spans)]
        last = max(epochs, default=0)
        current = book.pairs(book.generation) if book.generation else ()
        needing = [pair for pair in current if faster(book, hear, pair) < last]
        if needing:
            yield DataLost(name, f"needed by {needing[0]}")
            continue
        for pair, seats in book.seats.items():
            for number, seat in enumerate(seats):
                if seat is None or not seat.verified or seat.volume in told:
                    continue
                if committed(seat, hear) >= last:
                    continue
                told.add(seat.volume)
                if pair in current:
                    yield Lapsed(pair, number, seat.volume)
                else:
                    yield Vacated(pair, number, seat.volume, "lapsed")


def _named(lane: LaneId) -> str:
    """What a lane is called where its rows are lost."""
    return f"lane {lane.split}/{lane.number}"


def rows_at_risk(book: Book, hear: Hearsay) -> bool:
    """Does a closed lane that is still needed have fewer than two copies on splits that stay?

    An open one gets another buddy; nobody copies a closed one again.
    """
    leaving = {split for split, heard in hear.splits.items() if heard.report.leaving}
    return any(
        state.state is _CLOSED
        and state.trimmed < state.last
        and _named(lane) not in book.lost
        and any(split is None or split in hear.gone or split in leaving for split in copies)
        for lane, state in book.lanes.items()
        for copies in ((lane.split, state.buddy),)
    )


def _nobody_has(hear: Hearsay, lane: LaneId, state: Lane) -> bool:
    return lane.split in hear.gone and (state.buddy is None or state.buddy in hear.gone)


def ownerships(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Source partitions that need an owner, given to the lanes with the fewest [9]."""
    streams = hear.intent.streams if hear.intent is not None else ()
    free = [p for stream in streams for p in stream.partitions if may_get_owner(book, p)]
    load = open_lanes(book, hear) if free else {}
    for partition in free if load else ():
        lane = min(load, key=lambda lane: load[lane])
        load[lane] += 1
        yield PartitionOwned(partition, lane)


def may_get_owner(book: Book, partition: str) -> bool:
    """May a new owner start to read a partition?

    Only once a published header covers everything its former owner took in, so that the new
    one's rows come in later epochs and its start stands in that header [9].
    """
    mark = book.marks.get(partition)
    if mark is not None and mark.state is _ENDED:
        return False
    owner = book.owners.get(partition)
    lane = book.lanes.get(owner) if owner is not None else None
    if lane is None or (mark is not None and mark.state is _RELEASED):
        return True
    return lane.state is _CLOSED and lane.reach == lane.last


def open_lanes(book: Book, hear: Hearsay) -> dict[LaneId, int]:
    """Lanes that can take partitions, with how many they have."""
    load: dict[LaneId, int] = {}
    for lane, state in book.lanes.items():
        heard = hear.splits.get(lane.split)
        if state.state is _OPEN and heard is not None and not heard.report.leaving:
            load[lane] = 0
    for partition, owner in book.owners.items():
        mark = book.marks.get(partition)
        if owner in load and (mark is None or mark.state is not _ENDED):
            load[owner] += 1
    return load


def releases(book: Book, hear: Hearsay) -> dict[str, str]:
    """Partitions to be let go, by split, because another lane has two fewer."""
    load = open_lanes(book, hear)
    if not load or max(load.values()) - min(load.values()) <= 1:
        return {}
    if any(may_get_owner(book, partition) for partition in book.owners):
        return {}
    most = max(load, key=lambda lane: load[lane])
    active = [
        partition
        for partition, owner in book.owners.items()
        if owner == most and book.marks.get(partition, Mark(0, 0)).state.is_read
    ]
    return {most.split: active[-1]} if active else {}


def lost_partitions(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Sources that can no longer give rows that are needed: said aloud, once.

    Only the present owner's word counts: a former one asks for rows that others have long taken.
    """
    for split, heard in hear.splits.items():
        for partition in heard.report.lost:
            owner = book.owners.get(partition)
            if owner is None or owner.split != split or partition in book.lost:
                continue
            lane = hear.lanes.get(owner)
            if lane is not None and lane.live:
                yield DataLost(partition, "the source has forgotten rows that are needed")
