"""Folds the entries of the header log into its state.

Every member computes the same state from a snapshot and the entries after it. Only the lead makes
decisions (`lead.py`), by writing entries.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import msgspec

from tandem_core.contract.intent import Generation
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    Completed,
    DataLost,
    Entry,
    FormatRaised,
    GenerationGivenUp,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    LapseCalled,
    Lapsed,
    LapseDropped,
    MergeChosen,
    PairsDealt,
    PairsRetired,
    PartitionOwned,
    RetirementCalled,
    Seated,
    SlotEnded,
    SlotOpened,
    SlotSealed,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.history import BEGINNING
from tandem_runtime.protocol.log.legal_moves import CHECKS, seat_after
from tandem_runtime.protocol.states import LANE, SEAT, LaneState, PartitionState
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    UNDIVIDED,
    Dealing,
    Header,
    Lane,
    LaneId,
    Mark,
    Seat,
    Slot,
)

REMEMBERED = 256
"""Number of past pairs and splits that are kept, to answer late members."""


class LogState(msgspec.Struct, omit_defaults=True):
    """State that results from the header log's entries; its encoding is the log's snapshot."""

    epoch: int = 0
    generation: int = 0
    first_of_generation: int = 1
    """First epoch of the current generation."""
    headers: dict[int, Header] = {}
    """Headers above the trim point."""
    digest: str = BEGINNING
    """Digest of the last header, even if that is trimmed."""
    marks: dict[str, Mark] = {}
    """Position and state of each source partition after the last header."""
    watermarks: dict[str, int] = {}
    delivered: int = 0
    """Last epoch that is delivered, according to the headers."""
    final: bool = False
    lanes: dict[LaneId, Lane] = {}
    """Lanes in the order of opening; closed ones until they are fully trimmed."""
    lane_numbers: dict[str, int] = {}
    """Highest lane number ever recorded for each split."""
    owners: dict[str, LaneId] = {}
    tenures: dict[str, int] = {}
    """How often each partition was assigned to a lane: the same lane may get it back."""
    seats: dict[str, list[Seat | None]] = {}
    trim: int = 0
    trimmed_digest: str = BEGINNING
    """Digest of the header of the trim point."""
    calls: int = 0
    """Number of the last call to lapse or to retire."""
    retiring: int = 0
    """Number of the open call to retire pairs of older generations; 0 if there is none."""
    merges: dict[int, str] = {}
    """Active merge of each slot."""
    slots: dict[int, Slot] = {}
    """Merge slots that are open, or ended and not yet sealed at every sink."""
    next_slot: int = 0
    """Lowest slot number that was never used."""
    dealings: dict[int, Dealing] = {}
    """Dealings that headers above the trim point name, and the newest."""
    dealing: int = UNDIVIDED
    """Dealing that the last header names."""
    generations: dict[int, Generation] = {}
    intent_version: int = 0
    """Version of the newest intent that an entry carries out."""
    names: dict[int, tuple[str, ...]] = {}
    """Pairs of each known generation."""
    given_up: tuple[int, ...] = ()
    retired: tuple[str, ...] = ()
    """Pairs retired last, of given-up or older generations."""
    raised: bool = False
    """Whether the last header raised a watermark: one empty epoch has to follow."""
    format: int = 1
    """Newest format of entries that may be written."""
    lost: dict[str, str] = {}
    completed: bool = False

    def copy(self) -> LogState:
        """Returns a copy that later entries do not change.

        If another thread applies entries meanwhile, fields may be one entry apart.
        """
        other = copy(self)
        for name in _DICTS:
            setattr(other, name, dict(getattr(self, name)))
        other.seats = {pair: list(seats) for pair, seats in other.seats.items()}
        return other

    def apply(self, entry: Entry) -> None:
        """Applies the next entry; raises `IllegalMove`, and changes nothing, if it is not legal."""
        self.check(entry)
        _APPLY[type(entry)](self, entry)

    def check(self, entry: Entry) -> None:
        """Raises `IllegalMove` if an entry is not legal in this state."""
        check = CHECKS.get(type(entry))
        if check is not None:
            check(self, entry)

    def pairs(self, generation: int) -> tuple[str, ...]:
        """Returns the pairs that compute the epochs of a generation."""
        return self.names[generation]

    def digest_of(self, epoch: int) -> str | None:
        """Returns the digest of an epoch's header; None if not cut yet, or long trimmed."""
        if epoch == self.epoch:
            return self.digest
        if epoch == self.trim:
            return self.trimmed_digest
        header = self.headers.get(epoch)
        return header.digest if header is not None else None

    def living_pairs(self) -> list[str]:
        """Returns the pairs that any known generation needs, the oldest first."""
        names = [name for number in sorted(self.names) for name in self.names[number]]
        return [name for name in dict.fromkeys(names) if name not in self.retired]

    def know(self, generation: Generation) -> None:
        """Stores a generation that headers or the intent name."""
        self.generations[generation.number] = generation
        self.names[generation.number] = generation.names()

    def seat_of(self, volume: str) -> tuple[str, int, Seat] | None:
        """Returns the pair, number and seat of a volume; None if it has no seat."""
        for pair, seats in self.seats.items():
            for number, seat in enumerate(seats):
                if seat is not None and seat.volume == volume:
                    return pair, number, seat
        return None

    def lane_buddies(self, split: str) -> list[LaneId]:
        """Returns the lanes whose recorded buddy is this split."""
        return [lane for lane, state in self.lanes.items() if state.buddy == split]

    def open_slots(self) -> list[int]:
        """Returns the numbers of slots that deliver future epochs, the lowest first."""
        return sorted(number for number, slot in self.slots.items() if slot.is_open)

    def newest_dealing(self) -> Dealing | None:
        """Returns the dealing that was recorded last."""
        return self.dealings[max(self.dealings)] if self.dealings else None

    # --- one method for each kind of entry ----------------------------------------------------

    def _header(self, header: Header) -> None:
        self.epoch = header.epoch
        self.headers[header.epoch] = header
        self.digest = header.digest
        self.marks = dict(header.marks)
        self.raised = any(
            mark > self.watermarks.get(stream, BEGINNING_OF_TIME)
            for stream, mark in header.watermarks
        )
        self.watermarks = dict(header.watermarks)
        self.delivered = max(self.delivered, header.delivered)
        self.final = header.final
        self.dealing = header.dealing
        if header.generation != self.generation:
            self.generation = header.generation
            self.first_of_generation = header.epoch
            self.retiring = 0
            self.given_up = tuple(n for n in self.given_up if n > header.generation)
        for span in header.spans:
            self.lanes[span.lane] = self.lanes[span.lane].replace(reach=span.last)

    def _lane_opened(self, record: LaneOpened) -> None:
        self.lanes[record.lane] = Lane(record.buddy)
        self.lane_numbers.pop(record.lane.split, None)
        self.lane_numbers[record.lane.split] = record.lane.number
        if len(self.lane_numbers) > REMEMBERED:
            del self.lane_numbers[next(iter(self.lane_numbers))]

    def _buddy_changed(self, record: BuddyChanged) -> None:
        lane = self.lanes[record.lane]
        self.lanes[record.lane] = lane.replace(view=record.view, buddy=record.buddy)

    def _lane_closing(self, record: LaneClosing) -> None:
        self.lanes[record.lane] = self.lanes[record.lane].replace(state=LaneState.CLOSING)

    def _lane_resumed(self, record: LaneResumed) -> None:
        self.lanes[record.lane] = self.lanes[record.lane].replace(state=LaneState.OPEN)

    def _lane_closed(self, record: LaneClosed) -> None:
        lane = self.lanes[record.lane]
        buddy = None if record.alone else lane.buddy
        self.lanes[record.lane] = lane.replace(
            buddy=buddy, state=LaneState.CLOSED, last=record.last, notes=record.notes
        )
        self._forget_closed()

    def _partition_owned(self, record: PartitionOwned) -> None:
        self.owners[record.partition] = record.lane
        self.tenures[record.partition] = self.tenures.get(record.partition, 0) + 1
        mark = self.marks.get(record.partition)
        if mark is not None and mark.state is PartitionState.RELEASED:
            self.marks[record.partition] = mark.replace(state=PartitionState.ACTIVE)
        self._forget_closed()

    def _seated(self, record: Seated) -> None:
        seats = self.seats.setdefault(record.pair, [None, None])
        seats[record.seat] = Seat(record.volume, self.trim)

    def _verified(self, record: Verified) -> None:
        seats = self.seats[record.pair]
        seats[record.seat] = Seat(record.volume, record.epoch, SeatState.VERIFIED)

    def _vacated(self, record: Vacated) -> None:
        seats = self.seats[record.pair]
        seats[record.seat] = None
        twin = seats[1 - record.seat]
        if twin is not None and twin.called:
            state = SEAT.after("LapseDropped", twin.state, twin.volume)
            seats[1 - record.seat] = twin.replace(state=state, call=0)

    def _lapse_called(self, record: LapseCalled) -> None:
        self.calls += 1
        self._change(record, self.calls)

    def _change(self, record: LapseCalled | LapseDropped | Lapsed, call: int = 0) -> None:
        state = seat_after(self, record)
        seat = self.seats[record.pair][record.seat]
        if seat is not None:
            self.seats[record.pair][record.seat] = seat.replace(state=state, call=call)

    def _trimmed(self, record: Trimmed) -> None:
        self.trimmed_digest = self.digest_of(record.epoch) or BEGINNING
        for epoch in range(self.trim + 1, record.epoch + 1):
            header = self.headers.pop(epoch, None)
            for span in header.spans if header else ():
                self.lanes[span.lane] = self.lanes[span.lane].replace(trimmed=span.last)
        self.trim = record.epoch
        self._forget_closed()
        self._forget_dealings()
        named = {header.generation for header in self.headers.values()}
        for number in [n for n in self.generations if n < self.generation and n not in named]:
            if all(pair in self.retired for pair in self._only_of(number)):
                del self.generations[number]
                del self.names[number]

    def _only_of(self, number: int) -> list[str]:
        """Returns pairs of a generation that the current one does not have."""
        current = self.pairs(self.generation)
        return [pair for pair in self.pairs(number) if pair not in current]

    def _forget_closed(self) -> None:
        """Drops closed lanes that are fully trimmed and have no partition assigned."""
        owned = set(self.owners.values())
        for lane, state in list(self.lanes.items()):
            if (
                state.state is LaneState.CLOSED
                and state.trimmed == state.last
                and lane not in owned
            ):
                LANE.check(state.state, None, lane)
                del self.lanes[lane]

    def _merge_chosen(self, record: MergeChosen) -> None:
        self.merges[record.slot] = record.volume

    def _slot_opened(self, record: SlotOpened) -> None:
        self.slots[record.slot] = Slot(number=record.slot, first=record.first)
        self.next_slot = max(self.next_slot, record.slot + 1)
        self.intent_version = max(self.intent_version, record.intent_version)

    def _slot_ended(self, record: SlotEnded) -> None:
        self.slots[record.slot] = self.slots[record.slot].ended_at(record.last)
        self.intent_version = max(self.intent_version, record.intent_version)

    def _slot_sealed(self, record: SlotSealed) -> None:
        del self.slots[record.slot]
        self.merges.pop(record.slot, None)

    def _pairs_dealt(self, record: PairsDealt) -> None:
        self.dealings[record.dealing.number] = record.dealing
        self._forget_dealings()

    def _forget_dealings(self) -> None:
        """Drops dealings that no kept header names, except the newest."""
        if len(self.dealings) > 1:
            named = {header.dealing for header in self.headers.values()} | {max(self.dealings)}
            self.dealings = {n: dealing for n, dealing in self.dealings.items() if n in named}

    def _generation_known(self, record: GenerationKnown) -> None:
        self.know(record.generation)
        self.intent_version = max(self.intent_version, record.intent_version)
        for pair in record.generation.names():
            self.seats.setdefault(pair, [None, None])

    def _generation_given_up(self, record: GenerationGivenUp) -> None:
        del self.generations[record.number]
        dead = self.names.pop(record.number)
        self.intent_version = max(self.intent_version, record.intent_version)
        self.given_up += (record.number,)
        alive = {name for names in self.names.values() for name in names}
        self._let_go(tuple(name for name in dead if name not in alive))

    def _retirement_called(self, _: RetirementCalled) -> None:
        self.calls += 1
        self.retiring = self.calls

    def _pairs_retired(self, record: PairsRetired) -> None:
        self.retiring = 0
        self._let_go(record.pairs)

    def _let_go(self, pairs: tuple[str, ...]) -> None:
        self.retired = (*self.retired, *pairs)[-REMEMBERED:]
        for pair in pairs:
            for seat in filter(None, self.seats.pop(pair, ())):
                SEAT.check(seat.state, None, pair)

    def _format_raised(self, record: FormatRaised) -> None:
        self.format = record.format

    def _data_lost(self, record: DataLost) -> None:
        self.lost[record.subject] = record.why

    def _completed(self, _: Completed) -> None:
        self.completed = True


_DICTS = tuple(
    name for name in LogState.__struct_fields__ if isinstance(getattr(LogState(), name), dict)
)
"""Fields that entries change in place."""

_APPLY: dict[type, Callable[..., None]] = {
    Header: LogState._header,
    LaneOpened: LogState._lane_opened,
    BuddyChanged: LogState._buddy_changed,
    LaneClosing: LogState._lane_closing,
    LaneResumed: LogState._lane_resumed,
    LaneClosed: LogState._lane_closed,
    PartitionOwned: LogState._partition_owned,
    Seated: LogState._seated,
    Verified: LogState._verified,
    Vacated: LogState._vacated,
    LapseCalled: LogState._lapse_called,
    LapseDropped: LogState._change,
    Lapsed: LogState._change,
    Trimmed: LogState._trimmed,
    MergeChosen: LogState._merge_chosen,
    SlotOpened: LogState._slot_opened,
    SlotEnded: LogState._slot_ended,
    SlotSealed: LogState._slot_sealed,
    PairsDealt: LogState._pairs_dealt,
    GenerationKnown: LogState._generation_known,
    GenerationGivenUp: LogState._generation_given_up,
    RetirementCalled: LogState._retirement_called,
    PairsRetired: LogState._pairs_retired,
    FormatRaised: LogState._format_raised,
    DataLost: LogState._data_lost,
    Completed: LogState._completed,
}
