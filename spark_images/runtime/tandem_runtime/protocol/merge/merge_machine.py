"""Runs a merge: takes one answer of each (pair, epoch) and delivers epochs in order, exactly once.

A merge pulls: an offer only announces a result. It fetches the lowest epochs of its window first,
one replica's answer of each pair, and compares the twin's by digest [4]. It delivers its slot's
part of an epoch once every pair that the header's dealing assigns to the slot has answered.
"""

from __future__ import annotations

from collections.abc import Callable

from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.effects import Effect, Exit, Happened, Send
from tandem_runtime.protocol.election.lead_discovery import (
    LeadDiscovery,
    splits_discovered,
    told_who_leads,
)
from tandem_runtime.protocol.heartbeat import Heartbeat
from tandem_runtime.protocol.log.entries import NEWEST_FORMAT
from tandem_runtime.protocol.log.formats import stop_if_outdated
from tandem_runtime.protocol.merge.answers import Answers, Part
from tandem_runtime.protocol.merge.known_epochs import KnownEpochs
from tandem_runtime.protocol.merge.sink_position import SinkTracker
from tandem_runtime.protocol.merge.sink_survey import Survey
from tandem_runtime.protocol.merge.slot_sealing import Sealing
from tandem_runtime.protocol.messages.peers import (
    Answer,
    MergeReport,
    MergeView,
    NotLead,
    Offers,
    Outdated,
    SinkPosition,
    SinkSurveyed,
    SplitsDiscovered,
    Terminate,
    Want,
)
from tandem_runtime.protocol.messages.rebuild import Muster, Present
from tandem_runtime.protocol.states import DELIVERS, MERGE, MergeRole
from tandem_runtime.protocol.types import UNDIVIDED, Header, Peer, ProtocolSettings, Slot

_STANDBY, _ACTIVE, _LEAVING = MergeRole.STANDBY, MergeRole.ACTIVE, MergeRole.LEAVING
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


class MergeMachine:
    """State machine of one merge process: active for its slot, or standby."""

    def __init__(
        self,
        volume_id: str,
        incarnation: int,
        slot: int,
        sinks: tuple[str, ...],
        settings: ProtocolSettings,
        now: int,
    ) -> None:
        self.me = volume_id
        self.incarnation = incarnation
        self.slot = slot
        self.settings = settings
        self.lead_discovery = LeadDiscovery(settings.silence, now)
        self.heartbeat = Heartbeat(settings)
        self.sinks = {name: SinkTracker(name, slot) for name in sinks}
        self.sealing = Sealing(sinks, settings.silence)
        self.survey = Survey(sinks, settings.silence)
        self.role = MergeRole.STANDBY
        MERGE.check(None, self.role, volume_id)
        self.delivered = 0
        self.recorded = 0
        """Last epoch that this slot has delivered, according to the lead."""
        self.everywhere = 0
        """Last epoch that every slot has delivered, according to the lead."""
        self.slots: dict[int, Slot] = {}
        """All merge slots, as of the last view."""
        self.next_slot = 0
        self.epochs = KnownEpochs(slot)
        self.holders: dict[str, tuple[str, ...]] = {}
        self.primaries: dict[str, str] = {}
        self.answers = Answers(settings.retry // 2)
        self.duplicates_dropped = 0
        self.leaves_at = 0
        """Deadline for its exit, while `LEAVING`."""

    @property
    def active(self) -> bool:
        """Whether it delivers for its slot."""
        return self.role in DELIVERS

    def _become(self, role: MergeRole) -> None:
        MERGE.check(self.role, role, self.me)
        self.role = role

    def _exit(self, reason: str) -> list[Effect]:
        self._become(MergeRole.ENDED)
        return [Exit(reason)]

    def handle(self, now: int, sender: Peer | None, message: object) -> list[Effect]:
        """Handles a message; refuses those of earlier incarnations."""
        if sender is not None and self.lead_discovery.stale(sender):
            return [Happened("StaleRefused", sender.volume, type(message).__name__)]
        return _HANDLERS[type(message)](self, now, sender, message)

    def tick(self, now: int) -> list[Effect]:
        """Sends a report; if active, repeats requests, reads overdue positions and delivers."""
        if self.role is _LEAVING and now >= self.leaves_at:
            return self._exit("stopped")
        effects = self._report(now)
        if self.role not in DELIVERS:
            return effects
        for sink in self.sinks.values():
            unknown = sink.position is None and sink.asked_at is None
            if unknown or sink.overdue(self.settings.silence, now):
                effects += sink.read(self.recorded, now, self._first())
        return effects + self._seal(now) + self._ask(now) + self._deliver(now)

    def _report(self, now: int) -> list[Effect]:
        lead = self.lead_discovery.target(now)
        if not lead:
            return []
        report = MergeReport(
            sequence=0,
            slot=self.slot,
            delivered=self.delivered,
            have=self.epochs.last_epoch(self.delivered),
            differing=tuple((p, e, v) for v, (p, e) in self.answers.differing.items()),
            leaving=self.role is _LEAVING,
            format=NEWEST_FORMAT,
            delivered_digest=self.epochs.digest_of(self.delivered),
            sealed=self._sealed(),
        )
        if not self.heartbeat.is_due((lead, report), now):
            return []
        return [Send(lead, report.replace(sequence=self.lead_discovery.next_sequence()))]

    def _first(self) -> int:
        """Returns the first epoch of this slot."""
        return self.slots[self.slot].first if self.slot in self.slots else 1

    def _sealed(self) -> tuple[int, ...]:
        """Returns slots sealed at every sink, and its own if a sink sealed it while it is open."""
        mine = self.slots.get(self.slot)
        open_here = mine is not None and mine.is_open
        surprised = open_here and any(sink.sealed for sink in self.sinks.values())
        return self.sealing.done() + ((self.slot,) if surprised else ())

    # --- the lead's view ----------------------------------------------------------------------

    def _view(self, now: int, sender: Peer, view: MergeView) -> list[Effect]:
        term = self.lead_discovery.version[0]
        if not self.lead_discovery.takes(sender, view, now):
            return []
        if view.completed:
            return self._exit("completed")
        if view.version[0] > term:
            # A rebuilt header log (i) may cut known epochs again, so nothing known here is valid.
            self._forget_answers()
            self.epochs.dealings = {}
        self._know_slots(view)
        self.holders = dict(view.holders)
        self.primaries = dict(view.primaries)
        seated = {volume for volumes in self.holders.values() for volume in volumes}
        self.answers.keep_seated(seated)
        self.epochs.learn(view, self.delivered)
        if not view.active:
            return self._stand_by()
        begins = self.role is _STANDBY
        if begins:
            self._become(_ACTIVE)
        effects: list[Effect] = []
        if begins or view.recorded > self.delivered:
            # Another merge may have delivered in the meantime.
            for sink in self.sinks.values():
                if begins or sink.asked_at is None:
                    effects += sink.read(self.recorded, now, self._first())
        return effects + self._seal(now) + self._ask(now) + self._deliver(now)

    def _know_slots(self, view: MergeView) -> None:
        self.recorded = max(self.recorded, view.recorded)
        self.everywhere = max(self.everywhere, view.delivered)
        self.slots = {slot.number: slot for slot in view.slots}
        self.next_slot = view.next_slot
        self.sealing.keep(self.slots)

    def _stand_by(self) -> list[Effect]:
        """Stops delivering, because another merge is active; exits if it is leaving."""
        self._forget_answers()
        if self.role is _LEAVING:
            return self._exit("stopped")
        if self.role is _ACTIVE:
            self._become(_STANDBY)
        return []

    def _forget_answers(self) -> None:
        """Drops headers and answers: a standby, or a merge in a new term, gets them again."""
        self.epochs.clear()
        self.answers.clear()

    # --- answers ------------------------------------------------------------------------------

    def _offered(self, now: int, sender: Peer, message: Offers) -> list[Effect]:
        """Stores a replica's offers, compares them with its twin's answers, and fetches."""
        if self.role not in DELIVERS or sender.volume not in self.holders.get(message.pair, ()):
            return []
        last = self.delivered + self.settings.window
        effects: list[Effect] = []
        for offer in message.offers:
            dealt = self.epochs.dealt.get(offer.epoch)
            mine = dealt is None or message.pair in dealt
            if self.delivered < offer.epoch <= last and mine:
                part = (message.pair, offer.epoch)
                self.answers.add_offer(part, sender.volume, offer)
                effects += self._compare(part)
        return effects + self._ask(now)

    def _compare(self, part: Part) -> list[Effect]:
        """Reports a replica whose result differs from its twin's (TwinsDiffer); it is rebuilt.

        The result fetched first is delivered, unless the primary offers its own before the epoch
        is under way at any sink: then the primary's is fetched instead.
        """
        wrong = self.answers.find_other(part, self.epochs.headers.get(part[1]))
        if wrong is None:
            return []
        if self.primaries.get(part[0]) == wrong and not self._under_way(part[1]):
            wrong = self.answers.give_up(part)
        self.answers.differing[wrong] = part
        pair, epoch = part
        return [Happened("TwinsDiffer", f"{pair} epoch {epoch}", wrong, epoch=epoch)]

    def _under_way(self, epoch: int) -> bool:
        """Whether some sink has this epoch, or may have it."""
        return any(
            sink.position is None
            or sink.position >= epoch
            or (sink.position == epoch - 1 and sink.asked_at is not None)
            for sink in self.sinks.values()
        )

    def _ask(self, now: int) -> list[Effect]:
        """Fetches missing answers of the window, lowest epoch first; bypasses slow replicas."""
        wanted: dict[str, list[int]] = {}
        last = self.delivered + self.settings.window
        for epoch in range(self.delivered + 1, last + 1):
            header = self.epochs.headers.get(epoch)
            if header is None:
                break
            for pair in self.epochs.dealt[epoch]:
                volume = self.answers.choose_volume((pair, epoch), header, now)
                if volume is not None:
                    wanted.setdefault(volume, []).append(epoch)
        return [Send(volume, Want(tuple(epochs))) for volume, epochs in wanted.items()]

    def _answered(self, now: int, sender: Peer, message: Answer) -> list[Effect]:
        """Takes the first answer of a pair and epoch; drops duplicates, refuses stale ones."""
        part = (message.pair, message.epoch)
        header = self.epochs.headers.get(message.epoch)
        if self.role not in DELIVERS or header is None or message.epoch <= self.delivered:
            return self._duplicate(message)
        if message.pair not in self.epochs.dealt[message.epoch]:
            return [Happened("StaleRefused", sender.volume, "pair not dealt to this slot")]
        if sender.volume not in self.holders.get(message.pair, ()) or (
            sender.volume in self.answers.differing
        ):
            return [Happened("StaleRefused", sender.volume, "no seat")]
        if message.header != header.digest:
            return [Happened("StaleRefused", sender.volume, "other history")]
        if part in self.answers.taken:
            return self._duplicate(message)
        self.answers.take(sender.volume, message)
        return self._compare(part) + self._deliver(now)

    def _duplicate(self, message: Answer) -> list[Effect]:
        self.duplicates_dropped += 1
        return [Happened("DuplicateDropped", f"{message.pair} epoch {message.epoch}")]

    # --- delivery -----------------------------------------------------------------------------

    def _deliver(self, now: int) -> list[Effect]:
        """Delivers the next epoch, if complete, to every sink that does not have it yet."""
        header = self.epochs.headers.get(self.delivered + 1)
        if header is None or not self._may_pass(header):
            return []
        answers = self.answers.whole(self.epochs.dealt[header.epoch], header.epoch)
        if answers is None:
            return []
        effects: list[Effect] = []
        for sink in self.sinks.values():
            shared = header.dealing != UNDIVIDED
            effects += sink.deliver(header.epoch, answers, now, shared=shared)
        return effects

    def _may_pass(self, header: Header) -> bool:
        """Whether this slot delivers an epoch, and a barrier does not hold it back."""
        mine = self.slots.get(self.slot)
        if mine is None or not mine.delivers(header.epoch):
            return False
        return not header.barrier or self.everywhere >= header.epoch - 1

    def _seal(self, now: int) -> list[Effect]:
        """Seals ended slots, if this is the merge of the lowest open slot."""
        ended = [slot for slot in self.slots.values() if not slot.is_open]
        if not ended or any(
            slot.is_open and number < self.slot for number, slot in self.slots.items()
        ):
            return []
        mine = self.slots.get(self.slot)
        return self.sealing.ask(ended, now) if mine is not None and mine.is_open else []

    def _position(self, now: int, _: None, message: SinkPosition) -> list[Effect]:
        """Takes a sink's answer: the position of this slot, or of one to be sealed."""
        if message.slot != self.slot:
            return self._report(now) if self.sealing.told(message) else []
        sink = self.sinks[message.sink]
        if sink.told(message.position, message.op, sealed=message.sealed):
            where = f"at {message.position}"
            return [Happened("SinkRewound", sink.name, where, epoch=message.position)]
        positions = [s.position for s in self.sinks.values() if s.position is not None]
        if len(positions) < len(self.sinks):
            return []
        before, self.delivered = self.delivered, max(self.delivered, min(positions))
        if self.delivered == before:
            return self._deliver(now)
        self.epochs.forget(self.delivered)
        self.answers.forget(self.delivered)
        return self._report(now) + self._ask(now) + self._deliver(now)

    # --- the rest -----------------------------------------------------------------------------

    def _muster(self, now: int, sender: Peer, message: Muster) -> list[Effect]:
        """Answers a rebuild (i) once all sinks are surveyed; refuses lower terms from now on."""
        if not self.lead_discovery.muster(sender, message.term, now):
            return []
        asked = self.survey.ask(message.term, now)
        if not self.survey.complete:
            return asked
        reply = Present(
            term=message.term,
            format=self.lead_discovery.format,
            kind=MemberKind.MERGE,
            pair="",
            committed=0,
            verified=False,
            slot=self.slot,
            delivered=self.delivered,
            furthest=self.survey.furthest,
            digest=self.epochs.digest_of(self.delivered),
            headers=self.epochs.all_headers(),
            generations=tuple(self.epochs.generations.values()),
            version=self.lead_discovery.version,
            slots=tuple(self.slots.values()),
            next_slot=self.next_slot,
            dealings=tuple(self.epochs.dealings.values()),
        )
        return [Send(sender.volume, reply)]

    def _surveyed(self, _: int, __: None, message: SinkSurveyed) -> list[Effect]:
        self.survey.told(message)
        return []

    def _terminate(self, now: int, _: None, __: Terminate) -> list[Effect]:
        """Exits once another merge is active, or after a heartbeat timeout if there is none.

        A delivery under way may or may not complete; the sink's position shows which.
        """
        if self.role is _STANDBY:
            return self._exit("stopped")
        if self.role is _ACTIVE:
            self._become(_LEAVING)
            self.leaves_at = now + self.settings.silence
        return self._report(now)


_HANDLERS: dict[type, Callable[..., list[Effect]]] = {
    MergeView: MergeMachine._view,
    Outdated: stop_if_outdated,
    NotLead: told_who_leads,
    SplitsDiscovered: splits_discovered,
    Offers: MergeMachine._offered,
    Answer: MergeMachine._answered,
    SinkPosition: MergeMachine._position,
    SinkSurveyed: MergeMachine._surveyed,
    Muster: MergeMachine._muster,
    Terminate: MergeMachine._terminate,
}
