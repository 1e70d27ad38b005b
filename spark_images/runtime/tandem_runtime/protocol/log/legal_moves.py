"""Checks that an entry of the header log makes only legal moves of a log state.

Run before an entry is applied, and by the lead before it writes one: an entry that was written
can never be taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tandem_core.model.lifecycle import IllegalMove
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    LapseCalled,
    Lapsed,
    LapseDropped,
    PartitionOwned,
    Seated,
    SlotEnded,
    SlotOpened,
    SlotSealed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.states import LANE, PARTITION, SEAT, SLOT, SlotState
from tandem_runtime.protocol.types import Header

if TYPE_CHECKING:
    from tandem_runtime.protocol.log.log_state import LogState

LaneRecord = LaneOpened | BuddyChanged | LaneClosing | LaneResumed | LaneClosed
SeatRecord = Seated | Verified | Vacated | LapseCalled | LapseDropped | Lapsed
SlotRecord = SlotOpened | SlotEnded | SlotSealed


def _header(log_state: LogState, header: Header) -> None:
    """Checks that a header continues the last one; a rebuilt log may begin with any header.

    An epoch may hold several marks of a partition, but none after it was released or has ended.
    """
    if log_state.epoch and (header.epoch, header.previous) != (
        log_state.epoch + 1,
        log_state.digest,
    ):
        raise IllegalMove("log", f"at header {log_state.epoch}", "Header", f"epoch {header.epoch}")
    known = log_state.marks
    for partition, mark in header.marks:
        before = known.get(partition)
        if before is not None and before.state is not mark.state and not before.state.is_read:
            raise IllegalMove(PARTITION.machine, before.state, mark.state, partition)


def _owned(log_state: LogState, record: PartitionOwned) -> None:
    """Checks a new owner; a former owner that is gone may leave the partition active or idle."""
    mark = log_state.marks.get(record.partition)
    if mark is None or not mark.state.is_read:
        before = mark.state if mark is not None else None
        PARTITION.after("PartitionOwned", before, record.partition)


def _lane(log_state: LogState, record: LaneRecord) -> None:
    lane = log_state.lanes.get(record.lane)
    LANE.after(type(record).__name__, lane.state if lane is not None else None, record.lane)


def seat_after(log_state: LogState, record: SeatRecord) -> SeatState | None:
    """Returns the state of a seat after a record of its holder, or of a joiner that takes it.

    Raises:
        IllegalMove: the record is not legal in the present state.
    """
    seats = log_state.seats.get(record.pair)
    seat = seats[record.seat] if seats is not None else None
    holds = seat is not None and (seat.volume == record.volume or type(record) is Seated)
    before = seat.state if seat is not None and holds else None
    return SEAT.after(type(record).__name__, before, record.volume)


def _slot(log_state: LogState, record: SlotRecord) -> None:
    slot = log_state.slots.get(record.slot)
    over = SlotState.SEALED if record.slot < log_state.next_slot else None
    SLOT.after(type(record).__name__, slot.state if slot is not None else over, record.slot)


CHECKS: dict[type, Callable[..., object]] = {
    Header: _header,
    PartitionOwned: _owned,
    **dict.fromkeys((LaneOpened, BuddyChanged, LaneClosing, LaneResumed, LaneClosed), _lane),
    **dict.fromkeys((Seated, Verified, Vacated, LapseCalled, LapseDropped, Lapsed), seat_after),
    **dict.fromkeys((SlotOpened, SlotEnded, SlotSealed), _slot),
}
"""The check of each kind of entry; other kinds change nothing that has a state."""
