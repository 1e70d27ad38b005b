"""Lane decisions of the lead: open, change the buddy, close, assign partitions.

The header log records the buddy of a lane, as the register records that of the header log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tandem_runtime.protocol.lead.loss_rules import answering_pairs
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
from tandem_runtime.protocol.types import Lane, LaneId, Mark, Seat

_OPEN, _CLOSING, _CLOSED = LaneState
_ENDED, _RELEASED = PartitionState.ENDED, PartitionState.RELEASED
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


def open_requested_lanes(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Opens the lanes that splits ask for. A lane takes no row before this is published."""
    for split, heard in reports.splits.items():
        asked = heard.report.opening
        if asked is None or heard.report.leaving or split in reports.gone:
            continue
        lane, buddy = asked
        if lane.number > log_state.lane_numbers.get(split, 0) and lane not in log_state.lanes:
            yield LaneOpened(lane, None if buddy in reports.gone else buddy)


def change_buddies(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Records changes of buddies that owners ask for; none while a lane is closing."""
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
    """Starts to close lanes whose owner is gone, is silent, or has ended the lane itself."""
    for lane, state in log_state.lanes.items():
        if state.state is not _OPEN:
            continue
        report = reports.lanes.get(lane)
        ended = report is not None and not report.live
        if ended or lane.split in reports.gone or reports.silent(lane.split, now):
            yield LaneClosing(lane)


def close_or_resume_lanes(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Closes lanes whose end is known now, or cancels their closing.

    The recorded buddy's answer counts: it refuses copies since, so no later chunk was ever
    acknowledged to a source. The owner's report counts where no buddy can answer.
    """
    for lane, state in log_state.lanes.items():
        if state.state is not _CLOSING:
            continue
        sealed = _buddy_answer(reports, lane, state)
        if sealed is not None:
            # A buddy filled late may lack chunks that were trimmed before.
            yield LaneClosed(lane, max(sealed.through, state.trimmed), sealed.notes)
            continue
        if state.buddy and state.buddy not in reports.gone and not reports.silent(state.buddy, now):
            continue
        report = reports.lanes.get(lane)
        if lane.split in reports.gone:
            if _are_both_copies_gone(reports, lane, state):
                # Later rows are read again from the source, which reports if it cannot.
                yield LaneClosed(lane, state.reach, ())
        elif report is not None and not reports.silent(lane.split, now):
            if report.live:
                yield LaneResumed(lane)
            else:
                notes = tuple(note for note in report.notes if note[0] > state.reach)
                yield LaneClosed(lane, report.through, notes, alone=True)


def _buddy_answer(reports: PeerReports, lane: LaneId, state: Lane) -> SealedCopy | None:
    """Returns the sealed copy that the recorded buddy reports; it ends with the last chunk."""
    heard = reports.splits.get(state.buddy) if state.buddy else None
    if heard is None:
        return None
    for copy in heard.report.sealed:
        if copy.lane == lane and copy.view == state.view:
            return copy
    return None


def report_lost_lanes(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Reports closed lanes of which both copies are gone while a replica may still need them.

    Their rows are lost unless every pair that is to answer for them has a replica that is past
    them; its twin lapses [5].
    """
    told: set[str] = set()
    for lane, state in log_state.lanes.items():
        name = _named(lane)
        if (
            state.state is not _CLOSED
            or name in log_state.lost
            or not _are_both_copies_gone(reports, lane, state)
        ):
            continue
        epochs = [e for e, h in log_state.headers.items() if any(s.lane == lane for s in h.spans)]
        needing = _pairs_needing(log_state, reports, epochs)
        if needing:
            yield DataLost(name, f"needed by {needing[0]}")
            continue
        for pair, number, seat in _seats_behind(log_state, reports, max(epochs, default=0)):
            if seat.volume not in told:
                told.add(seat.volume)
                if pair in _current_pairs(log_state):
                    yield Lapsed(pair, number, seat.volume)
                else:
                    yield Vacated(pair, number, seat.volume, "lapsed")


def _seats_behind(
    log_state: LogState, reports: PeerReports, epoch: int
) -> Iterator[tuple[str, int, Seat]]:
    """Yields seats that need an epoch that no replica can compute any more.

    Not those of replaced pairs that answer for epochs before it: they may still compute these.
    """
    current = _current_pairs(log_state)
    spared = set(answering_pairs(log_state, reports)).difference(current)
    for pair, seats in log_state.seats.items():
        for number, seat in enumerate(seats):
            if seat is None or not seat.verified or pair in spared:
                continue
            if committed(seat, reports) < epoch:
                yield pair, number, seat


def _pairs_needing(log_state: LogState, reports: PeerReports, epochs: list[int]) -> list[str]:
    """Returns pairs that have yet to compute one of these epochs and cannot leave it to others."""
    current = _current_pairs(log_state)
    needing = []
    for pair in answering_pairs(log_state, reports):
        headers = log_state.headers.items()
        final = max((e for e, h in headers if pair in log_state.pairs(h.generation)), default=0)
        last = max((e for e in epochs if pair in current or e <= final), default=0)
        if committed_by_faster(log_state, reports, pair) < last:
            needing.append(pair)
    return needing


def _current_pairs(log_state: LogState) -> tuple[str, ...]:
    return log_state.pairs(log_state.generation) if log_state.generation else ()


def _named(lane: LaneId) -> str:
    """Returns the name of a lane in `DataLost`."""
    return f"lane {lane.split}/{lane.number}"


def has_rows_at_risk(log_state: LogState, reports: PeerReports) -> bool:
    """Whether a closed lane that is still needed has fewer than two copies on splits that stay.

    An open lane gets another buddy; a closed one is never copied again.
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


def _are_both_copies_gone(reports: PeerReports, lane: LaneId, state: Lane) -> bool:
    return lane.split in reports.gone and (state.buddy is None or state.buddy in reports.gone)


def assign_partitions(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Assigns source partitions without an owner where the intent places them [9].

    Those that it places nowhere, or on a split that is not here, go to the lanes with the fewest.
    """
    streams = reports.intent.streams if reports.intent is not None else ()
    free = [
        p for stream in streams for p in stream.partitions if can_assign_partition(log_state, p)
    ]
    load = partitions_by_open_lane(log_state, reports) if free else {}
    placed = _placed(reports, load)
    for partition in free if load else ():
        lane = placed.get(partition) or min(load, key=lambda lane: load[lane])
        load[lane] += 1
        yield PartitionOwned(partition, lane)


def can_assign_partition(log_state: LogState, partition: str) -> bool:
    """Whether a new owner may start to read a partition.

    Only once a published header covers all rows of its former owner, so that the new owner's rows
    come in later epochs and its start position stands in that header [9].
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
    """Returns the lanes that can take partitions, with how many they have."""
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


def _placed(reports: PeerReports, lanes: Iterable[LaneId]) -> dict[str, LaneId]:
    """Returns the lane of each partition that the intent places on a split with one of these."""
    placement = reports.intent.placement if reports.intent is not None else ()
    if not placement:
        return {}
    by_name = {reports.splits[lane.split].report.name: lane for lane in lanes}
    return {partition: by_name[name] for partition, name in placement if name in by_name}


def partitions_to_release(log_state: LogState, reports: PeerReports) -> dict[str, str]:
    """Returns the partition to release, by split, one at a time.

    Either the intent places it on another lane, or it places it nowhere and another lane has two
    fewer: what is where the intent wants it stays, however many its lane has.
    """
    load = partitions_by_open_lane(log_state, reports)
    placed = _placed(reports, load)
    even = not load or max(load.values()) - min(load.values()) <= 1
    if even and not placed:
        return {}
    if any(can_assign_partition(log_state, partition) for partition in log_state.owners):
        return {}
    read = [
        (partition, owner)
        for partition, owner in log_state.owners.items()
        if owner in load and log_state.marks.get(partition, Mark(0, 0)).state.is_read
    ]
    for partition, owner in read:
        if placed.get(partition, owner) != owner:
            return {owner.split: partition}
    last = {owner: partition for partition, owner in read if partition not in placed}
    most = max(last, key=lambda lane: load[lane], default=None)
    if most is None or load[most] - min(load.values()) <= 1:
        return {}
    return {most.split: last[most]}


def report_lost_partitions(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Reports, once, sources that no longer have rows that are needed.

    Only the present owner's report counts: a former one asks for rows that others have taken.
    """
    for split, heard in reports.splits.items():
        for partition in heard.report.lost:
            owner = log_state.owners.get(partition)
            if owner is None or owner.split != split or partition in log_state.lost:
                continue
            lane = reports.lanes.get(owner)
            if lane is not None and lane.live:
                yield DataLost(partition, "the source has forgotten rows that are needed")
