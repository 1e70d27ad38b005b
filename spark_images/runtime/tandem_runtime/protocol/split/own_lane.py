"""Runs a split's own lane: reads rows, seals chunks on two volumes, then acknowledges them.

A lane takes no row before its opening is recorded. A chunk counts, is reported to the lead, and
its rows are acknowledged to their sources, once it is on every volume now required [1] [8].
"""

from __future__ import annotations

from typing import NamedTuple

from tandem_runtime.protocol.effects import Acknowledge, Effect, Erase, Pull, Send, Ship, Write
from tandem_runtime.protocol.heartbeat import Heartbeat
from tandem_runtime.protocol.log.replicated_log import Fence, OwnedLog
from tandem_runtime.protocol.messages.peers import CopyChunk, LaneReport, Owned, SourceRows, Version
from tandem_runtime.protocol.states import PARTITION, PartitionState
from tandem_runtime.protocol.types import (
    Chunk,
    LaneId,
    Mark,
    Note,
    Position,
    ProtocolSettings,
    Segment,
)

COPIES_AT_ONCE = 4
"""Chunks sent again to a buddy in one go."""

SEALED_WITHIN = 5000
"""Milliseconds after which rows are sealed into a chunk at the latest."""

NOTES_AT_ONCE = 16
"""Notes of chunks sent to the lead in one report."""


class PartitionReading(NamedTuple):
    """Progress of an owned source partition at its owner, ahead of the last sealed chunk."""

    position: Position
    event_time: int
    state: PartitionState
    pulled_at: int | None
    """When the pull under way was sent."""
    waiting_since: int | None
    """Since when requests to the source have returned no rows."""
    tenure: int
    """How often this partition was assigned to a lane, this time included."""
    rows: int
    """Rows read since the beginning, by all owners of the partition."""
    rejected: int
    """Rows and files rejected since the beginning, by all owners of the partition."""
    readable: bool = True
    """False while the source cannot be read; then it does not count as idle."""
    empty_at: int | None = None
    """When the source last answered that it has no rows; only an answer proves that it is idle."""

    def asked(self, now: int) -> PartitionReading:
        """Return the reading with a pull under way."""
        since = now if self.waiting_since is None and self.readable else self.waiting_since
        return self._replace(pulled_at=now, waiting_since=since)

    def is_answered_by(self, message: SourceRows) -> bool:
        """Whether a message answers the pull under way, and its rows are still wanted."""
        return (
            self.pulled_at is not None and self.position == message.position and self.state.is_read
        )

    def become(self, partition: str, state: PartitionState) -> PartitionReading:
        """Return the reading in another state, or in the same."""
        if state is self.state:
            return self
        PARTITION.check(self.state, state, partition)
        return self._replace(state=state)


class OnItsWay:
    """Chunks sent to the follower and not acknowledged; they are large, so not sent twice soon."""

    __slots__ = ("acked", "fence", "moved_at", "through")

    def __init__(self, now: int) -> None:
        self.fence: Fence = (0, 0)
        self.acked = 0
        self.through = 0
        """The last chunk that was sent."""
        self.moved_at = now
        """When an acknowledgement last made progress, or sending started over."""

    def note(self, number: int) -> None:
        """Count a chunk as sent, unless it is ahead of its turn: the follower ignores it then."""
        if number == self.through + 1:
            self.through = number

    def first_to_send(self, log: OwnedLog, patience: int, now: int) -> int:
        """Return the lowest chunk worth sending now: earlier ones may still be acknowledged."""
        if log.fence != self.fence or log.acked != self.acked or log.acked >= self.through:
            if log.fence != self.fence:
                self.through = log.acked
            self.fence, self.acked, self.moved_at = log.fence, log.acked, now
        elif now - self.moved_at >= patience:
            # All may be lost: send again, a few at a time, as acknowledgements come.
            self.through, self.moved_at = log.acked, now
        return max(log.acked, self.through) + 1


class OwnLane:
    """The lane of this process."""

    def __init__(
        self, lane: LaneId, buddy: str | None, settings: ProtocolSettings, now: int
    ) -> None:
        self.lane = lane
        self.settings = settings
        self.log = OwnedLog(0, 0, 0, now)
        self.log.begin_with(buddy, now)
        self.notes: dict[int, Note] = {}
        """Of chunks that are kept."""
        self.size = 0
        """Bytes of chunks that are kept."""
        self.acknowledged = 0
        """Chunks through this one are acknowledged to their sources."""
        self.readings: dict[str, PartitionReading] = {}
        self.rows: list[Segment] = []
        self.rows_size = 0
        self.changed: set[str] = set()
        """Partitions whose mark the next chunk has to carry."""
        self.rows_since = now
        self.full_since: int | None = None
        self.sent = OnItsWay(now)
        self.heartbeat = Heartbeat(settings)
        self.looked_at = now
        """When partitions were last checked for being idle."""
        self.lost: set[str] = set()
        """Partitions whose source has forgotten rows that are needed."""
        self.ending = False
        self.suspended = False
        """Sources are not pulled; rows already taken in are sealed and delivered."""

    # --- rows -----------------------------------------------------------------------------------

    def own(self, owned: Owned) -> None:
        """Read a partition from its position in the last header, also one released before."""
        reading = self.readings.get(owned.partition)
        if reading is None or owned.tenure > reading.tenure:
            before = reading.state if reading is not None else None
            PARTITION.check(before, PartitionState.ACTIVE, owned.partition)
            mark = owned.mark
            self.readings[owned.partition] = PartitionReading(
                position=mark.position,
                event_time=mark.event_time,
                state=PartitionState.ACTIVE,
                pulled_at=None,
                waiting_since=None,
                tenure=owned.tenure,
                rows=mark.rows,
                rejected=mark.rejected,
            )

    def release(self, partition: str) -> None:
        """Release a partition: the next chunk records that, and no later one has rows of it."""
        reading = self.readings.get(partition)
        if reading is not None and reading.state.is_read:
            self.readings[partition] = reading.become(partition, PartitionState.RELEASED)
            self.changed.add(partition)

    def disown(self, kept: set[str]) -> None:
        """Forget released partitions that have another owner now."""
        for partition in [p for p in self.readings if p not in kept]:
            if (
                self.readings[partition].state is PartitionState.RELEASED
                and partition not in self.changed
            ):
                del self.readings[partition]

    def reads(self, partition: str) -> bool:
        """Whether more rows of a partition are wanted here."""
        reading = self.readings.get(partition)
        return reading is not None and reading.state.is_read

    def pulls(self, now: int) -> list[Effect]:
        """Pull rows from sources, as long as there is room; one pull from each at a time."""
        if self.ending or self.suspended or not self._has_room():
            return []
        effects: list[Effect] = []
        for partition, reading in self.readings.items():
            overdue = reading.pulled_at is None or (
                now - reading.pulled_at >= self.settings.silence
            )
            if reading.state.is_read and overdue:
                self.readings[partition] = reading.asked(now)
                effects.append(Pull(partition, reading.position))
        return effects

    def _has_room(self) -> bool:
        """Every bound admits one item when empty [12]."""
        kept = self.size + self.rows_size
        return kept == 0 or kept < self.settings.max_lane_bytes

    def rows_came(self, message: SourceRows, now: int) -> None:
        """Take in a source's answer; ignore an answer to an earlier pull."""
        reading = self.readings.get(message.partition)
        if reading is None or self.ending or not reading.is_answered_by(message):
            return
        if message.forgotten:
            self.lost.add(message.partition)
            return
        if message.unreadable:
            self._cannot_know(message.partition, reading, now)
            return
        reading = reading._replace(
            pulled_at=None, readable=True, rejected=reading.rejected + message.rejected
        )
        self.readings[message.partition] = reading
        if message.end != message.position or message.ended:
            state = PartitionState.ENDED if message.ended else PartitionState.ACTIVE
            self.readings[message.partition] = reading.become(message.partition, state)._replace(
                position=message.end,
                event_time=max(reading.event_time, message.event_time),
                waiting_since=None,
                empty_at=None,
                rows=reading.rows + message.rows,
            )
        elif not message.rejected:
            self.readings[message.partition] = reading._replace(empty_at=now)
            return
        self._note_change(message.partition, now)
        if message.end != message.position:
            self.rows.append(
                Segment(
                    partition=message.partition,
                    position=message.position,
                    ordinal=reading.rows,
                    rows=message.rows,
                    payload=message.payload,
                )
            )
            self.rows_size += message.size

    def _cannot_know(self, partition: str, reading: PartitionReading, now: int) -> None:
        """Restart the idle timeout once the source can be read: rows may come unseen until then."""
        self.readings[partition] = reading.become(partition, PartitionState.ACTIVE)._replace(
            waiting_since=None, empty_at=None, readable=False
        )
        if reading.state is PartitionState.IDLE:
            self._note_change(partition, now)

    def _note_change(self, partition: str, now: int) -> None:
        """Let the next chunk carry this partition's mark; its age counts from the first one."""
        if not self.rows and not self.changed:
            self.rows_since = now
        self.changed.add(partition)

    def grow_idle(self, timeouts: dict[str, int | None], now: int) -> None:
        """Mark partitions idle, where the stream has a timeout for that.

        Only empty answers of the source count: not the time in which a full, ending or suspended
        lane did not pull, the source could not be read or took long to answer, and not the time in
        which this process did not run and rows may have come.
        """
        unasked = self.ending or self.suspended
        away = unasked or now - self.looked_at >= self.settings.silence
        self.looked_at = now
        for partition, reading in self.readings.items():
            timeout = timeouts.get(partition)
            if (
                reading.waiting_since is None
                or timeout is None
                or reading.state is not PartitionState.ACTIVE
            ):
                continue
            if partition in self.lost:
                continue
            if away:
                self.readings[partition] = reading._replace(waiting_since=now)
            elif reading.empty_at is not None and (
                reading.empty_at - reading.waiting_since >= timeout
            ):
                self.readings[partition] = reading.become(partition, PartitionState.IDLE)
                self.changed.add(partition)

    # --- chunks ---------------------------------------------------------------------------------

    def seal(self, version: Version, now: int) -> list[Effect]:
        """Seal the rows and marks that came into a chunk, if it is due."""
        if not self.changed or not self._due(now):
            return []
        marks = tuple(
            (
                partition,
                Mark(
                    reading.position,
                    reading.event_time,
                    reading.state,
                    reading.rows,
                    reading.rejected,
                ),
            )
            for partition in sorted(self.changed)
            for reading in (self.readings[partition],)
        )
        note = Note(self.rows_size, marks)
        number = self.log.append()
        self.notes[number] = note
        self.size += note.size
        chunk = Chunk(note, tuple(self.rows))
        self.rows, self.rows_size, self.changed = [], 0, set()
        effects: list[Effect] = [Write(("chunk", self.lane, number), chunk)]
        if self.log.follower is not None:
            effects.append(self._copy(number, version))
            self.sent.note(number)
        return effects + self.acknowledge()

    def _due(self, now: int) -> bool:
        """Whether to seal now: after half an interval, so that a cut finds earlier rows sealed.

        However long epochs are, rows are safe soon, and sources can forget them.
        """
        return (
            self.ending
            or now - self.rows_since >= min(self.settings.interval // 2, SEALED_WITHIN)
            or self.rows_size >= self.settings.max_chunk_bytes
            or any(not self.readings[p].state.is_read for p in self.changed)
        )

    def _copy(self, number: int, version: Version) -> Effect:
        follower = self.log.follower or ""
        message = CopyChunk(self.lane, self.log.fence, version, self.log.base, number)
        return Ship(follower, message, (("chunk", self.lane, number),))

    def copy_again(self, version: Version, now: int) -> list[Effect]:
        """Send the follower chunks that it lacks, or a heartbeat; do not resend too soon."""
        if self.log.follower is None:
            return []
        lacking = self.log.next_to_copy(COPIES_AT_ONCE)
        first = self.sent.first_to_send(self.log, self.settings.copy_silence // 2, now)
        missing = [self._copy(n, version) for n in lacking if n >= first]
        for number in lacking:
            self.sent.note(number)
        alive = Send(
            self.log.follower, CopyChunk(self.lane, self.log.fence, version, self.log.base, 0)
        )
        return missing or ([alive] if self.heartbeat.is_due(alive, now) else [])

    def acknowledge(self) -> list[Effect]:
        """Acknowledge rows to their sources that are on every volume required."""
        effects: list[Effect] = []
        for number in range(self.acknowledged + 1, self.log.published + 1):
            if number in self.notes:
                effects.extend(
                    Acknowledge(partition, mark.position)
                    for partition, mark in self.notes[number].marks
                )
        self.acknowledged = max(self.acknowledged, self.log.published)
        return effects

    def trim(self, through: int) -> list[Effect]:
        """Forget chunks that a recorded trim point covers [5]."""
        effects: list[Effect] = []
        for number in range(self.log.base + 1, min(through, self.log.end) + 1):
            self.size -= self.notes.pop(number).size
            effects.append(Erase(("chunk", self.lane, number)))
        if effects:
            self.full_since = None
            self.log.base = through
            self.log.acked = max(self.log.acked, through)
            effects.insert(0, Write(("lane", self.lane), through))
        return effects

    # --- reports --------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the owner leaves and everything it took in is sealed."""
        return self.ending and not self.changed and self.log.published == self.log.end

    def report(self, reach: int, now: int) -> LaneReport:
        """Return the report of this lane for the lead."""
        first = reach + 1
        last = min(self.log.published, first + NOTES_AT_ONCE - 1)
        notes = tuple((n, self.notes[n]) for n in range(first, last + 1) if n in self.notes)
        return LaneReport(
            lane=self.lane,
            through=self.log.published,
            notes=notes,
            live=not self.ended,
            ask=self.log.asking,
            over_bound=self._full_for(2 * self.settings.interval, now),
            stuck=self._full_for(self.settings.max_full, now),
        )

    def _full_for(self, time: int, now: int) -> bool:
        """Whether the lane was full this long without a trim: a replica or sink lags behind."""
        if self._has_room():
            self.full_since = None
            return False
        if self.full_since is None:
            self.full_since = now
        return now - self.full_since >= time
