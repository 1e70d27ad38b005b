"""What a lead has heard since it leads.

All of it is soft: reports are cumulative and sent again, also to a new lead, so a lead that knows
nothing yet is only slow, never wrong. A volume's newer incarnation replaces the older, and of one
incarnation the report with the higher number; the rest is a zombie's or came late [11].
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from tandem_core.contract.intent import Intent
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.messages.peers import (
    LaneReport,
    MergeReport,
    ReplicaReport,
    SplitReport,
)
from tandem_runtime.protocol.states import JOINING, SlotState
from tandem_runtime.protocol.types import LaneId, Note, Peer, Seat

R = TypeVar("R", SplitReport, ReplicaReport, MergeReport)


_OPEN = SlotState.OPEN
"""Members at hand: looking one up on its class takes long in hot loops."""


class Heard(NamedTuple, Generic[R]):
    """The last report of a volume, and when it came."""

    incarnation: int
    at: int
    report: R


class Hearsay:
    """Reports, by volume, and what follows from them."""

    __slots__ = (
        "before",
        "delivered",
        "foreign",
        "gone",
        "intent",
        "lanes",
        "merges",
        "notes",
        "replicas",
        "silence",
        "since",
        "splits",
    )

    def __init__(
        self,
        now: int,
        silence: int,
        gone: Container[str],
        before: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.since = now
        self.before = before
        """When volumes last spoke that were listened to before this term."""
        self.silence = silence
        self.gone = gone
        self.splits: dict[str, Heard[SplitReport]] = {}
        self.replicas: dict[str, Heard[ReplicaReport]] = {}
        self.merges: dict[str, Heard[MergeReport]] = {}
        self.foreign: set[str] = set()
        """Replicas whose state is of another history than the log's: what they say counts not."""
        self.lanes: dict[LaneId, LaneReport] = {}
        """What each lane's owner last said of it."""
        self.notes: dict[LaneId, dict[int, Note]] = {}
        """Notes of chunks that no header covers yet."""
        self.delivered: dict[int, int] = {}
        """Delivered through, by merge slot."""
        self.intent: Intent | None = None

    def silent(self, volume: str, now: int) -> bool:
        """Has a volume said nothing for long? That only makes the lead *try* (f)."""
        return now - self.last_word(volume) >= self.silence

    def last_word(self, volume: str) -> int:
        """When a volume last spoke; the beginning of this term if nobody listened before."""
        heard = self.replicas.get(volume) or self.splits.get(volume) or self.merges.get(volume)
        return heard.at if heard else self.before.get(volume, self.since)

    def gone_among(self, volumes: Iterable[str]) -> set[str]:
        """Those of some volumes that are gone for good."""
        return {volume for volume in volumes if volume in self.gone}

    def hear_lanes(self, before: Heard[SplitReport] | None, report: SplitReport) -> None:
        """Take in what an owner says of its lanes; of those it no longer names it says nothing."""
        for lane in before.report.lanes if before else ():
            self.lanes.pop(lane.lane, None)
        for lane in report.lanes:
            self.lanes[lane.lane] = lane

    def forget_notes(self, book: Book) -> None:
        """Drop notes that headers cover or whose lane is over [12]."""
        for lane in [lane for lane in self.notes if lane not in book.lanes]:
            del self.notes[lane]
        for lane, notes in self.notes.items():
            reach = book.lanes[lane].reach
            for number in [number for number in notes if number <= reach]:
                del notes[number]

    def forget_gone(self) -> None:
        """Drop reports of volumes that are gone for good [12]."""
        for known in (self.splits, self.replicas, self.merges):
            for volume in [v for v in known if v in self.gone]:
                del known[volume]
                self.foreign.discard(volume)
        for lane in [lane for lane in self.lanes if lane.split in self.gone]:
            del self.lanes[lane]


def newer(heard: Heard[R] | None, sender: Peer, report: R) -> bool:
    """Is a report newer than what was heard of that volume?"""
    if heard is None:
        return True
    return (sender.incarnation, report.sequence) > (heard.incarnation, heard.report.sequence)


def brings_news(heard: Heard[R] | None, report: R) -> bool:
    """Does a report say anything else than the one before it?"""
    return heard is None or heard.report.replace(sequence=report.sequence) != report


def is_foreign(book: Book, report: ReplicaReport) -> bool:
    """Is a replica's state of another history? Then the digest of its last header is another one.

    Nobody commits a header that is not published, so one beyond the last is of another history too.
    """
    if not report.verified:
        return False
    if report.committed > book.epoch:
        return True
    return book.digest_of(report.committed) not in (None, report.committed_digest)


def committed(book_seat: Seat, hear: Hearsay) -> int:
    """How far the holder of a seat has committed, for certain.

    Only what the very volume on the seat says counts: its predecessor may still be talking. And
    only of the log's own history: of another one the same epochs mean something else.
    """
    if book_seat.state in JOINING or book_seat.volume in hear.foreign:
        return book_seat.hold
    heard = hear.replicas.get(book_seat.volume)
    return max(book_seat.hold, heard.report.committed) if heard else book_seat.hold


def delivered_through(book: Book, hear: Hearsay) -> int:
    """The last epoch that every sink has from every slot; an ended one gives through its last."""
    through: int | None = None
    for slot in book.slots.values():
        reached = max(hear.delivered.get(slot.number, 0), slot.first - 1)
        if slot.state is not _OPEN and reached >= slot.last:
            continue
        if through is None or reached < through:
            through = reached
    return book.delivered if through is None else max(book.delivered, through)


def slot_delivered(book: Book, hear: Hearsay, number: int) -> int:
    """The last epoch that a slot is known to have delivered."""
    slot = book.slots.get(number)
    if slot is None:
        return 0
    through = book.delivered if slot.is_open else min(book.delivered, slot.last)
    return max(through, slot.first - 1, hear.delivered.get(number, 0))


def faster(book: Book, hear: Hearsay, pair: str) -> int:
    """How far the replica of a pair has committed that is ahead."""
    ahead = 0
    for seat in book.seats.get(pair, ()):
        if seat is not None and seat.state.is_full and (reached := committed(seat, hear)) > ahead:
            ahead = reached
    return ahead
