"""A merge: keeps the first answer of each (pair, epoch), and delivers epochs in order, once.

It pulls: offers only tell what could be had. It fetches the lowest epochs of its window first,
one replica's answer of each pair, and compares the other's by its digest [4]. It delivers an
epoch when every pair that the epoch's generation lists has answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from tandem_runtime.protocol.contact import Contact, splits_discovered, told_who_leads
from tandem_runtime.protocol.data import Generation, Header, Peer, Settings
from tandem_runtime.protocol.effects import Effect, Exit, Happened, Send
from tandem_runtime.protocol.messages import (
    Answer,
    MergeReport,
    MergeView,
    NotLead,
    Offers,
    SinkPosition,
    Splits,
    Terminate,
    Want,
)
from tandem_runtime.protocol.muster import Muster, Present
from tandem_runtime.protocol.sink import SinkTracker
from tandem_runtime.protocol.words import Words

Slot = tuple[str, int]
"""A pair and an epoch."""


class Taken(NamedTuple):
    """The answer that will be delivered for a (pair, epoch)."""

    volume: str
    digest: int
    payload: object


class MergeMachine:
    """One process of a merge: active for its slot, or standing by."""

    def __init__(
        self,
        volume_id: str,
        incarnation: int,
        slot: int,
        sinks: tuple[str, ...],
        settings: Settings,
        now: int,
    ) -> None:
        self.me = volume_id
        self.incarnation = incarnation
        self.slot = slot
        self.settings = settings
        self.contact = Contact(settings.silence, now)
        self.words = Words(settings)
        self.sinks = {name: SinkTracker(name) for name in sinks}
        self.active = False
        self.delivered = 0
        self.recorded = 0
        """What the header log says is delivered."""
        self.headers: dict[int, Header] = {}
        self.generations: dict[int, Generation] = {}
        self.holders: dict[str, tuple[str, ...]] = {}
        self.primaries: dict[str, str] = {}
        self.offers: dict[Slot, dict[str, int]] = {}
        """Digest that each volume offers."""
        self.asked: dict[Slot, tuple[str, int]] = {}
        """Whom an answer was asked of, and when."""
        self.answers: dict[Slot, Taken] = {}
        self.differing: dict[str, tuple[str, int]] = {}
        """Volumes whose answer differed from their twin's; not asked until they are rebuilt."""
        self.leaves_at: int | None = None
        """When it goes at the latest, once it was asked to."""

    def handle(self, now: int, sender: Peer | None, message: object) -> list[Effect]:
        """Take a message in."""
        if sender is not None and self.contact.stale(sender):
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
                effects += sink.read(self.recorded, now)
        return effects + self._ask(now) + self._deliver(now)

    def _report(self, now: int) -> list[Effect]:
        lead = self.contact.target(now)
        if not lead:
            return []
        report = MergeReport(
            sequence=0,
            slot=self.slot,
            delivered=self.delivered,
            have=self._last_header(),
            differing=tuple((p, e, v) for v, (p, e) in self.differing.items()),
            leaving=self.leaves_at is not None,
        )
        if not self.words.worth((lead, report), now):
            return []
        return [Send(lead, report._replace(sequence=self.contact.next_sequence()))]

    def _last_header(self) -> int:
        """Headers are known without a gap through this epoch."""
        return max(self.headers, default=self.delivered)

    # --- the lead's view ----------------------------------------------------------------------

    def _view(self, now: int, sender: Peer, view: MergeView) -> list[Effect]:
        term = self.contact.version[0]
        if not self.contact.takes(sender, view.version, now):
            return []
        if view.completed:
            return [Exit("completed")]
        if view.version[0] > term:
            # A rebuilt header log (i) may name an epoch anew: what was known counts no more.
            self._forget_answers()
        self.recorded = max(self.recorded, view.delivered)
        self.holders = dict(view.holders)
        self.primaries = dict(view.primaries)
        seated = {volume for volumes in self.holders.values() for volume in volumes}
        self.differing = {v: at for v, at in self.differing.items() if v in seated}
        for offering in self.offers.values():
            for volume in [v for v in offering if v not in seated]:
                del offering[volume]
        self.generations.update({g.number: g for g in view.generations})
        for header in view.headers:
            if header.epoch == self._last_header() + 1:
                self.headers[header.epoch] = header
        effects: list[Effect] = []
        if view.active and (not self.active or view.delivered > self.delivered):
            # Another merge may have delivered meanwhile, even unnoticed by this one.
            for sink in self.sinks.values():
                if not self.active or sink.asked_at is None:
                    effects += sink.read(self.recorded, now)
        self.active = view.active
        if not self.active:
            self._forget_answers()
            return effects if self.leaves_at is None else [Exit("stopped")]
        return effects + self._ask(now) + self._deliver(now)

    def _forget_answers(self) -> None:
        """A standby, or a merge of a new term, starts from the lead's headers and new offers."""
        self.headers = {}
        self.offers = {}
        self.asked = {}
        self.answers = {}

    # --- answers ------------------------------------------------------------------------------

    def _offered(self, now: int, sender: Peer, message: Offers) -> list[Effect]:
        """A replica tells what it has."""
        if not self.active or sender.volume not in self.holders.get(message.pair, ()):
            return []
        last = self.delivered + self.settings.window
        effects: list[Effect] = []
        for epoch, _, digest in message.offers:
            if self.delivered < epoch <= last:
                slot = (message.pair, epoch)
                self.offers.setdefault(slot, {})[sender.volume] = digest
                effects += self._compare(slot)
        return effects + self._ask(now)

    def _compare(self, slot: Slot) -> list[Effect]:
        """Do the twins agree? If not, one is rebuilt: never the one that counts (TwinsDiffer).

        What was fetched first counts, unless the primary's answer comes while nothing is
        delivered yet; then the primary's is fetched instead.
        """
        taken = self.answers.get(slot)
        if taken is None:
            return []
        for volume, digest in self.offers[slot].items():
            if digest == taken.digest or volume in self.differing:
                continue
            wrong = volume
            if self.primaries.get(slot[0]) == volume and not self._under_way(slot[1]):
                wrong = taken.volume
                del self.answers[slot]
            self.differing[wrong] = slot
            return [Happened("TwinsDiffer", f"{slot[0]} epoch {slot[1]}", wrong)]
        return []

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
            header = self.headers.get(epoch)
            if header is None:
                break
            for pair in self.generations[header.generation].names():
                volume = self._whom_to_ask((pair, epoch), now)
                if volume is not None:
                    wanted.setdefault(volume, []).append(epoch)
        return [Send(volume, Want(tuple(epochs))) for volume, epochs in wanted.items()]

    def _whom_to_ask(self, slot: Slot, now: int) -> str | None:
        """The replica to ask for an answer, or none if it came or is on its way."""
        if slot in self.answers:
            return None
        offering = [v for v in self.offers.get(slot, ()) if v not in self.differing]
        if not offering:
            return None
        asked = self.asked.get(slot)
        if asked is not None and now - asked[1] < self.settings.retry // 2:
            return None
        last = offering.index(asked[0]) if asked is not None and asked[0] in offering else -1
        volume = offering[(last + 1) % len(offering)]
        self.asked[slot] = (volume, now)
        return volume

    def _answered(self, now: int, sender: Peer, message: Answer) -> list[Effect]:
        """A result came: the first one of a pair and epoch is kept, another one is dropped."""
        slot = (message.pair, message.epoch)
        header = self.headers.get(message.epoch)
        if not self.active or header is None or message.epoch <= self.delivered:
            return [Happened("DuplicateDropped", f"{message.pair} epoch {message.epoch}")]
        if message.pair not in self.generations[header.generation].names():
            return [Happened("StaleRefused", sender.volume, "pair not of this generation")]
        if sender.volume not in self.holders.get(message.pair, ()) or (
            sender.volume in self.differing
        ):
            return [Happened("StaleRefused", sender.volume, "no seat")]
        if slot in self.answers:
            return [Happened("DuplicateDropped", f"{message.pair} epoch {message.epoch}")]
        (result,) = cast("tuple[object]", message.payload)
        self.answers[slot] = Taken(sender.volume, message.digest, result)
        self.offers.setdefault(slot, {})[sender.volume] = message.digest
        return self._compare(slot) + self._deliver(now)

    # --- delivery -----------------------------------------------------------------------------

    def _deliver(self, now: int) -> list[Effect]:
        """Deliver the next epoch to every sink that does not have it yet, if it is whole."""
        header = self.headers.get(self.delivered + 1)
        if header is None:
            return []
        pairs = sorted(self.generations[header.generation].names())
        taken = [self.answers.get((pair, header.epoch)) for pair in pairs]
        if any(answer is None for answer in taken):
            return []
        answers = tuple(
            (pair, answer.payload) for pair, answer in zip(pairs, taken, strict=True) if answer
        )
        effects: list[Effect] = []
        for sink in self.sinks.values():
            effects += sink.deliver(header.epoch, answers, now)
        return effects

    def _position(self, now: int, _: None, message: SinkPosition) -> list[Effect]:
        """A sink told how far it is."""
        sink = self.sinks[message.sink]
        if sink.told(message.position, message.op):
            return [Happened("SinkRewound", sink.name, f"at {message.position}")]
        positions = [s.position for s in self.sinks.values() if s.position is not None]
        if len(positions) < len(self.sinks):
            return []
        before, self.delivered = self.delivered, max(self.delivered, min(positions))
        if self.delivered == before:
            return self._deliver(now)
        self._forget_delivered()
        return self._report(now) + self._ask(now) + self._deliver(now)

    def _forget_delivered(self) -> None:
        """Drop what is delivered [12]."""
        for epoch in [e for e in self.headers if e <= self.delivered]:
            del self.headers[epoch]
        for known in (self.offers, self.asked, self.answers):
            for slot in [slot for slot in known if slot[1] <= self.delivered]:
                del known[slot]
        named = {header.generation for header in self.headers.values()}
        newest = max(self.generations, default=0)
        for number in [n for n in self.generations if n < newest and n not in named]:
            del self.generations[number]

    # --- the rest -----------------------------------------------------------------------------

    def _muster(self, now: int, sender: Peer, message: Muster) -> list[Effect]:
        """The header log is rebuilt (i): say what is known, refuse lower terms from now on."""
        if not self.contact.muster(sender, message.term, now):
            return []
        reply = Present(
            term=message.term,
            kind="merge",
            pair="",
            committed=0,
            verified=False,
            slot=self.slot,
            delivered=self.delivered,
            headers=tuple(self.headers[e] for e in sorted(self.headers)),
            generations=tuple(self.generations.values()),
        )
        return [Send(sender.volume, reply)]

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
    NotLead: told_who_leads,
    Splits: splits_discovered,
    Offers: MergeMachine._offered,
    Answer: MergeMachine._answered,
    SinkPosition: MergeMachine._position,
    Muster: MergeMachine._muster,
    Terminate: MergeMachine._terminate,
}
