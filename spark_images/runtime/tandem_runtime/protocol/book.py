"""What the header log says: the fold of its entries.

Every member of the log can make it from a snapshot and the entries after it. Nothing is decided
here; the lead decides (`lead.py`) and writes entries, everybody else reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tandem_runtime.protocol.data import (
    ACTIVE,
    BEGINNING_OF_TIME,
    RELEASED,
    Generation,
    Header,
    LaneId,
    Mark,
    Note,
)
from tandem_runtime.protocol.records import (
    BuddyChanged,
    Completed,
    DataLost,
    Entry,
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
    PairsRetired,
    PartitionOwned,
    RetirementCalled,
    Seated,
    Trimmed,
    Vacated,
    Verified,
)

REMEMBERED = 256
"""How many names of the past are kept, to answer late-comers."""

OPEN, CLOSING, CLOSED = "open", "closing", "closed"
"""States of a lane."""


class Lane(NamedTuple):
    """A lane as recorded."""

    buddy: str | None
    view: int = 1
    state: str = OPEN
    reach: int = 0
    """Headers cover it through this chunk."""
    last: int = 0
    """Its last chunk, once closed."""
    trimmed: int = 0
    """Forgotten through this chunk."""
    notes: tuple[tuple[int, Note], ...] = ()
    """Once closed: the notes of chunks that no header covered then."""


class Seat(NamedTuple):
    """One of the two places of a pair and who holds it."""

    volume: str
    hold: int
    """The epoch it holds the trim point at until it acknowledges a higher one."""
    verified: bool = False
    lapsed: bool = False
    called: int = 0
    """Number of the call to lapse that its twin has not answered yet."""


class Book:
    """The state that the header log's entries add up to."""

    __slots__ = (
        "calls",
        "completed",
        "delivered",
        "epoch",
        "final",
        "generation",
        "generations",
        "given_up",
        "first_of_generation",
        "headers",
        "intent_version",
        "lane_numbers",
        "lanes",
        "lost",
        "marks",
        "merges",
        "names",
        "owners",
        "raised",
        "retired",
        "retiring",
        "seats",
        "tenures",
        "trim",
        "watermarks",
    )

    def __init__(self) -> None:
        self.epoch = 0
        self.generation = 0
        self.first_of_generation = 1
        """First epoch of the current generation."""
        self.headers: dict[int, Header] = {}
        """Headers above the trim point."""
        self.marks: dict[str, Mark] = {}
        """Where each source partition stands after the last header."""
        self.watermarks: dict[str, int] = {}
        self.delivered = 0
        """Delivered through, as the last header said."""
        self.final = False
        self.lanes: dict[LaneId, Lane] = {}
        """In the order of their opening; closed ones until they are wholly forgotten."""
        self.lane_numbers: dict[str, int] = {}
        """Highest lane number of each split ever recorded."""
        self.owners: dict[str, LaneId] = {}
        self.tenures: dict[str, int] = {}
        """How often each partition was given to a lane: the same lane may get it back."""
        self.seats: dict[str, list[Seat | None]] = {}
        self.trim = 0
        self.calls = 0
        """How many calls there were: to lapse, to retire."""
        self.retiring = 0
        """Number of the call to retire the pairs that only older generations have."""
        self.merges: dict[int, str] = {}
        self.generations: dict[int, Generation] = {}
        self.intent_version = 0
        """Version of the newest intent that an entry was made from."""
        self.names: dict[int, tuple[str, ...]] = {}
        """The pairs of each known generation."""
        self.given_up: tuple[int, ...] = ()
        self.retired: tuple[str, ...] = ()
        """Pairs that let go, of given-up or older generations; the last ones."""
        self.raised = False
        """The last header raised a watermark: one empty epoch has to follow."""
        self.lost: dict[str, str] = {}
        self.completed = False

    def copy(self) -> Book:
        """A copy that later entries do not touch.

        Entries may come while it is made, for whoever watches from another thread: each field is
        whole then, and fields may be an entry apart.
        """
        other = Book.__new__(Book)
        for name in Book.__slots__:
            value = getattr(self, name)
            setattr(other, name, dict(value) if type(value) is dict else value)
        other.seats = {pair: list(seats) for pair, seats in other.seats.items()}
        return other

    def apply(self, entry: Entry) -> None:
        """Take the next entry in."""
        _APPLY[type(entry)](self, entry)

    def pairs(self, generation: int) -> tuple[str, ...]:
        """The pairs that answer for epochs of a generation."""
        return self.names[generation]

    def living_pairs(self) -> list[str]:
        """Pairs that some known generation needs, in the order they came."""
        names = [name for number in sorted(self.names) for name in self.names[number]]
        return [name for name in dict.fromkeys(names) if name not in self.retired]

    def know(self, generation: Generation) -> None:
        """Keep a generation that headers or the intent speak of."""
        self.generations[generation.number] = generation
        self.names[generation.number] = generation.names()

    def seat_of(self, volume: str) -> tuple[str, int, Seat] | None:
        """Where a volume sits."""
        for pair, seats in self.seats.items():
            for number, seat in enumerate(seats):
                if seat is not None and seat.volume == volume:
                    return pair, number, seat
        return None

    def lane_buddies(self, split: str) -> list[LaneId]:
        """Lanes whose recorded second copy is at a split."""
        return [lane for lane, state in self.lanes.items() if state.buddy == split]

    # --- one method for each kind of entry ----------------------------------------------------

    def _header(self, header: Header) -> None:
        self.epoch = header.epoch
        self.headers[header.epoch] = header
        self.marks = dict(header.marks)
        self.raised = any(
            mark > self.watermarks.get(stream, BEGINNING_OF_TIME)
            for stream, mark in header.watermarks
        )
        self.watermarks = dict(header.watermarks)
        self.delivered = max(self.delivered, header.delivered)
        self.final = header.final
        if header.generation != self.generation:
            self.generation = header.generation
            self.first_of_generation = header.epoch
            self.retiring = 0
            self.given_up = tuple(n for n in self.given_up if n > header.generation)
        for lane, _, last in header.spans:
            self.lanes[lane] = self.lanes[lane]._replace(reach=last)

    def _lane_opened(self, record: LaneOpened) -> None:
        self.lanes[record.lane] = Lane(record.buddy)
        self.lane_numbers.pop(record.lane.split, None)
        self.lane_numbers[record.lane.split] = record.lane.number
        if len(self.lane_numbers) > REMEMBERED:
            del self.lane_numbers[next(iter(self.lane_numbers))]

    def _buddy_changed(self, record: BuddyChanged) -> None:
        lane = self.lanes[record.lane]
        self.lanes[record.lane] = lane._replace(view=record.view, buddy=record.buddy)

    def _lane_closing(self, record: LaneClosing) -> None:
        self.lanes[record.lane] = self.lanes[record.lane]._replace(state=CLOSING)

    def _lane_resumed(self, record: LaneResumed) -> None:
        self.lanes[record.lane] = self.lanes[record.lane]._replace(state=OPEN)

    def _lane_closed(self, record: LaneClosed) -> None:
        lane = self.lanes[record.lane]
        buddy = None if record.alone else lane.buddy
        self.lanes[record.lane] = lane._replace(
            buddy=buddy, state=CLOSED, last=record.last, notes=record.notes
        )
        self._forget_closed()

    def _partition_owned(self, record: PartitionOwned) -> None:
        self.owners[record.partition] = record.lane
        self.tenures[record.partition] = self.tenures.get(record.partition, 0) + 1
        mark = self.marks.get(record.partition)
        if mark is not None and mark.state == RELEASED:
            self.marks[record.partition] = mark._replace(state=ACTIVE)
        self._forget_closed()

    def _seated(self, record: Seated) -> None:
        seats = self.seats.setdefault(record.pair, [None, None])
        seats[record.seat] = Seat(record.volume, self.trim)

    def _verified(self, record: Verified) -> None:
        seats = self.seats[record.pair]
        seats[record.seat] = Seat(record.volume, record.epoch, verified=True)

    def _vacated(self, record: Vacated) -> None:
        seats = self.seats[record.pair]
        seats[record.seat] = None
        twin = seats[1 - record.seat]
        if twin is not None and twin.called:
            seats[1 - record.seat] = twin._replace(called=0)

    def _lapse_called(self, record: LapseCalled) -> None:
        self.calls += 1
        self._change(record, called=self.calls)

    def _lapse_dropped(self, record: LapseDropped) -> None:
        self._change(record, called=0)

    def _change(self, record: LapseCalled | LapseDropped | Lapsed, **changes: int) -> None:
        seat = self.seats[record.pair][record.seat]
        if seat is not None and seat.volume == record.volume:
            self.seats[record.pair][record.seat] = seat._replace(**changes)  # type: ignore[arg-type]

    def _lapsed(self, record: Lapsed) -> None:
        self._change(record, lapsed=True, called=0)

    def _trimmed(self, record: Trimmed) -> None:
        for epoch in range(self.trim + 1, record.epoch + 1):
            header = self.headers.pop(epoch, None)
            for lane, _, last in header.spans if header else ():
                self.lanes[lane] = self.lanes[lane]._replace(trimmed=last)
        self.trim = record.epoch
        self._forget_closed()
        named = {header.generation for header in self.headers.values()}
        for number in [n for n in self.generations if n < self.generation and n not in named]:
            if all(pair in self.retired for pair in self._only_of(number)):
                del self.generations[number]
                del self.names[number]

    def _only_of(self, number: int) -> list[str]:
        """Pairs of a generation that the current one does not carry on."""
        current = self.pairs(self.generation)
        return [pair for pair in self.pairs(number) if pair not in current]

    def _forget_closed(self) -> None:
        """Drop closed lanes that are wholly trimmed and that no partition waits for."""
        owned = set(self.owners.values())
        for lane, state in list(self.lanes.items()):
            if state.state == CLOSED and state.trimmed == state.last and lane not in owned:
                del self.lanes[lane]

    def _merge_chosen(self, record: MergeChosen) -> None:
        self.merges[record.slot] = record.volume

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
            self.seats.pop(pair, None)

    def _data_lost(self, record: DataLost) -> None:
        self.lost[record.subject] = record.why

    def _completed(self, _: Completed) -> None:
        self.completed = True


_APPLY: dict[type, Callable[..., None]] = {
    Header: Book._header,
    LaneOpened: Book._lane_opened,
    BuddyChanged: Book._buddy_changed,
    LaneClosing: Book._lane_closing,
    LaneResumed: Book._lane_resumed,
    LaneClosed: Book._lane_closed,
    PartitionOwned: Book._partition_owned,
    Seated: Book._seated,
    Verified: Book._verified,
    Vacated: Book._vacated,
    LapseCalled: Book._lapse_called,
    LapseDropped: Book._lapse_dropped,
    Lapsed: Book._lapsed,
    Trimmed: Book._trimmed,
    MergeChosen: Book._merge_chosen,
    GenerationKnown: Book._generation_known,
    GenerationGivenUp: Book._generation_given_up,
    RetirementCalled: Book._retirement_called,
    PairsRetired: Book._pairs_retired,
    DataLost: Book._data_lost,
    Completed: Book._completed,
}
