"""A replica: joins its pair, runs every epoch as one micro-batch, keeps results until delivered.

What happens to an epoch, in this order: its header stands on the volume, its rows are fetched,
Spark runs it, its result is in the outbox, Spark commits it, it is acknowledged and offered. A
process that dies anywhere in between starts at its last commit and does the same again [4].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tandem_runtime.protocol import messages
from tandem_runtime.protocol.contact import Contact, splits_discovered, told_who_leads
from tandem_runtime.protocol.data import Generation, Header, LaneId, Peer, Settings, Span
from tandem_runtime.protocol.effects import (
    Effect,
    Erase,
    Exit,
    Finish,
    Happened,
    Key,
    Run,
    Send,
    Ship,
    Write,
)
from tandem_runtime.protocol.joining import Joining, Kept, Skip, copied_results, shipped_state
from tandem_runtime.protocol.messages import (
    Answer,
    BatchCommitted,
    BatchResult,
    CopyRefused,
    CopyState,
    Fetch,
    Fetched,
    Installed,
    NotLead,
    Offers,
    ReplicaReport,
    ReplicaView,
    SparkUp,
    Splits,
    StateCopied,
    Terminate,
    Want,
)
from tandem_runtime.protocol.muster import Muster, Present
from tandem_runtime.protocol.words import Words


class ReplicaMachine:
    """One process of a replica, on one volume."""

    def __init__(
        self,
        volume_id: str,
        incarnation: int,
        pair: str,
        keys: object,
        volume: Mapping[Key, object],
        settings: Settings,
        now: int,
        *,
        booting: bool = False,
    ) -> None:
        """Start on a volume; while `booting` nothing is run, until `SparkUp`."""
        self.me = volume_id
        self.incarnation = incarnation
        self.pair = pair
        self.keys = keys
        self.settings = settings
        self.contact = Contact(settings.silence, now)
        self.words = Words(settings)
        self.checkpoints = sorted(_stored(volume, "checkpoint"))
        self.headers = cast("dict[int, Header]", _stored(volume, "header"))
        self.generations = cast("dict[int, Generation]", _stored(volume, "generation"))
        self.outbox = cast("dict[int, Kept]", _stored(volume, "kept"))
        self.verified = ("verified",) in volume
        self.committed = self.checkpoints[-1] if self.verified else 0
        self.lanes: dict[LaneId, tuple[str, ...]] = {}
        self.merges: tuple[str, ...] = ()
        self.delivered = 0
        self.trim = 0
        self.calls = 0
        """Calls the lead told of: others may give up what the state here makes dispensable."""
        self.joining = Joining(pair, keys, now)
        self.skip = Skip()
        self.booting = booting
        self.tries: dict[Span, int] = {}
        """How often rows of the next epoch were asked for: each time the other copy is tried."""
        self.running: int | None = None
        self.rows: dict[Span, object] = {}
        self.asked_for = 0
        """The epoch whose rows were last asked for."""
        self.asked_at = now
        self.stopping = False
        self.resumed = self.verified

    def handle(self, now: int, sender: Peer | None, message: object) -> list[Effect]:
        """Take a message in."""
        if sender is not None and self.contact.stale(sender):
            return [Happened("StaleRefused", sender.volume, type(message).__name__)]
        return _HANDLERS[type(message)](self, now, sender, message)

    def tick(self, now: int) -> list[Effect]:
        """Time passed: report, ask again for what is missing, offer what is not delivered."""
        effects: list[Effect] = []
        if self.resumed:
            self.resumed = False
            effects.append(Happened("Resumed", self.me, f"at epoch {self.committed}"))
        effects += self._report(now)
        if self.joins and now - self.joining.asked_at >= self.settings.retry:
            effects += self.joining.ask(now)
        if self.verified:
            effects += self._work(now)
            effects += self._offer()
        return effects

    @property
    def joins(self) -> bool:
        """Is state being copied: the first one, or that of a twin far ahead?"""
        return not self.verified or self.skip.begun

    def _report(self, now: int) -> list[Effect]:
        lead = self.contact.target(now)
        if not lead:
            return []
        report = ReplicaReport(
            sequence=0,
            pair=self.pair,
            committed=self.committed,
            verified=self.verified,
            fresh=not self.verified,
            have=self._last_header(),
            calls=self.calls,
        )
        if not self.words.worth((lead, report), now):
            return []
        return [Send(lead, report._replace(sequence=self.contact.next_sequence()))]

    def _last_header(self) -> int:
        """Headers are known without a gap through this epoch."""
        return max(self.committed, max(self.headers, default=0))

    # --- the lead's view ----------------------------------------------------------------------

    def _view(self, now: int, sender: Peer, view: ReplicaView) -> list[Effect]:
        if not self.contact.takes(sender, view.version, now):
            return []
        if view.standing in (messages.COMPLETED, messages.RETIRED):
            return [Exit(view.standing)]
        if view.standing == messages.DISPLACED:
            return [Happened("Displaced", self.me, self.pair), Exit("displaced", wipe=True)]
        self.delivered = max(self.delivered, view.delivered)
        self.trim = max(self.trim, view.trim)
        self.merges = view.merges
        if self.verified:
            self.calls = view.calls
        self.lanes.update(view.lanes)
        effects = self._take_headers(view) if self.verified else []
        effects += self._forget()
        if view.standing != messages.SEATED:
            return effects
        if not self.verified:
            return effects + self.joining.told(view.source, view.source_epoch, now)
        self.skip.twin = view.source
        return effects + self._work(now)

    def _take_headers(self, view: ReplicaView) -> list[Effect]:
        """The next headers, without a gap, and the generations they name."""
        effects: list[Effect] = []
        for generation in view.generations:
            if generation.number not in self.generations:
                self.generations[generation.number] = generation
                effects.append(Write(("generation", generation.number), generation))
        for header in view.headers:
            if header.epoch == self._last_header() + 1:
                self.headers[header.epoch] = header
        return effects

    def _forget(self) -> list[Effect]:
        """Drop what nobody can ask for any more: delivered results, older state [12]."""
        effects: list[Effect] = []
        for epoch in [e for e in self.outbox if e <= self.delivered]:
            del self.outbox[epoch]
            effects += [Erase(("kept", epoch)), Erase(("outbox", epoch))]
        old = [e for e in self.checkpoints if e < min(self.delivered, self.committed)]
        for epoch in old:
            self.checkpoints.remove(epoch)
            effects.append(Erase(("checkpoint", epoch)))
        for epoch in [e for e in self.headers if e <= self.trim and e < self.committed]:
            del self.headers[epoch]
            effects.append(Erase(("header", epoch)))
        if len(self.generations) > 1:
            effects += self._forget_generations()
        for lane in [lane for lane in self.lanes if len(self.lanes) > _LANES_KNOWN]:
            if all(span.lane != lane for h in self.headers.values() for span in h.spans):
                del self.lanes[lane]
        return effects

    def _forget_generations(self) -> list[Effect]:
        named = {header.generation for header in self.headers.values()}
        newest = max(self.generations)
        old = [n for n in self.generations if n < newest and n not in named]
        for number in old:
            del self.generations[number]
        return [Erase(("generation", number)) for number in old]

    # --- joining ------------------------------------------------------------------------------

    def _state_copied(self, _: int, sender: Peer, message: StateCopied) -> list[Effect]:
        """State came; with the last missing part everything is there to be installed."""
        if not self.joins or (self.verified and message.epoch <= self.committed):
            return []
        install = self.joining.came(sender.volume, message)
        if not install:
            return []
        effects = self._keep_outbox(message) if self.joining.from_twin else []
        return [*effects, *self._keep_header(message), *install]

    def _keep_header(self, message: StateCopied) -> list[Effect]:
        """The header of the epoch that the state is of: rule (i) may need it."""
        if message.header is None or message.generation is None:
            return []
        self.headers[message.epoch] = message.header
        self.generations[message.generation.number] = message.generation
        return [
            Write(("header", message.epoch), message.header),
            Write(("generation", message.generation.number), message.generation),
        ]

    def _keep_outbox(self, message: StateCopied) -> list[Effect]:
        """A twin's results come with its state: once it dies nobody else has them [8]."""
        effects: list[Effect] = []
        for epoch, kept, value in copied_results(message):
            effects += self._keep(epoch, kept, value)
        return effects

    def _installed(self, now: int, _: None, message: Installed) -> list[Effect]:
        """The copy is verified: a full, late member from now on.

        It has taken the place of whatever state was here before.
        """
        effects: list[Effect] = [Write(("checkpoint", e), v) for e, v in self.joining.older()]
        copied = sorted({message.epoch, *(epoch for epoch, _ in self.joining.older())})
        effects += [Erase(("checkpoint", e)) for e in self.checkpoints if e not in copied]
        if self.verified:
            came = f"from epoch {self.committed} to {message.epoch}"
            effects.append(Happened("SkippedAhead", self.me, came))
        self.committed, self.checkpoints = message.epoch, copied
        self.rows, self.tries = {}, {}
        self.verified = True
        self.skip.over()
        self.joining = Joining(self.pair, self.keys, now)
        return [*effects, Write(("verified",), True), *self._report(now), *self._work(now)]

    def _spark_up(self, now: int, _: None, __: SparkUp) -> list[Effect]:
        self.booting = False
        return self._work(now) if self.verified else []

    def _copy_request(self, _: int, sender: Peer, message: CopyState) -> list[Effect]:
        """A joiner wants state."""
        return [shipped_state(self, sender.volume, message)]

    # --- epochs -------------------------------------------------------------------------------

    def _work(self, now: int) -> list[Effect]:
        """Go on, by a copy of the twin's state if that is far ahead."""
        if self.running is not None or self.stopping or self.booting:
            return []
        if self.skip.begins(now):
            return self.joining.told(self.skip.twin, None, now)
        if self.joining.installing is not None or self.skip.waits(now, self.settings):
            return []
        return self._next_epoch(now)

    def _next_epoch(self, now: int) -> list[Effect]:
        """Start it, or ask for those of its rows that have not come."""
        header = self.headers.get(self.committed + 1)
        if header is None or header.epoch > self.delivered + self.settings.max_undelivered:
            return []
        missing = [span for span in header.spans if span not in self.rows]
        if not missing:
            return self._run(header)
        if self.asked_for == header.epoch and now - self.asked_at < self.settings.retry:
            return []
        self.asked_for = header.epoch
        self.asked_at = now
        return [self._fetch_from(span) for span in missing]

    def _fetch_from(self, span: Span) -> Effect:
        copies = self.lanes.get(span.lane, (span.lane.split,))
        turn = self.tries.get(span, 0)
        self.tries[span] = turn + 1
        return Send(copies[turn % len(copies)], Fetch(span, self.keys))

    def _fetched(self, _: int, __: Peer, message: Fetched) -> list[Effect]:
        header = self.headers.get(self.committed + 1)
        if header is None or message.span not in header.spans or self.running is not None:
            return []
        if message.answer == messages.GONE:
            return [Happened("Displaced", self.me, "rows gone"), Exit("displaced", wipe=True)]
        if message.answer in (messages.NOT_HERE, messages.NOT_YET):
            return []
        self.rows[message.span] = message.payload if message.answer == messages.ROWS else ()
        return self._run(header) if len(self.rows) == len(header.spans) else []

    def _run(self, header: Header) -> list[Effect]:
        """All rows are here: lanes in fixed order, chunks in order, rows in chunk order [4]."""
        self.running = header.epoch
        self.skip.over()
        rows = tuple(self.rows[span] for span in header.spans)
        self.rows = {}
        self.tries = {}
        return [Write(("header", header.epoch), header), Run(header, rows)]

    def _result(self, _: int, __: None, message: BatchResult) -> list[Effect]:
        """Spark has a result: on the volume before the batch function returns."""
        if message.epoch != self.running:
            return []
        header = self.headers[message.epoch]
        effects: list[Effect] = []
        listed = self.pair in self.generations[header.generation].names()
        if listed and message.epoch > self.delivered:
            # Only a pair that the header's generation lists answers; others run muted.
            kept = Kept(message.size, message.digest)
            effects += self._keep(message.epoch, kept, message.payload)
        return [*effects, Finish(message.epoch)]

    def _keep(self, epoch: int, kept: Kept, value: object) -> list[Effect]:
        """Put a result into the outbox."""
        self.outbox[epoch] = kept
        return [Write(("outbox", epoch), value), Write(("kept", epoch), kept)]

    def _batch_committed(self, now: int, _: None, message: BatchCommitted) -> list[Effect]:
        """Spark has committed: acknowledge, offer, go on."""
        self.committed = message.epoch
        self.checkpoints.append(message.epoch)
        self.running = None
        if self.stopping:
            return [*self._report(now), *self._offer(), Exit("stopped")]
        return [*self._report(now), *self._offer(), *self._work(now)]

    # --- results ------------------------------------------------------------------------------

    def _offer(self) -> list[Effect]:
        """Offer the lowest results that are not delivered."""
        if not self.outbox:
            return []
        ready = sorted(e for e in self.outbox if self.delivered < e <= self.committed)
        offers = tuple((e, *self.outbox[e]) for e in ready[: self.settings.window])
        return [Send(merge, Offers(self.pair, offers)) for merge in self.merges if offers]

    def _want(self, _: int, sender: Peer, message: Want) -> list[Effect]:
        """A merge says what is delivered and what it wants."""
        effects: list[Effect] = []
        for epoch in message.epochs:
            if epoch in self.outbox and epoch <= self.committed:
                answer = Answer(self.pair, epoch, self.outbox[epoch].digest)
                effects.append(Ship(sender.volume, answer, (("outbox", epoch),)))
        return effects

    # --- the rest -----------------------------------------------------------------------------

    def _muster(self, now: int, sender: Peer, message: Muster) -> list[Effect]:
        """The header log is rebuilt (i): say what is here, refuse lower terms from now on."""
        if not self.contact.muster(sender, message.term, now):
            return []
        reply = Present(
            term=message.term,
            kind="replica",
            pair=self.pair,
            committed=self.committed,
            verified=self.verified,
            slot=-1,
            delivered=0,
            headers=tuple(self.headers[e] for e in sorted(self.headers)),
            generations=tuple(self.generations.values()),
        )
        return [Send(sender.volume, reply)]

    def _refused(self, _: int, __: Peer, ___: CopyRefused) -> list[Effect]:
        return []

    def _terminate(self, _: int, __: None, ___: Terminate) -> list[Effect]:
        """Stop after the batch that runs."""
        self.stopping = True
        return [] if self.running is not None else [Exit("stopped")]


def _stored(volume: Mapping[Key, object], kind: str) -> dict[int, object]:
    """What a volume holds of a kind, by epoch or number."""
    return {cast("int", key[1]): value for key, value in volume.items() if key[0] == kind}


_LANES_KNOWN = 32
"""Where to find lanes is remembered for at most about so many."""

_HANDLERS: dict[type, Callable[..., list[Effect]]] = {
    ReplicaView: ReplicaMachine._view,
    NotLead: told_who_leads,
    Splits: splits_discovered,
    Fetched: ReplicaMachine._fetched,
    BatchResult: ReplicaMachine._result,
    BatchCommitted: ReplicaMachine._batch_committed,
    SparkUp: ReplicaMachine._spark_up,
    Installed: ReplicaMachine._installed,
    CopyState: ReplicaMachine._copy_request,
    StateCopied: ReplicaMachine._state_copied,
    CopyRefused: ReplicaMachine._refused,
    Want: ReplicaMachine._want,
    Muster: ReplicaMachine._muster,
    Terminate: ReplicaMachine._terminate,
}
