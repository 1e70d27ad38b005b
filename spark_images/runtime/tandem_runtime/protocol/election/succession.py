"""Succession of the lead, by the rules of the header log.

(a) A buddy that takes over first refuses lower terms, then swaps lead:=self, buddy:=none, term+1.
    If the swap fails it returns to the register's term. Everything it holds is final.
(b) A lead whose buddy is dead or slow swaps buddy:=none and continues alone.
(c) A new buddy is filled first, then every new entry also waits for it, only then is it named.
(d) An entry on every member now required is published; none of an older term is finished.
(e) Only the named buddy may take over. After an unknown swap result the register is read first.
(f) Silence makes a member *try*; no clock decides.
(g) In term 0 any split may swap itself in.
(h) A member restarted on its volume keeps its place. A lead then swaps itself in again, so that
    a swap of its former process that is still on its way cannot land any more.
(i) When all volumes that the register names are gone for good, any split may swap itself in, and
    the log is rebuilt from what holders and merges know (`rebuild.py`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import cast

from tandem_core.contract.intent import Intent
from tandem_runtime.protocol.effects import Effect, Happened, Key, Send
from tandem_runtime.protocol.election.rebuild import Rebuild
from tandem_runtime.protocol.election.register import RegisterClient
from tandem_runtime.protocol.election.watched_volumes import (
    Found,
    in_log_state,
    in_peer_reports,
    in_rebuild,
)
from tandem_runtime.protocol.lead.lead import Lead
from tandem_runtime.protocol.log.entries import DataLost
from tandem_runtime.protocol.log.header_log import HeaderLog
from tandem_runtime.protocol.messages.peers import (
    CopyEntry,
    Deposed,
    EntryCopied,
    FillLog,
    MergeReport,
    NeedFill,
    NotLead,
    RegisterAnswer,
    ReplicaReport,
    SplitReport,
    TakeLead,
)
from tandem_runtime.protocol.messages.rebuild import Muster, Present
from tandem_runtime.protocol.split.buddy_choice import Neighbours
from tandem_runtime.protocol.states import ELECTED, LEADS, SPLIT, Bond, LogRole
from tandem_runtime.protocol.types import Peer, ProtocolSettings, RegisterState

_FOLLOWER = LogRole.FOLLOWER
_REBUILDING = LogRole.REBUILDING
_HANDING_OVER = LogRole.HANDING_OVER
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


class Succession:
    """A split's part in the header log: its role, its copy of the log, and the register."""

    def __init__(
        self,
        me: str,
        volume: Mapping[Key, object],
        settings: ProtocolSettings,
        gone: Container[str],
        neighbours: Neighbours,
        now: int,
    ) -> None:
        self.me = me
        self.settings = settings
        self.gone = gone
        self.neighbours = neighbours
        self.register = RegisterClient(settings.silence // 2)
        self.log = HeaderLog(volume, settings.entries_before_snapshot)
        self.role = LogRole.FOLLOWER
        SPLIT.check(None, self.role, me)
        self.lead: Lead | None = None
        """Decides and writes the log; there exactly in the roles of `LEADS`."""
        self.rebuild: Rebuild | None = None
        """Answers to the muster; there exactly while `REBUILDING`."""
        self.intent: Intent | None = None
        self.promised = 0
        """Lower terms than this are refused (a). Once elected, the term of this split."""
        self.heard_lead = now
        self.former: str | None = None
        """The lead at the time when this member last tried to lead."""
        self.leaving = False
        """Whether the process is to terminate. It then leads only a log that it has (g) (i)."""

    @property
    def term(self) -> int:
        """The highest term this member acts under."""
        return max(self.promised, self.log.copy.fence[0])

    @property
    def _leading(self) -> Lead:
        """The lead's decisions in the present term; only in the roles of `LEADS`."""
        return cast("Lead", self.lead)

    @property
    def _mustering(self) -> Rebuild:
        """The rebuild under way; only while `REBUILDING`."""
        return cast("Rebuild", self.rebuild)

    def _become(
        self, role: LogRole, *, lead: Lead | None = None, rebuild: Rebuild | None = None
    ) -> None:
        SPLIT.check(self.role, role, self.me)
        self.role, self.lead, self.rebuild = role, lead, rebuild

    def concerns(self) -> Found:
        """Yield the volumes that the header log depends on, also before its copy here counts."""
        yield from (self.register.known.lead, self.register.known.buddy)
        if self.role in LEADS:
            lead = self._leading
            yield lead.log.follower
            yield from in_log_state(lead.log_state)
            yield from in_peer_reports(lead.reports)
            return
        if self.role is _REBUILDING:
            yield from in_rebuild(self._mustering)
        yield from in_log_state(self.log.fold())

    # --- time and the register ----------------------------------------------------------------

    def tick(self, now: int) -> list[Effect]:
        """Do what is due as lead, in a rebuild, or as another split."""
        effects = self.register.tick(now)
        if self.role in LEADS:
            lead = self._leading
            effects += self._tend_buddy(lead, now)
            effects += lead.tick(now)
            effects += self._ask_register(lead, now)
        elif self.role is _REBUILDING:
            effects += self._try_rebuild(self._mustering, now)
        elif self.role is _FOLLOWER:
            effects += self._consider(now)
        return effects

    def _consider(self, now: int) -> list[Effect]:
        """Try to lead, if a rule allows it."""
        place = self.register.known
        if not self.register.consulted or not self._may_lead(place, now):
            return []
        return self._swap_in(place, now)

    def _swap_in(self, place: RegisterState, now: int) -> list[Effect]:
        """Refuse lower terms, then ask the register: lead:=self, buddy:=none, term+1 (a)."""
        self._become(LogRole.CANDIDATE)
        self.promised = place.term + 1
        self.former = place.lead
        effects: list[Effect] = []
        if place.buddy == self.me:
            # The log here is the one to continue, whatever was tried on older knowledge.
            effects = self.log.redeem()
        elif place.term > 0 and place.lead != self.me:
            effects = self.log.declare_void()
        return effects + self.register.propose(RegisterState(0, place.term + 1, self.me, None), now)

    def _may_lead(self, place: RegisterState, now: int) -> bool:
        if place.term == 0:
            return not self.leaving  # (g)
        if place.lead == self.me:
            return True  # (h)
        if place.buddy == self.me:
            return now - self.heard_lead >= self.settings.silence or place.lead in self.gone  # (f)
        return self._all_gone(place) and not self.leaving  # (i)

    def _all_gone(self, place: RegisterState) -> bool:
        return place.lead in self.gone and (place.buddy is None or place.buddy in self.gone)

    def answered(self, answer: RegisterAnswer, now: int) -> list[Effect]:
        """Take in the register's answer: start to lead, or step down."""
        outcome, effects = self.register.answered(answer, now)
        place = self.register.known
        if self.role in ELECTED:
            return effects + self._still_leading(place, now)
        if outcome is None:
            return effects
        if outcome:
            return effects + self._begin(place, now)
        self._become(_FOLLOWER)
        self.promised = place.term
        return effects

    def _still_leading(self, place: RegisterState, now: int) -> list[Effect]:
        """Step down if the register names another lead; else take in the recorded buddy."""
        term = self.promised
        if place.term > term or (place.term == term and place.lead != self.me):
            self._step_down(now)
            return []
        if self.role is _REBUILDING:
            return []
        lead = self._leading
        if not lead.log.recorded(place.version, place.buddy):
            return []
        event = "BuddyNamed" if place.buddy else "WentAlone"
        happened = Happened(event, self.me, place.buddy or "", term=lead.term)
        return [happened, *lead.advance(now)]

    def _step_down(self, now: int) -> None:
        """Stop leading. Whatever was under way here is discarded (d)."""
        self._become(_FOLLOWER)
        self.heard_lead = now

    def _begin(self, place: RegisterState, now: int) -> list[Effect]:
        """Lead, or first rebuild the log: the register names this member lead."""
        self.promised = place.term
        if self.log.void:
            self._become(_REBUILDING, rebuild=Rebuild(place.term, self.settings, now))
            return []
        return self._lead(place, now)

    def _lead(self, place: RegisterState, now: int) -> list[Effect]:
        # The silence of the former lead counts from before, so its lane is closed sooner.
        before = {self.former: self.heard_lead} if self.former not in (None, self.me) else {}
        lead = Lead(self.me, place.term, self.log, self.settings, self.gone, now, before)
        self._become(LogRole.LEADING, lead=lead)
        if self.leaving:
            self._become(_HANDING_OVER, lead=lead)
        lead.log.view = place.version
        effects = lead.begin()
        if self.intent is not None:
            effects += lead.on_intent(self.intent, now)
        return effects + lead.advance(now)

    def _try_rebuild(self, rebuild: Rebuild, now: int) -> list[Effect]:
        """Rebuild the log and lead, once enough members have answered the muster (i)."""
        if self.intent is None or not rebuild.complete(self.intent, now):
            return []
        log_state, lost = rebuild.rebuilt(self.intent, self.gone)
        for subject, why in lost:
            log_state.apply(DataLost(subject, why))
        effects = self.log.reset((rebuild.term, 0), 0, log_state)
        epoch, term = log_state.epoch, rebuild.term
        effects += [Happened("Rebuilt", self.me, f"at epoch {epoch}", epoch=epoch, term=term)]
        return effects + self._lead(self.register.known, now)

    # --- reports ------------------------------------------------------------------------------

    def on_report(
        self, sender: Peer, report: SplitReport | ReplicaReport | MergeReport, now: int
    ) -> list[Effect]:
        """Take in a report as lead; muster its sender in a rebuild; else name the lead."""
        if self.role in LEADS:
            lead = self._leading
            if isinstance(report, SplitReport):
                return lead.on_split_report(sender, report, now)
            if isinstance(report, ReplicaReport):
                return lead.on_replica_report(sender, report, now)
            return lead.on_merge_report(sender, report, now)
        if self.role is not _REBUILDING:
            return [Send(sender.volume, NotLead(self.register.known))]
        rebuild = self._mustering
        if not isinstance(report, SplitReport):
            return [Send(sender.volume, Muster(rebuild.term))]
        held = [*report.copies, *((lane.lane, lane.through) for lane in report.lanes)]
        for lane, through in held:
            rebuild.copies.setdefault(lane, {})[sender.volume] = through
        return []

    def on_present(self, sender: Peer, message: Present) -> list[Effect]:
        """Take in a member's answer to the muster (i)."""
        if self.role is _REBUILDING:
            self._mustering.answered(sender.volume, message)
        return []

    # --- the lead's buddy ---------------------------------------------------------------------

    def _tend_buddy(self, lead: Lead, now: int) -> list[Effect]:
        """Drop a silent follower (b), look for a new one (c), hand over when leaving."""
        log = lead.log
        if log.follower is not None and (
            log.misses_follower(self.settings, now)
            or log.follower in self.gone
            or (log.follower in self.neighbours.leaving and log.bond is Bond.PAIRED)
        ):
            log.drop_follower()
        if log.bond is Bond.ALONE and not lead.pending:
            candidate = self.neighbours.next_for_log()
            return lead.fill(candidate, now) if candidate else []
        if self.role is _HANDING_OVER and log.bond is Bond.PAIRED and log.follower:
            return [Send(log.follower, TakeLead(lead.term))]
        return []

    def _ask_register(self, lead: Lead, now: int) -> list[Effect]:
        """Propose the buddy that the log asks for to the register."""
        if lead.log.asking is None or self.register.busy:
            return []
        _, buddy = lead.log.asking
        return self.register.propose(RegisterState(0, lead.term, self.me, buddy), now)

    def copied(self, sender: Peer, message: EntryCopied, now: int) -> list[Effect]:
        """Take in a follower's acknowledgement."""
        if self.role not in LEADS:
            return []
        lead = self._leading
        return lead.copied(sender, message, now) + self._ask_register(lead, now)

    def need_fill(self, sender: Peer, message: NeedFill) -> list[Effect]:
        """Drop a follower that has no copy to append to."""
        if self.role not in LEADS:
            return []
        log = self._leading.log
        named = (sender.volume, message.fence) == (log.follower, log.fence)
        if named and log.bond is not Bond.FILLING:
            log.drop_follower()
        return []

    def deposed(self, message: Deposed, now: int) -> list[Effect]:
        """Read the register, because a member knows a higher term."""
        if self.role in LEADS and message.term > self._leading.term:
            return self.register.read(now)
        return []

    # --- as a buddy ---------------------------------------------------------------------------

    def filled(self, sender: Peer, message: FillLog, now: int) -> list[Effect]:
        """Replace the log here by a lead's snapshot, and acknowledge."""
        if self._refuses(sender, message.fence):
            return self._refuse(sender, message.fence, now)
        self.heard_lead = now
        copy = self.log.copy
        effects: list[Effect] = []
        if copy.replaced_by(message.fence) or (
            message.fence == copy.fence and message.through > copy.through
        ):
            effects += self.log.reset(message.fence, message.through, message.log_state)
        reply = EntryCopied(message.fence, self.log.copy.through)
        if self.log.copy.fence == message.fence:
            effects.append(Send(sender.volume, reply))
        return effects

    def entry(self, sender: Peer, message: CopyEntry, now: int) -> list[Effect]:
        """Store an entry of the lead, or take in its heartbeat, and acknowledge."""
        if self._refuses(sender, message.fence):
            return self._refuse(sender, message.fence, now)
        if not self.log.copy.admits(message.fence):
            return [Send(sender.volume, NeedFill(message.fence))]
        self.heard_lead = now
        effects: list[Effect] = []
        if message.entry is not None:
            effects += self.log.add(message.number, message.entry)
        self.log.published = max(self.log.published, message.published)
        effects += self.log.compact()
        reply = EntryCopied(message.fence, self.log.copy.through)
        return [*effects, Send(sender.volume, reply)]

    def _refuses(self, sender: Peer, fence: tuple[int, int]) -> bool:
        """Whether to refuse a lower term, or a lead whose volume is gone: it may still run."""
        lower = fence[0] < self.term
        return lower or sender.volume in self.gone or self.role in ELECTED

    def _refuse(self, sender: Peer, fence: tuple[int, int], now: int) -> list[Effect]:
        """Refuse a sender of a lower term; as lead, read the register if its term is higher."""
        if self.role in ELECTED and fence[0] > self.promised:
            return self.register.read(now)
        refused = Happened("StaleRefused", sender.volume, f"term {fence[0]}")
        return [refused, Send(sender.volume, Deposed(self.term))]

    def take_lead(self, sender: Peer, message: TakeLead, now: int) -> list[Effect]:
        """Take over from a lead that leaves and asks its buddy to."""
        place = self.register.known
        asked_rightly = message.term == self.log.copy.fence[0] and sender.volume == place.lead
        if self.role is not _FOLLOWER or place.buddy != self.me or not asked_rightly:
            return []
        return [Happened("HandedOver", self.me, sender.volume), *self._swap_in(place, now)]

    def leave(self) -> None:
        """Hand over as lead, and seek no log to lead from now on: the process is to terminate."""
        self.leaving = True
        if self.role is LogRole.LEADING:
            self._become(_HANDING_OVER, lead=self.lead)
