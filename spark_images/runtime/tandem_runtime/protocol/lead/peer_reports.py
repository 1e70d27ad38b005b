"""Reports that a lead has received in its term.

All of it is soft state: reports are cumulative and sent again, also to a new lead, so a lead
without reports is only slow, never wrong. A report replaces one of an older incarnation of its
volume, or of the same one with a lower number; any other is a zombie's or came late [11].
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from tandem_core.contract.intent import Intent
from tandem_runtime.protocol.log.log_state import LogState
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
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


class LastReport(NamedTuple, Generic[R]):
    """The last report of a volume, and when it came."""

    incarnation: int
    at: int
    report: R


class PeerReports:
    """Reports, by volume, and what follows from them."""

    __slots__ = (
        "before",
        "delivered",
        "foreign",
        "gone",
        "intent",
        "lanes",
        "listened",
        "me",
        "merges",
        "notes",
        "replicas",
        "silence",
        "since",
        "splits",
        "stalled_until",
    )

    def __init__(
        self,
        now: int,
        silence: int,
        gone: Container[str],
        before: Mapping[str, int] = MappingProxyType({}),
        me: str = "",
    ) -> None:
        self.me = me
        """The lead's own volume, which is never silent."""
        self.since = now
        self.listened = now
        """When the lead took its last turn."""
        self.stalled_until = 0
        self.before = before
        """When volumes last reported, as far as this member observed it before this term."""
        self.silence = silence
        self.gone = gone
        self.splits: dict[str, LastReport[SplitReport]] = {}
        self.replicas: dict[str, LastReport[ReplicaReport]] = {}
        self.merges: dict[str, LastReport[MergeReport]] = {}
        self.foreign: set[str] = set()
        """Replicas whose state is of another history than the log's; their commits do not count."""
        self.lanes: dict[LaneId, LaneReport] = {}
        """The last report of each lane by its owner."""
        self.notes: dict[LaneId, dict[int, Note]] = {}
        """Notes of chunks that no header covers yet."""
        self.delivered: dict[int, int] = {}
        """Delivered through, by merge slot."""
        self.intent: Intent | None = None

    def silent(self, volume: str, now: int) -> bool:
        """Whether a volume sent no report for `silence`; that only makes the lead *try* (f)."""
        return volume != self.me and now - self.last_word(volume) >= self.silence

    def last_word(self, volume: str) -> int:
        """When a volume last reported, or may have; the beginning of this term if not known."""
        heard = self.replicas.get(volume) or self.splits.get(volume) or self.merges.get(volume)
        at = heard.at if heard else self.before.get(volume, self.since)
        return max(at, self.stalled_until)

    def listen(self, now: int) -> None:
        """Note that the lead takes a turn.

        After a stall, reports that came meanwhile are still unread, so nobody counts as silent.
        """
        if now - self.listened >= self.silence // 2:
            self.stalled_until = now
        self.listened = now

    def gone_among(self, volumes: Iterable[str]) -> set[str]:
        """Those of some volumes that are gone for good."""
        return {volume for volume in volumes if volume in self.gone}

    def on_lanes(self, before: LastReport[SplitReport] | None, report: SplitReport) -> None:
        """Replace an owner's lane reports, and drop those of lanes that it no longer names."""
        for lane in before.report.lanes if before else ():
            self.lanes.pop(lane.lane, None)
        for lane in report.lanes:
            self.lanes[lane.lane] = lane

    def forget_notes(self, log_state: LogState) -> None:
        """Drop notes that headers cover or whose lane is over [12]."""
        for lane in [lane for lane in self.notes if lane not in log_state.lanes]:
            del self.notes[lane]
        for lane, notes in self.notes.items():
            reach = log_state.lanes[lane].reach
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


def is_newer(heard: LastReport[R] | None, sender: Peer, report: R) -> bool:
    """Whether a report is newer than the last one of its volume."""
    if heard is None:
        return True
    return (sender.incarnation, report.sequence) > (heard.incarnation, heard.report.sequence)


def has_news(heard: LastReport[R] | None, report: R) -> bool:
    """Whether a report differs from the one before it in more than its number."""
    return heard is None or heard.report.replace(sequence=report.sequence) != report


def is_foreign(log_state: LogState, report: ReplicaReport) -> bool:
    """Whether a replica's state is of another history: the digest of its last header differs.

    No replica commits a header that is not published, so a commit beyond the last header is of
    another history too.
    """
    if not report.verified:
        return False
    if report.committed > log_state.epoch:
        return True
    return log_state.digest_of(report.committed) not in (None, report.committed_digest)


def committed(book_seat: Seat, reports: PeerReports) -> int:
    """How far the holder of a seat has committed, for certain.

    Only reports of the volume on the seat count: its predecessor may still send some. And only
    those of the log's own history: in another one the same epochs have other content.
    """
    if book_seat.state in JOINING or book_seat.volume in reports.foreign:
        return book_seat.hold
    heard = reports.replicas.get(book_seat.volume)
    return max(book_seat.hold, heard.report.committed) if heard else book_seat.hold


def delivered_through(log_state: LogState, reports: PeerReports) -> int:
    """The last epoch that every sink has from every slot; ended slots count until their last."""
    through: int | None = None
    for slot in log_state.slots.values():
        reached = max(reports.delivered.get(slot.number, 0), slot.first - 1)
        if slot.state is not _OPEN and reached >= slot.last:
            continue
        if through is None or reached < through:
            through = reached
    return log_state.delivered if through is None else max(log_state.delivered, through)


def slot_delivered(log_state: LogState, reports: PeerReports, number: int) -> int:
    """The last epoch that a slot is known to have delivered."""
    slot = log_state.slots.get(number)
    if slot is None:
        return 0
    through = log_state.delivered if slot.is_open else min(log_state.delivered, slot.last)
    return max(through, slot.first - 1, reports.delivered.get(number, 0))


def committed_by_faster(log_state: LogState, reports: PeerReports, pair: str) -> int:
    """How far the faster full member of a pair has committed."""
    ahead = 0
    for seat in log_state.seats.get(pair, ()):
        if (
            seat is not None
            and seat.state.is_full
            and (reached := committed(seat, reports)) > ahead
        ):
            ahead = reached
    return ahead
