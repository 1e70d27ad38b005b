"""Runs a replica: joins its pair, runs epochs as micro-batches, keeps results until delivered.

An epoch passes these steps in order: its rows are fetched, its header is written to the volume,
Spark runs it, its result is written to the outbox, Spark commits it, it is acknowledged and
offered. A process that dies in between restarts at its last commit and repeats the steps [4].
"""

from __future__ import annotations

from collections.abc import Callable

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import (
    Effect,
    Erase,
    Exit,
    Finish,
    Happened,
    Install,
    Run,
    Send,
    Write,
)
from tandem_runtime.protocol.election.lead_discovery import (
    LeadDiscovery,
    splits_discovered,
    told_who_leads,
)
from tandem_runtime.protocol.heartbeat import Heartbeat
from tandem_runtime.protocol.log.formats import stop_if_outdated
from tandem_runtime.protocol.messages.peers import (
    BatchCommitted,
    BatchResult,
    CopyRefused,
    CopyState,
    CopyUnderWay,
    FetchAnswer,
    Fetched,
    Installed,
    NotLead,
    Offers,
    Outdated,
    ReplicaView,
    SparkUp,
    SplitsDiscovered,
    Standing,
    StateCopied,
    Terminate,
    Want,
)
from tandem_runtime.protocol.messages.rebuild import Muster
from tandem_runtime.protocol.replica.fetching import Fetching
from tandem_runtime.protocol.replica.joining import Joining, Skip, shipped_state
from tandem_runtime.protocol.replica.outbox import Kept
from tandem_runtime.protocol.replica.self_report import present_of, report_of
from tandem_runtime.protocol.replica.stored_state import HeldState, StoredReplica
from tandem_runtime.protocol.states import ASKS, MAY_WORK, REPLICA, RESULT_DUE, ReplicaLife
from tandem_runtime.protocol.types import Header, Peer, ProtocolSettings


class ReplicaMachine(HeldState):
    """State machine of one replica process, on one volume."""

    def __init__(
        self,
        volume_id: str,
        incarnation: int,
        pair: str,
        share: Share,
        stored: StoredReplica,
        settings: ProtocolSettings,
        now: int,
        *,
        booting: bool = False,
    ) -> None:
        """Starts on a volume; while `booting`, no epoch runs until `SparkUp`."""
        super().__init__(pair, share, stored)
        self.me = volume_id
        self.incarnation = incarnation
        self.settings = settings
        self.lead_discovery = LeadDiscovery(settings.silence, now)
        self.heartbeat = Heartbeat(settings)
        self.spark_up = not booting
        self.resumed = ("verified",) in stored.keys
        """Whether it continues with the state on its volume and has yet to report that."""
        with_state = ReplicaLife.BOOTING if booting else ReplicaLife.IDLE
        self.life = with_state if self.resumed else ReplicaLife.WAITING
        REPLICA.check(None, self.life, volume_id)
        self.merges: tuple[str, ...] = ()
        self.delivered = self.trim = 0
        self.calls = 0
        """Last call received; reporting it lets the lead lapse the twin or retire the parents."""
        self.joining, self.skip = self._new_joining(now), Skip()
        self.fetching = Fetching(now)

    def handle(self, now: int, sender: Peer | None, message: object) -> list[Effect]:
        """Handles a message; refuses those of earlier incarnations."""
        if sender is not None and self.lead_discovery.stale(sender):
            return [Happened("StaleRefused", sender.volume, type(message).__name__)]
        return _HANDLERS[type(message)](self, now, sender, message)

    def tick(self, now: int) -> list[Effect]:
        """Sends a report, repeats unanswered requests, and offers undelivered results."""
        effects: list[Effect] = []
        if self.resumed:
            self.resumed = False
            where = f"at epoch {self.committed}"
            effects.append(Happened("Resumed", self.me, where, epoch=self.committed))
        effects += self._report(now)
        if self.life in ASKS and now - self.joining.asked_at >= self.settings.retry:
            effects += self.joining.ask(now)
        if self.verified:
            effects += self._work(now)
            effects += self._offer()
        return effects

    @property
    def verified(self) -> bool:
        """Whether its volume has a complete state."""
        return self.life.has_state

    @property
    def joins(self) -> bool:
        """Whether it copies state: its first one, or that of a twin far ahead."""
        return self.life.copies

    def _become(self, life: ReplicaLife) -> None:
        REPLICA.check(self.life, life, self.me)
        self.life = life

    def _on(self, cause: str) -> None:
        self.life = REPLICA.after(cause, self.life, self.me) or self.life

    def _exit(self, reason: str, *, wipe: bool = False) -> Effect:
        self._become(ReplicaLife.ENDED)
        return Exit(reason, wipe=wipe)

    def _displaced(self, why: str) -> list[Effect]:
        """Exits, to restart on an empty volume."""
        return [Happened("Displaced", self.me, why), self._exit("displaced", wipe=True)]

    def _report(self, now: int) -> list[Effect]:
        lead = self.lead_discovery.target(now)
        if not lead:
            return []
        building = self.joining.building
        report = report_of(self, self.pair, self.calls, verified=self.verified, building=building)
        if not self.heartbeat.is_due((lead, report), now):
            return []
        return [Send(lead, report.replace(sequence=self.lead_discovery.next_sequence()))]

    # --- the lead's view ----------------------------------------------------------------------

    def _view(self, now: int, sender: Peer, view: ReplicaView) -> list[Effect]:
        if not self.lead_discovery.takes(sender, view, now):
            return []
        if view.standing in (Standing.COMPLETED, Standing.RETIRED):
            return [self._exit(view.standing)]
        if view.standing is Standing.DISPLACED:
            return self._displaced(self.pair)
        self.delivered = max(self.delivered, view.delivered)
        self.trim = max(self.trim, view.trim)
        self.merges, self.pins = view.merges, view.pins
        verified = self.verified
        if verified:
            self.calls = view.calls
        self.fetching.lanes.update(view.lanes)
        effects = self._take_headers(view) if verified else []
        effects += self._forget(self.delivered, self.trim)
        self.fetching.forget_lanes(self.headers.values())
        if view.standing is not Standing.SEATED:
            return effects
        if not verified:
            return effects + self._told_source(view, now)
        # A view from before it was verified names parents and the epoch to copy at instead.
        self.skip.twin = view.source if view.source_epoch is None else ()
        return effects + self._work(now)

    def _take_headers(self, view: ReplicaView) -> list[Effect]:
        """Stores the next headers of a view, and the generations they name."""
        effects = self._take_generations(view.generations)
        for header in view.headers:
            self._take_header(header)
        return effects

    def _take_header(self, header: Header) -> None:
        """Stores a header that continues those known here; it replaces later ones."""
        if not self.headers.lacks(header, self.committed):
            return
        is_next = header.epoch == self.committed + 1
        if is_next and self.life.has_batch:
            if self.life in RESULT_DUE:
                self._become(ReplicaLife.SUPERSEDED)
            return
        self.headers.take(header)
        if is_next and self.life is ReplicaLife.FETCHING:
            # The new header may name other chunks than those that have arrived.
            self._become(ReplicaLife.IDLE)
            self.fetching.clear()

    # --- joining ------------------------------------------------------------------------------

    def _new_joining(self, now: int) -> Joining:
        return Joining(self.pair, self.share, self.definition, self.settings.silence, now)

    def _told_source(self, view: ReplicaView, now: int) -> list[Effect]:
        """Takes the source of state that the lead names."""
        if self.life is ReplicaLife.INSTALLING:
            return []
        effects = self.joining.told(view.source, view.source_epoch, now)
        if effects and isinstance(effects[0], Install):
            self._become(ReplicaLife.INSTALLING)
        elif effects and self.life is ReplicaLife.WAITING:
            self._become(ReplicaLife.COPYING)
        return effects

    def _state_copied(self, _: int, sender: Peer, message: StateCopied) -> list[Effect]:
        """Stores copied state, and installs it once its last part has arrived."""
        skips = self.life is ReplicaLife.SKIPPING
        if self.life not in ASKS or (skips and message.epoch <= self.committed):
            return []
        install = self.joining.came(sender.volume, message)
        if not install:
            return []
        self._become(ReplicaLife.REPLACING if skips else ReplicaLife.INSTALLING)
        effects = self._keep_outbox(message) if self.joining.from_twin else []
        return [*effects, *self._keep_header(message), *install]

    def _copy_refused(self, now: int, sender: Peer, message: CopyRefused) -> list[Effect]:
        """Asks another holder."""
        if self.life not in ASKS:
            return []
        effects: list[Effect] = []
        if message.reason != self.joining.refusal:
            refused = Happened("CopyRefused", sender.volume, message.reason, epoch=message.epoch)
            effects.append(refused)
        return [*effects, *self.joining.refused(sender.volume, message, now)]

    def _copy_under_way(self, now: int, sender: Peer, message: CopyUnderWay) -> list[Effect]:
        """Keeps waiting for that holder."""
        self.joining.under_way(sender.volume, message, now)
        return []

    def _installed(self, now: int, _: None, message: Installed) -> list[Effect]:
        """Makes the replica a full member that is still late: its copied state is verified.

        The copy has replaced any state that was here before.
        """
        effects: list[Effect] = []
        copied = sorted({message.epoch, *self.joining.older()})
        if self.life is ReplicaLife.REPLACING:
            came = f"from epoch {self.committed} to {message.epoch}"
            effects.append(Happened("SkippedAhead", self.me, came, epoch=message.epoch))
        self._on("Installed" if self.spark_up else "Installed before SparkUp")
        self.committed, self.checkpoints = message.epoch, copied
        self.fetching.clear()
        self.skip.over()
        self.joining = self._new_joining(now)
        return [*effects, Write(("verified",), True), *self._report(now), *self._work(now)]

    def _spark_up(self, now: int, _: None, __: SparkUp) -> list[Effect]:
        self.spark_up = True
        if self.life is ReplicaLife.BOOTING:
            self._on("SparkUp")
        return self._work(now)

    def _copy_request(self, _: int, sender: Peer, message: CopyState) -> list[Effect]:
        """Answers a joiner's request for state."""
        return [shipped_state(self, sender.volume, message)]

    # --- epochs -------------------------------------------------------------------------------

    def _work(self, now: int) -> list[Effect]:
        """Starts the next epoch, or copies the twin's state if that is far ahead."""
        if self.life not in MAY_WORK or self.lead_discovery.mustered:
            # A rebuilt log may continue with another header than the next one known here.
            return []
        if self.life is ReplicaLife.SKIPPING:
            if self.skip.waits(now, self.settings):
                return []
            self._become(ReplicaLife.IDLE)
        elif self.skip.begins(now, self.delivered - self.committed, self.settings):
            self._become(ReplicaLife.SKIPPING)
            return self.joining.told(self.skip.twin, None, now)
        return self._next_epoch(now)

    def _next_epoch(self, now: int) -> list[Effect]:
        """Runs the next epoch, or requests those of its rows that have not arrived."""
        header = self.headers.next(self.committed)
        if header is None or header.epoch > self.delivered + self.settings.max_undelivered:
            return []
        missing = self.fetching.missing(header)
        if not missing:
            return self._run(header)
        if self.life is ReplicaLife.IDLE:
            self._become(ReplicaLife.FETCHING)
        elif now - self.fetching.asked_at < self.settings.retry:
            return []
        return self.fetching.ask(missing, self.share, now)

    def _fetched(self, now: int, _: Peer, message: Fetched) -> list[Effect]:
        header = self.headers.get(self.committed + 1)
        fetches = self.life is ReplicaLife.FETCHING
        if not fetches or header is None or message.span not in header.spans:
            return []
        if message.answer is FetchAnswer.GONE:
            return self._displaced("rows gone")
        self.fetching.came(message)
        return [] if self.fetching.missing(header) else self._work(now)

    def _run(self, header: Header) -> list[Effect]:
        """Runs an epoch whose rows have all arrived; the shell orders them by position [4]."""
        self._become(ReplicaLife.RUNNING)
        self.skip.over()
        rows = self.fetching.hand_over(header)
        return [Write(("header", header.epoch), header), Run(header, rows)]

    def _result(self, _: int, __: None, message: BatchResult) -> list[Effect]:
        """Writes a result to the outbox before the batch function returns."""
        if not self.life.has_batch or message.epoch != self.committed + 1:
            return []
        if self.life is ReplicaLife.SUPERSEDED:
            return [Erase(("header", message.epoch)), self._exit("superseded")]
        self._on("BatchResult")
        header = self.headers[message.epoch]
        effects: list[Effect] = []
        listed = self.pair in self.generations[header.generation].names()
        if listed and message.epoch > self.delivered:
            # Only pairs in the header's generation answer; others run muted.
            kept = Kept(size=message.size, digest=message.digest, header=header.digest)
            effects += self.outbox.keep(message.epoch, kept, message.payload)
        return [*effects, Finish(message.epoch)]

    def _batch_committed(self, now: int, _: None, message: BatchCommitted) -> list[Effect]:
        """Acknowledges and offers an epoch that Spark has committed, and starts the next."""
        stops = self.life is ReplicaLife.FINISHING
        if not stops:
            self._on("BatchCommitted")
        self.committed = message.epoch
        self.checkpoints.append(message.epoch)
        if stops:
            return [*self._report(now), *self._offer(), self._exit("stopped")]
        # Delivery may be far ahead thanks to its twin, and no view may arrive for long.
        forgotten = self._forget(self.delivered, self.trim)
        return [*self._report(now), *self._offer(), *forgotten, *self._work(now)]

    # --- results ------------------------------------------------------------------------------

    def _offer(self) -> list[Effect]:
        """Offers the lowest undelivered results to the active merges."""
        if not self.outbox:
            return []
        offers = self.outbox.offers(self.delivered, self.committed, self.settings.window)
        return [Send(merge, Offers(self.pair, offers)) for merge in self.merges if offers]

    def _want(self, _: int, sender: Peer, message: Want) -> list[Effect]:
        """Ships the results that a merge requests."""
        return self.outbox.answers(sender.volume, self.pair, message.epochs, self.committed)

    # --- the rest -----------------------------------------------------------------------------

    def _muster(self, now: int, sender: Peer, message: Muster) -> list[Effect]:
        """Answers a rebuild of the header log (i); refuses lower terms from now on."""
        if not self.lead_discovery.muster(sender, message.term, now):
            return []
        term, verified = message.term, self.verified
        reply = present_of(self, self.pair, term, self.lead_discovery.format, verified=verified)
        return [Send(sender.volume, reply)]

    def _terminate(self, _: int, __: None, ___: Terminate) -> list[Effect]:
        """Exits, after the running batch if there is one."""
        if not self.life.has_batch:
            return [self._exit("stopped")]
        if self.life in (ReplicaLife.RUNNING, ReplicaLife.COMMITTING):
            self._on("Terminate")
        return []


_HANDLERS: dict[type, Callable[..., list[Effect]]] = {
    ReplicaView: ReplicaMachine._view,
    Outdated: stop_if_outdated,
    NotLead: told_who_leads,
    SplitsDiscovered: splits_discovered,
    Fetched: ReplicaMachine._fetched,
    BatchResult: ReplicaMachine._result,
    BatchCommitted: ReplicaMachine._batch_committed,
    SparkUp: ReplicaMachine._spark_up,
    Installed: ReplicaMachine._installed,
    CopyState: ReplicaMachine._copy_request,
    StateCopied: ReplicaMachine._state_copied,
    CopyRefused: ReplicaMachine._copy_refused,
    CopyUnderWay: ReplicaMachine._copy_under_way,
    Want: ReplicaMachine._want,
    Muster: ReplicaMachine._muster,
    Terminate: ReplicaMachine._terminate,
}
