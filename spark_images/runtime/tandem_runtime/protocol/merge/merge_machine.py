"""A merge: keeps the first answer of each (pair, epoch), and delivers epochs in order, once.

It pulls: offers only tell what could be had. It fetches the lowest epochs of its window first,
one replica's answer of each pair, and compares the other's by its digest [4]. It delivers its
slot's part of an epoch when every pair that the header's dealing gives to the slot has answered.
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
from tandem_runtime.protocol.types import UNDIVIDED, Header, Peer, ProtocolSettings, Slot


class MergeMachine:
    """One process of a merge: active for its slot, or standing by."""

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
        self.active = False
        self.delivered = 0
        self.recorded = 0
        """What the lead says this slot has delivered."""
        self.everywhere = 0
        """What it says every slot has delivered."""
        self.slots: dict[int, Slot] = {}
        """All merge slots, as of the last view."""
        self.next_slot = 0
        self.epochs = KnownEpochs(slot)
        self.holders: dict[str, tuple[str, ...]] = {}
        self.primaries: dict[str, str] = {}
        self.answers = Answers(settings.retry // 2)
        self.duplicates_dropped = 0
        self.leaves_at: int | None = None
        """When it goes at the latest, once it was asked to."""

    def handle(self, now: int, sender: Peer | None, message: object) -> list[Effect]:
        """Take a message in."""
        if sender is not None and self.lead_discovery.stale(sender):
            return [Happened("StaleRefused", sender.volume, type(message).__name__)]
        return _HANDLERS[type(message)](self, now, sender, message)

    def tick(self, now: int) -> list[Effect]:
        """Time passed: report; if active, ask again, read positions that are overdue, deliver."""
        if self.leaves_at is not None and now >= self.leaves_at:
            return [Exit("stopped")]
        effects = self._report(now)
        if not self.active:
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
            leaving=self.leaves_at is not None,
            format=NEWEST_FORMAT,
            delivered_digest=self.epochs.digest_of(self.delivered),
            sealed=self._sealed(),
        )
        if not self.heartbeat.is_due((lead, report), now):
            return []
        return [Send(lead, report.replace(sequence=self.lead_discovery.next_sequence()))]

    def _first(self) -> int:
        """The epoch that this slot begins with."""
        return self.slots[self.slot].first if self.slot in self.slots else 1

    def _sealed(self) -> tuple[int, ...]:
        """Ended slots that are sealed everywhere; the own one if that comes as a surprise."""
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
            return [Exit("completed")]
        if view.version[0] > term:
            # A rebuilt header log (i) may name an epoch anew: what was known counts no more.
            self._forget_answers()
            self.epochs.dealings = {}
        self._know_slots(view)
        self.holders = dict(view.holders)
        self.primaries = dict(view.primaries)
        seated = {volume for volumes in self.holders.values() for volume in volumes}
        self.answers.keep_seated(seated)
        self.epochs.learn(view, self.delivered)
        effects: list[Effect] = []
        if view.active and (not self.active or view.recorded > self.delivered):
            # Another merge may have delivered meanwhile, even unnoticed by this one.
            for sink in self.sinks.values():
                if not self.active or sink.asked_at is None:
                    effects += sink.read(self.recorded, now, self._first())
        self.active = view.active
        if not self.active:
            self._forget_answers()
            return effects if self.leaves_at is None else [Exit("stopped")]
        return effects + self._seal(now) + self._ask(now) + self._deliver(now)

    def _know_slots(self, view: MergeView) -> None:
        self.recorded = max(self.recorded, view.recorded)
        self.everywhere = max(self.everywhere, view.delivered)
        self.slots = {slot.number: slot for slot in view.slots}
        self.next_slot = view.next_slot
        self.sealing.keep(self.slots)

    def _forget_answers(self) -> None:
        """A standby, or a merge of a new term, starts from the lead's headers and new offers."""
        self.epochs.clear()
        self.answers.clear()

    # --- answers ------------------------------------------------------------------------------

    def _offered(self, now: int, sender: Peer, message: Offers) -> list[Effect]:
        """A replica tells what it has."""
        if not self.active or sender.volume not in self.holders.get(message.pair, ()):
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
        """Do the twins agree? If not, one is rebuilt: never the one that counts (TwinsDiffer).

        What was fetched first counts, unless the primary's answer comes while nothing is
        delivered yet; then the primary's is fetched instead.
        """
        wrong = self.answers.find_other(part, self.epochs.headers.get(part[1]))
        if wrong is None:
            return []
        if self.primaries.get(part[0]) == wrong and not self._under_way(part[1]):
            wrong = self.answers.give_up(part)
        self.answers.differing[wrong] = part
        return [Happened("TwinsDiffer", f"{part[0]} epoch {part[1]}", wrong)]

    def _under_way(self, epoch: int) -> bool:
        """Has some sink this epoch, or may have it?"""
        return any(
            sink.position is None
            or sink.position >= epoch
            or (sink.position == epoch - 1 and sink.asked_at is not None)
            for sink in self.sinks.values()
        )

    def _ask(self, now: int) -> list[Effect]:
        """Fetch what is wanted of the window, the lowest first; the twin's when one is slow."""
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
        """A result came: the first one of a pair and epoch is kept, another one is dropped."""
        part = (message.pair, message.epoch)
        header = self.epochs.headers.get(message.epoch)
        if not self.active or header is None or message.epoch <= self.delivered:
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
        """Deliver the next epoch to every sink that does not have it yet, if it is whole."""
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
        """Is an epoch this slot's, and has every slot delivered what has to precede it?"""
        mine = self.slots.get(self.slot)
        if mine is None or not mine.delivers(header.epoch):
            return False
        return not header.barrier or self.everywhere >= header.epoch - 1

    def _seal(self, now: int) -> list[Effect]:
        """The merge of the lowest open slot seals those that have ended."""
        ended = [slot for slot in self.slots.values() if not slot.is_open]
        if not ended or any(
            slot.is_open and number < self.slot for number, slot in self.slots.items()
        ):
            return []
        mine = self.slots.get(self.slot)
        return self.sealing.ask(ended, now) if mine is not None and mine.is_open else []

    def _position(self, now: int, _: None, message: SinkPosition) -> list[Effect]:
        """A sink told how far it is, with this slot or with one to be sealed."""
        if message.slot != self.slot:
            return self._report(now) if self.sealing.told(message) else []
        sink = self.sinks[message.sink]
        if sink.told(message.position, message.op, sealed=message.sealed):
            return [Happened("SinkRewound", sink.name, f"at {message.position}")]
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
        """The header log is rebuilt (i): say what is known, refuse lower terms from now on."""
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
        """Stop, once another merge is active; nobody else may be there, so not for long.

        What is under way at a sink finishes there or not, its position tells.
        """
        if not self.active:
            return [Exit("stopped")]
        if self.leaves_at is None:
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
