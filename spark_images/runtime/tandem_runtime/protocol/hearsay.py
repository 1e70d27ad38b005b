"""What a lead has heard since it leads.

All of it is soft: reports are cumulative and sent again, also to a new lead, so a lead that knows
nothing yet is only slow, never wrong. A volume's newer incarnation replaces the older, and of one
incarnation the report with the higher number; the rest is a zombie's or came late [11].
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from tandem_runtime.protocol.book import Book, Seat
from tandem_runtime.protocol.data import Intent, LaneId, Note, Peer
from tandem_runtime.protocol.messages import LaneReport, MergeReport, ReplicaReport, SplitReport

R = TypeVar("R", SplitReport, ReplicaReport, MergeReport)


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
        for lane in [lane for lane in self.lanes if lane.split in self.gone]:
            del self.lanes[lane]


def newer(heard: Heard[R] | None, sender: Peer, report: R) -> bool:
    """Is a report newer than what was heard of that volume?"""
    if heard is None:
        return True
    return (sender.incarnation, report.sequence) > (heard.incarnation, heard.report.sequence)


def brings_news(heard: Heard[R] | None, report: R) -> bool:
    """Does a report say anything else than the one before it?"""
    return heard is None or heard.report[1:] != report[1:]


def committed(book_seat: Seat, hear: Hearsay) -> int:
    """How far the holder of a seat has committed, for certain.

    Only what the very volume on the seat says counts: its predecessor may still be talking.
    """
    if not book_seat.verified:
        return book_seat.hold
    heard = hear.replicas.get(book_seat.volume)
    return max(book_seat.hold, heard.report.committed) if heard else book_seat.hold


def delivered_through(book: Book, hear: Hearsay) -> int:
    """The last epoch that every sink has.

    Without an intent a lead does not know how many slots there are, and goes by the log alone.
    """
    if hear.intent is None:
        return book.delivered
    delivered = hear.delivered
    through = delivered.get(0, 0)
    for slot in range(1, hear.intent.slots):
        through = min(through, delivered.get(slot, 0))
    return max(book.delivered, through)


def faster(book: Book, hear: Hearsay, pair: str) -> int:
    """How far the replica of a pair has committed that is ahead."""
    ahead = 0
    for seat in book.seats.get(pair, ()):
        if seat is not None and seat.verified and (reached := committed(seat, hear)) > ahead:
            ahead = reached
    return ahead
