"""Runs a split: its own lane, copies of other lanes, and its part in the header log."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tandem_runtime.protocol.bounded_map import BoundedMap
from tandem_runtime.protocol.effects import Effect, Exit, Happened, Key, Send, Write
from tandem_runtime.protocol.election.succession import Succession
from tandem_runtime.protocol.heartbeat import Heartbeat
from tandem_runtime.protocol.lead.summary import Summary, summarise
from tandem_runtime.protocol.log.entries import NEWEST_FORMAT
from tandem_runtime.protocol.log.formats import stop_if_outdated
from tandem_runtime.protocol.messages.peers import (
    ChunkCopied,
    CopyChunk,
    CopyEntry,
    Deposed,
    EntryCopied,
    Fetch,
    FillLog,
    FunctionTold,
    LaneView,
    MergeReport,
    NeedFill,
    NewIntent,
    NotLead,
    Outdated,
    RegisterAnswer,
    ReplicaReport,
    SourceRows,
    SplitReport,
    SplitsDiscovered,
    SplitView,
    TakeLead,
    Terminate,
    VolumeGone,
    WantFunction,
)
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.split.buddy_choice import Neighbours
from tandem_runtime.protocol.split.chunk_server import ChunkServer
from tandem_runtime.protocol.split.lane_copies import Copies
from tandem_runtime.protocol.split.own_lane import OwnLane
from tandem_runtime.protocol.states import Bond, LaneState
from tandem_runtime.protocol.types import LaneId, Member, Peer, ProtocolSettings

_OPEN, _CLOSING, _CLOSED = LaneState
_ALONE = Bond.ALONE
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


class SplitMachine:
    """State machine of one split process, on one volume."""

    def __init__(
        self,
        me: Member,
        incarnation: int,
        volume: Mapping[Key, object],
        settings: ProtocolSettings,
        now: int,
    ) -> None:
        self.me = me
        self.incarnation = incarnation
        self.settings = settings
        self.gone: BoundedMap[bool] = BoundedMap()
        """Volumes that are gone for good."""
        self.neighbours = Neighbours(me, self.gone)
        self.succession = Succession(me.volume, volume, settings, self.gone, self.neighbours, now)
        self.copies = Copies(me.volume, volume)
        self.server = ChunkServer(me.volume, self.copies, self.succession.register)
        self.lane: OwnLane | None = None
        self.opening: tuple[LaneId, str | None] | None = None
        self.version = (0, 0)
        """Version of the newest view received."""
        self.floor = (0, 0)
        """An older view than this is of a deposed lead."""
        self.reaches: dict[LaneId, int] = {}
        """Last chunk that a header covers, by lane on this volume."""
        self.timeouts: dict[str, int | None] = {}
        self.sequence = 0
        self.heartbeat = Heartbeat(settings)
        self.leaving = False
        self.at_risk = True
        """Whether rows would be lost with one more split; true until the lead says otherwise."""
        self.seen: BoundedMap[int] = BoundedMap()
        """Newest incarnation seen of each volume; older ones are zombies."""

    def handle(self, now: int, sender: Peer | None, message: object) -> list[Effect]:
        """Handle a message; refuse those of earlier incarnations."""
        if sender is not None:
            known = self.seen.get(sender.volume, 0)
            if sender.incarnation < known:
                return [Happened("StaleRefused", sender.volume, type(message).__name__)]
            if sender.incarnation > known:
                self.seen[sender.volume] = sender.incarnation
        return _HANDLERS[type(message)](self, now, sender, message)

    def tick(self, now: int) -> list[Effect]:
        """Do what is due: the header log, the own lane, the report."""
        effects = self.succession.tick(now)
        if self.lane is not None:
            effects += self._tend_lane(self.lane, now)
        effects += self._report(now)
        return effects

    def summary(self, now: int) -> Summary | None:
        """The pipeline's state as the lead knows it; None if this split does not lead."""
        lead = self.succession.lead
        return summarise(lead, now) if lead is not None else None

    def concerns(self) -> frozenset[str]:
        """The other volumes that this split depends on."""
        found = {member.volume for member in self.neighbours.members}
        if self.lane is not None and self.lane.log.follower is not None:
            found.add(self.lane.log.follower)
        found.update(volume for volume in self.succession.concerns() if volume)
        return frozenset(found - {self.me.volume})

    # --- the own lane -------------------------------------------------------------------------

    def _tend_lane(self, lane: OwnLane, now: int) -> list[Effect]:
        """Seal a chunk that is due, pull rows, and maintain the second copy."""
        log = lane.log
        follower = log.follower
        if follower is not None and (
            log.misses_follower(self.settings, now)
            or follower in self.gone
            or (follower in self.neighbours.leaving and log.bond is Bond.PAIRED)
        ):
            log.drop_follower()
        if log.bond is _ALONE:
            candidate = self.neighbours.next_for_lane()
            if candidate is not None:
                log.fill(candidate, now)
        lane.grow_idle(self.timeouts, now)
        effects = lane.copy_again(self.version, now)
        effects += lane.seal(self.version, now)
        effects += lane.acknowledge()
        return effects + lane.pulls(now)

    def _report(self, now: int) -> list[Effect]:
        """Report to the lead, and ask it for a lane if there is none."""
        lead = self.succession.register.known.lead
        if not lead:
            return []
        effects = self._ask_for_lane()
        lanes = self.copies.past_lanes(self.reaches)
        if self.lane is not None:
            lanes = (self.lane.report(self.reaches.get(self.lane.lane, 0), now), *lanes)
        report = SplitReport(
            sequence=0,
            lanes=lanes,
            opening=self.opening,
            sealed=self.copies.sealed(self.reaches),
            copies=tuple((lane, kept.copy.through) for lane, kept in self.copies.lanes.items()),
            leaving=self.leaving,
            lost=tuple(sorted(self.lane.lost)) if self.lane is not None else (),
            format=NEWEST_FORMAT,
            name=self.me.name,
        )
        if self.heartbeat.is_due((lead, report), now):
            self.sequence += 1
            effects.append(Send(lead, report.replace(sequence=self.sequence)))
        return effects

    def _ask_for_lane(self) -> list[Effect]:
        """Choose a number never used before, and a buddy; both count once recorded."""
        if self.lane is not None or self.leaving:
            return []
        buddy = self.neighbours.next_for_lane()
        if self.opening is not None:
            self.opening = (self.opening[0], buddy)
            return []
        number = self.copies.highest + 1
        self.copies.highest = number
        lane = LaneId(self.me.volume, number)
        self.opening = (lane, buddy)
        return [Write(("lanes",), number), Write(("lane", lane), 0)]

    def _end_lane(self) -> None:
        """End the own lane; another split reads rows again that are not sealed."""
        if self.lane is not None:
            log = self.lane.log
            self.copies.keep_own(self.lane.lane, log.base, log.end, self.lane.notes)
            self.lane = None

    # --- the lead's view ----------------------------------------------------------------------

    def _view(self, now: int, _: Peer, view: SplitView) -> list[Effect]:
        if view.version < max(self.version, self.floor):
            return []
        self.version = view.version
        self.at_risk = view.at_risk
        self.neighbours.leaving = set(view.leaving)
        self.timeouts = dict(view.streams)
        self.reaches = {lane.lane: lane.reach for lane in view.lanes}
        effects: list[Effect] = []
        for lane in view.lanes:
            effects += self._lane_view(lane, now)
        if self.opening is not None and view.opened >= self.opening[0].number:
            # Recorded, and over before this split got a view of it: ask for another one.
            self.opening = None
        if self.lane is not None and self.lane.lane not in self.reaches:
            # It was recorded once, and a view lists all own lanes: this one is over.
            self._end_lane()
        for forgotten in view.forgotten:
            effects += self.copies.forget(forgotten, view.version)
        if self.lane is not None:
            effects += self._partitions(self.lane, view, now)
        if view.completed:
            effects.append(Exit("completed"))
        elif self._may_leave(view):
            effects.append(Exit("left"))
        return effects

    def _lane_view(self, lane: LaneView, now: int) -> list[Effect]:
        """Apply the record of a lane that is kept here."""
        if self.opening is not None and lane.lane == self.opening[0] and lane.state is not _CLOSED:
            self.opening = None
            self.lane = OwnLane(lane.lane, lane.buddy, self.settings, now)
            self._heed_intent(self.lane)
        if self.lane is not None and lane.lane == self.lane.lane:
            if lane.state is _CLOSED:
                self._end_lane()
                return []
            self.lane.log.recorded(lane.view, lane.buddy)
            return self.lane.acknowledge() + self.lane.trim(lane.trimmed)
        if lane.lane.split == self.me.volume and lane.lane not in self.copies.lanes:
            # Opened after this split had given up asking for it: it never took a row.
            self.copies.keep_own(lane.lane, lane.trimmed, lane.trimmed, {})
        effects: list[Effect] = []
        if lane.state is _CLOSING and lane.buddy == self.me.volume:
            effects += self.copies.seal(lane.lane, lane.view)
        return effects + self.copies.trim(lane.lane, lane.trimmed)

    def _partitions(self, lane: OwnLane, view: SplitView, now: int) -> list[Effect]:
        """Read owned partitions, and release those that the lead asks for."""
        mine = [owned for owned in view.owned if owned.lane == lane.lane]
        for owned in mine:
            lane.own(owned)
        lane.disown({owned.partition for owned in mine})
        for partition in view.release:
            lane.release(partition)
        return lane.pulls(now)

    # --- leaving ------------------------------------------------------------------------------

    def _terminate(self, now: int, _: None, __: Terminate) -> list[Effect]:
        """Seal, hand lane and lead over, then exit once no member needs this volume."""
        self.leaving = True
        self.succession.leave()
        self.opening = None
        effects: list[Effect] = []
        if self.lane is not None:
            self.lane.ending = True
            effects += self.lane.seal(self.version, now)
        return effects + self._report(now)

    def _may_leave(self, view: SplitView) -> bool:
        place = self.succession.register.known
        return (
            self.leaving
            and self.lane is None
            and self.me.volume not in (place.lead, place.buddy)
            and all(lane.trimmed == lane.last for lane in view.lanes if lane.state is _CLOSED)
            and all(lane.lane.split != self.me.volume for lane in view.lanes)
            and all(lane.buddy != self.me.volume for lane in view.lanes)
        )

    # --- chunks -------------------------------------------------------------------------------

    def _copy_chunk(self, _: int, sender: Peer, message: CopyChunk) -> list[Effect]:
        self.floor = max(self.floor, message.version)
        effects, through = self.copies.take(message)
        if through is None:
            return [Happened("StaleRefused", sender.volume, "sealed or older fill")]
        return [*effects, Send(sender.volume, ChunkCopied(message.lane, message.fence, through))]

    def _chunk_copied(self, now: int, sender: Peer, message: ChunkCopied) -> list[Effect]:
        lane = self.lane
        if lane is None or lane.lane != message.lane:
            return []
        if not lane.log.copied(sender.volume, message.fence, message.through, now):
            return []
        return lane.acknowledge() + self._report(now)

    def _source_rows(self, now: int, _: None, message: SourceRows) -> list[Effect]:
        if self.lane is None:
            return []
        self.lane.rows_came(message, now)
        return self.lane.seal(self.version, now) + self.lane.pulls(now)

    def _fetch(self, _: int, sender: Peer, message: Fetch) -> list[Effect]:
        return self.server.answer(sender, message, self.lane)

    def _function_wanted(self, _: int, sender: Peer, message: WantFunction) -> list[Effect]:
        return self.server.tell_function(sender, message)

    def _function_told(self, _: int, __: Peer, message: FunctionTold) -> list[Effect]:
        self.server.learn(message.function)
        return []

    # --- intent and discovery -----------------------------------------------------------------

    def _new_intent(self, now: int, _: None, message: NewIntent) -> list[Effect]:
        for function in message.functions:
            self.server.learn(function)
        succession = self.succession
        known = succession.intent
        if known is None or message.intent.version > known.version:
            succession.intent = message.intent
        if self.lane is not None:
            self._heed_intent(self.lane)
        if succession.lead is None:
            return []
        return succession.lead.on_intent(message.intent, now)

    def _heed_intent(self, lane: OwnLane) -> None:
        """Pause sources while the newest intent suspends the pipeline."""
        intent = self.succession.intent
        lane.suspended = intent is not None and intent.suspended

    def _splits(self, _: int, __: None, message: SplitsDiscovered) -> list[Effect]:
        self.neighbours.members = message.members
        return []

    def _volume_gone(self, now: int, _: None, message: VolumeGone) -> list[Effect]:
        if message.volume == self.me.volume:
            return [Exit("gone")]
        self.gone[message.volume] = True
        self.seen.pop(message.volume, None)
        lead = self.succession.lead
        return lead.advance(now) if lead is not None else []


def _succession(method: Callable[..., list[Effect]]) -> Callable[..., list[Effect]]:
    """Return a handler that passes a message to `Succession`."""

    def handler(machine: SplitMachine, now: int, sender: Peer, message: object) -> list[Effect]:
        return method(machine.succession, sender, message, now)

    return handler


_HANDLERS: dict[type, Callable[..., list[Effect]]] = {
    SplitReport: _succession(Succession.on_report),
    ReplicaReport: _succession(Succession.on_report),
    MergeReport: _succession(Succession.on_report),
    SplitView: SplitMachine._view,
    Outdated: stop_if_outdated,
    NotLead: lambda machine, now, _sender, _message: machine.succession.register.tick(now),
    CopyChunk: SplitMachine._copy_chunk,
    ChunkCopied: SplitMachine._chunk_copied,
    SourceRows: SplitMachine._source_rows,
    Fetch: SplitMachine._fetch,
    FillLog: _succession(Succession.filled),
    CopyEntry: _succession(Succession.entry),
    EntryCopied: _succession(Succession.copied),
    TakeLead: _succession(Succession.take_lead),
    NeedFill: lambda machine, _now, sender, message: machine.succession.need_fill(sender, message),
    Deposed: lambda machine, now, _sender, message: machine.succession.deposed(message, now),
    RegisterAnswer: lambda machine, now, _sender, message: machine.succession.answered(
        message, now
    ),
    WantFunction: SplitMachine._function_wanted,
    FunctionTold: SplitMachine._function_told,
    Present: lambda machine, _now, sender, message: machine.succession.on_present(sender, message),
    NewIntent: SplitMachine._new_intent,
    SplitsDiscovered: SplitMachine._splits,
    VolumeGone: SplitMachine._volume_gone,
    Terminate: SplitMachine._terminate,
}
