"""What the lead decides about lanes: opening, second copies, closing, owners of partitions.

For a lane the header log plays the part that the register plays for the header log.
"""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.peer_reports import PeerReports, committed, committed_by_faster
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
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import SealedCopy
from tandem_runtime.protocol.states import LaneState, PartitionState
from tandem_runtime.protocol.types import Lane, LaneId, Mark

_OPEN, _CLOSING, _CLOSED = LaneState
_ENDED, _RELEASED = PartitionState.ENDED, PartitionState.RELEASED
"""Members at hand: looking one up on its class takes long in hot loops."""


def open_requested_lanes(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Lanes that splits ask for. A lane takes no row before this is published."""
    for split, heard in reports.splits.items():
        asked = heard.report.opening
        if asked is None or heard.report.leaving or split in reports.gone:
            continue
        lane, buddy = asked
        if lane.number > log_state.lane_numbers.get(split, 0) and lane not in log_state.lanes:
            yield LaneOpened(lane, None if buddy in reports.gone else buddy)


def change_buddies(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Changes of second copies that owners ask for; refused while a lane is closing."""
    for lane, state in log_state.lanes.items():
        report = reports.lanes.get(lane)
        if (
            state.state is not _OPEN
            or report is None
            or not report.live
            or lane.split in reports.gone
        ):
            continue
        if report.ask is not None:
            view, buddy = report.ask
            if view > state.view:
                yield BuddyChanged(lane, view, buddy)


def begin_closing_lanes(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Lanes whose owner is gone, silent, or says itself that the lane takes no more rows."""
    for lane, state in log_state.lanes.items():
        if state.state is not _OPEN:
            continue
        report = reports.lanes.get(lane)
        ended = report is not None and not report.live
        if ended or lane.split in reports.gone or reports.silent(lane.split, now):
            yield LaneClosing(lane)


def close_or_resume_lanes(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Lanes being closed whose end is known now, or whose closing is cancelled.

    The recorded buddy's answer counts: it refuses copies since, so nothing beyond it was ever
    acknowledged to a source. The owner's word counts where no buddy can answer.
    """
    for lane, state in log_state.lanes.items():
        if state.state is not _CLOSING:
            continue
        sealed = _buddy_answer(reports, lane, state)
        if sealed is not None:
            # A buddy filled late need not have what was forgotten before it was told so.
            yield LaneClosed(lane, max(sealed.through, state.trimmed), sealed.notes)
            continue
        if state.buddy and state.buddy not in reports.gone and not reports.silent(state.buddy, now):
            continue
        report = reports.lanes.get(lane)
        if lane.split in reports.gone:
            if _nobody_has(reports, lane, state):
                # Rows beyond are read again from the source, which says so if it cannot.
                yield LaneClosed(lane, state.reach, ())
        elif report is not None and not reports.silent(lane.split, now):
            if report.live:
                yield LaneResumed(lane)
            else:
                notes = tuple(note for note in report.notes if note[0] > state.reach)
                yield LaneClosed(lane, report.through, notes, alone=True)


def _buddy_answer(reports: PeerReports, lane: LaneId, state: Lane) -> SealedCopy | None:
    """What the recorded buddy, having sealed its copy, says is the lane's last chunk."""
    heard = reports.splits.get(state.buddy) if state.buddy else None
    if heard is None:
        return None
    for copy in heard.report.sealed:
        if copy.lane == lane and copy.view == state.view:
            return copy
    return None


def report_lost_lanes(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Closed lanes of which both copies are gone while somebody may still need them.

    Their rows are lost unless every pair has a replica that is past them; its twin lapses [5].
    Replicas of other generations that would need them let go.
    """
    told: set[str] = set()
    for lane, state in log_state.lanes.items():
        name = _named(lane)
        if (
            state.state is not _CLOSED
            or name in log_state.lost
            or not _nobody_has(reports, lane, state)
        ):
            continue
        epochs = [e for e, h in log_state.headers.items() if any(s.lane == lane for s in h.spans)]
        last = max(epochs, default=0)
        current = log_state.pairs(log_state.generation) if log_state.generation else ()
        needing = [pair for pair in current if committed_by_faster(log_state, reports, pair) < last]
        if needing:
            yield DataLost(name, f"needed by {needing[0]}")
            continue
        for pair, seats in log_state.seats.items():
            for number, seat in enumerate(seats):
                if seat is None or not seat.verified or seat.volume in told:
                    continue
                if committed(seat, reports) >= last:
                    continue
                told.add(seat.volume)
                if pair in current:
                    yield Lapsed(pair, number, seat.volume)
                else:
                    yield Vacated(pair, number, seat.volume, "lapsed")


def _named(lane: LaneId) -> str:
    """What a lane is called where its rows are lost."""
    return f"lane {lane.split}/{lane.number}"


def has_rows_at_risk(log_state: LogState, reports: PeerReports) -> bool:
    """Does a closed lane that is still needed have fewer than two copies on splits that stay?

    An open one gets another buddy; nobody copies a closed one again.
    """
    leaving = {split for split, heard in reports.splits.items() if heard.report.leaving}
    return any(
        state.state is _CLOSED
        and state.trimmed < state.last
        and _named(lane) not in log_state.lost
        and any(split is None or split in reports.gone or split in leaving for split in copies)
        for lane, state in log_state.lanes.items()
        for copies in ((lane.split, state.buddy),)
    )


def _nobody_has(reports: PeerReports, lane: LaneId, state: Lane) -> bool:
    return lane.split in reports.gone and (state.buddy is None or state.buddy in reports.gone)


def assign_partitions(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Source partitions that need an owner, given to the lanes with the fewest [9]."""
    streams = reports.intent.streams if reports.intent is not None else ()
    free = [
        p for stream in streams for p in stream.partitions if can_assign_partition(log_state, p)
    ]
    load = partitions_by_open_lane(log_state, reports) if free else {}
    for partition in free if load else ():
        lane = min(load, key=lambda lane: load[lane])
        load[lane] += 1
        yield PartitionOwned(partition, lane)


def can_assign_partition(log_state: LogState, partition: str) -> bool:
    """May a new owner start to read a partition?

    Only once a published header covers everything its former owner took in, so that the new
    one's rows come in later epochs and its start stands in that header [9].
    """
    mark = log_state.marks.get(partition)
    if mark is not None and mark.state is _ENDED:
        return False
    owner = log_state.owners.get(partition)
    lane = log_state.lanes.get(owner) if owner is not None else None
    if lane is None or (mark is not None and mark.state is _RELEASED):
        return True
    return lane.state is _CLOSED and lane.reach == lane.last


def partitions_by_open_lane(log_state: LogState, reports: PeerReports) -> dict[LaneId, int]:
    """Lanes that can take partitions, with how many they have."""
    load: dict[LaneId, int] = {}
    for lane, state in log_state.lanes.items():
        heard = reports.splits.get(lane.split)
        if state.state is _OPEN and heard is not None and not heard.report.leaving:
            load[lane] = 0
    for partition, owner in log_state.owners.items():
        mark = log_state.marks.get(partition)
        if owner in load and (mark is None or mark.state is not _ENDED):
            load[owner] += 1
    return load


def partitions_to_release(log_state: LogState, reports: PeerReports) -> dict[str, str]:
    """Partitions to be let go, by split, because another lane has two fewer."""
    load = partitions_by_open_lane(log_state, reports)
    if not load or max(load.values()) - min(load.values()) <= 1:
        return {}
    if any(can_assign_partition(log_state, partition) for partition in log_state.owners):
        return {}
    most = max(load, key=lambda lane: load[lane])
    active = [
        partition
        for partition, owner in log_state.owners.items()
        if owner == most and log_state.marks.get(partition, Mark(0, 0)).state.is_read
    ]
    return {most.split: active[-1]} if active else {}


def report_lost_partitions(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Sources that can no longer give rows that are needed: said aloud, once.

    Only the present owner's word counts: a former one asks for rows that others have long taken.
    """
    for split, heard in reports.splits.items():
        for partition in heard.report.lost:
            owner = log_state.owners.get(partition)
            if owner is None or owner.split != split or partition in log_state.lost:
                continue
            lane = reports.lanes.get(owner)
            if lane is not None and lane.live:
                yield DataLost(partition, "the source has forgotten rows that are needed")
