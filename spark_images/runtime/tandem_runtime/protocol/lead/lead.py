"""The lead: receives reports, decides, writes the header log, sends views of published entries.

One batch of entries is under way at a time, and every decision is made from published entries:
none ever depends on an entry that another lead may not know. Records come before trim points
and headers, so a trim point counts every seat that stands in the log before it [5].
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from types import MappingProxyType

from tandem_core.contract.intent import Intent
from tandem_runtime.protocol.effects import Effect, Happened, Send
from tandem_runtime.protocol.heartbeat import Heartbeat
from tandem_runtime.protocol.lead import (
    epoch_rules,
    generation_rules,
    lane_rules,
    lapse_rules,
    loss_rules,
    seat_rules,
    slot_rules,
    trim_rules,
)
from tandem_runtime.protocol.lead.entry_events import describe_entry
from tandem_runtime.protocol.lead.peer_reports import (
    LastReport,
    PeerReports,
    has_news,
    is_foreign,
    is_newer,
)
from tandem_runtime.protocol.lead.views import merge_view, replica_view, split_view
from tandem_runtime.protocol.log import formats
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    Completed,
    Entry,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    LapseCalled,
    Lapsed,
    MergeChosen,
    PairsDealt,
    PairsRetired,
    PartitionOwned,
    RetirementCalled,
    Seated,
    SlotEnded,
    SlotOpened,
    SlotSealed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.header_log import HeaderLog
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.log.replicated_log import OwnedLog
from tandem_runtime.protocol.messages.peers import (
    CopyEntry,
    EntryCopied,
    FillLog,
    MergeReport,
    Outdated,
    ReplicaReport,
    SplitReport,
    Version,
)
from tandem_runtime.protocol.states import Bond
from tandem_runtime.protocol.types import Header, Peer, ProtocolSettings

_RECORDS: tuple[Callable[[LogState, PeerReports, int], Iterable[Entry]], ...] = (
    generation_rules.follow_intent,
    slot_rules.change_slots,
    slot_rules.deal_pairs,
    seat_rules.vacate_seats,
    loss_rules.report_lost_pairs,
    loss_rules.report_sinks_ahead,
    lane_rules.report_lost_partitions,
    seat_rules.seat_joiners,
    seat_rules.verify_seats,
    lane_rules.open_requested_lanes,
    lane_rules.close_or_resume_lanes,
    lane_rules.report_lost_lanes,
    lane_rules.begin_closing_lanes,
    lane_rules.change_buddies,
    lane_rules.assign_partitions,
    slot_rules.seal_slots,
    slot_rules.choose_merges,
    lapse_rules.answer_lapse_calls,
    lapse_rules.call_lapses,
    generation_rules.retire_pairs,
    formats.raise_format,
    epoch_rules.complete_pipeline,
)
"""All decisions that lead to records, the most urgent first."""

COPIES_AT_ONCE = 8
"""Entries sent again to a buddy in one go."""

_SPLIT_NEWS = (LaneOpened, BuddyChanged, LaneClosing, LaneResumed, LaneClosed, PartitionOwned)
_MERGE_NEWS = (MergeChosen, Verified, SlotOpened, SlotEnded, SlotSealed, PairsDealt)
_SEAT_NEWS = (Seated, Verified, Vacated, LapseCalled, Lapsed, RetirementCalled)


class Lead:
    """One term of leading. A new term is a new object: nothing of an older one is finished (d)."""

    def __init__(
        self,
        me: str,
        term: int,
        stored: HeaderLog,
        settings: ProtocolSettings,
        gone: Container[str],
        now: int,
        before: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Start to lead; `before` holds when volumes last reported before this term."""
        self.me = me
        self.term = term
        self.settings = settings
        self.stored = stored
        self.log_state = stored.fold()
        self.log = OwnedLog(stored.copy.through, stored.copy.through, term, now)
        self.reports = PeerReports(now, settings.silence, gone, before, me)
        self.heartbeat = Heartbeat(settings)
        self.pending: list[tuple[int, Entry]] = []
        """The batch that is not on every required member yet."""
        # The time of the last cut is unknown: rows that wait need not wait longer.
        self.cut_at = now - settings.interval

    @property
    def version(self) -> Version:
        """The version of views sent now."""
        return self.term, self.log.end - len(self.pending)

    def begin(self) -> list[Effect]:
        """Take the log over under the new term."""
        effects = self.stored.reset((self.term, 0), self.log.end, self.log_state.copy())
        effects.append(Happened("LeadChanged", self.me, f"term {self.term}", term=self.term))
        # The former lead may have recorded losses without reporting their events.
        effects.extend(
            Happened("DataLost", f"{subject}: {why}", term=self.term)
            for subject, why in self.log_state.lost.items()
        )
        return effects

    # --- reports and the intent ---------------------------------------------------------------

    def on_split_report(self, sender: Peer, report: SplitReport, now: int) -> list[Effect]:
        """Take in a split's report: its lanes, copies and notes."""
        if report.format < self.log_state.format:
            return [self._outdated(sender)]
        heard = self.reports.splits.get(sender.volume)
        if not is_newer(heard, sender, report):
            return []
        self.reports.splits[sender.volume] = LastReport(sender.incarnation, now, report)
        self.reports.on_lanes(heard, report)
        for lane in report.lanes:
            known = self.log_state.lanes.get(lane.lane)
            if known is not None and lane.live:
                # The owner of a past lane may hold a chunk that its buddy never had.
                notes = self.reports.notes.setdefault(lane.lane, {})
                notes.update(note for note in lane.notes if note[0] > known.reach)
        effects = self.advance(now) if has_news(heard, report) else []
        effects.append(self._to_split(sender.volume))
        return effects

    def on_replica_report(self, sender: Peer, report: ReplicaReport, now: int) -> list[Effect]:
        """Take in a replica's report, which registers it and acknowledges its commits."""
        if report.format < self.log_state.format:
            return [self._outdated(sender)]
        heard = self.reports.replicas.get(sender.volume)
        if not is_newer(heard, sender, report):
            return []
        self.reports.replicas[sender.volume] = LastReport(sender.incarnation, now, report)
        self.reports.foreign.discard(sender.volume)
        if is_foreign(self.log_state, report):
            self.reports.foreign.add(sender.volume)
        effects = self.advance(now) if has_news(heard, report) else []
        effects.append(self._to_replica(sender.volume))
        return effects

    def on_merge_report(self, sender: Peer, report: MergeReport, now: int) -> list[Effect]:
        """Take in a merge's report: how far it has delivered."""
        if report.format < self.log_state.format:
            return [self._outdated(sender)]
        heard = self.reports.merges.get(sender.volume)
        if not is_newer(heard, sender, report):
            return []
        self.reports.merges[sender.volume] = LastReport(sender.incarnation, now, report)
        delivered = self.reports.delivered
        delivered[report.slot] = max(delivered.get(report.slot, 0), report.delivered)
        effects = self.advance(now) if has_news(heard, report) else []
        effects.append(self._to_merge(sender.volume))
        return effects

    def _outdated(self, sender: Peer) -> Effect:
        """Refuse a member that joined after the format was raised and does not read it."""
        return Send(sender.volume, Outdated(self.log_state.format))

    def on_intent(self, intent: Intent, now: int) -> list[Effect]:
        """Take in the operator's document, unless a newer one is known."""
        known = self.reports.intent
        if known is not None and intent.version <= known.version:
            return []
        self.reports.intent = intent
        return self.advance(now)

    def copied(self, sender: Peer, message: EntryCopied, now: int) -> list[Effect]:
        """Take in that the buddy, or one being filled, has the log through an entry."""
        if not self.log.copied(sender.volume, message.fence, message.through, now):
            return []
        return self.advance(now)

    def tick(self, now: int) -> list[Effect]:
        """Advance, and send again entries that the buddy has not acknowledged."""
        self.reports.forget_gone()
        return [*self._copy_again(now), *self.advance(now)]

    # --- deciding -----------------------------------------------------------------------------

    def advance(self, now: int) -> list[Effect]:
        """Publish and decide in turns, until there is nothing left to decide."""
        effects: list[Effect] = []
        self.reports.listen(now)
        while True:
            effects.extend(self._publish())
            if self.pending or self.log_state.completed:
                return effects
            batch = self._decide(now)
            if not batch:
                return effects
            effects.extend(self._write(batch, now))

    def _decide(self, now: int) -> list[Entry]:
        """Return the next entries: records of one rule, or else a trim point and a header."""
        log_state, reports = self.log_state, self.reports
        for decide in _RECORDS:
            if batch := list(decide(log_state, reports, now)):
                return batch
        return [
            *trim_rules.trim_point(log_state, reports),
            *epoch_rules.cut_epoch(log_state, reports, self.settings, now - self.cut_at, self.term),
        ]

    def _write(self, batch: list[Entry], now: int) -> list[Effect]:
        """Write a batch to the own volume and send it to the follower.

        Raises:
            IllegalMove: an entry is not legal here; nothing is written.
        """
        effects: list[Effect] = []
        for entry in batch:
            self.log_state.check(entry)
        for entry in batch:
            number = self.log.append()
            effects.extend(self.stored.add(number, entry))
            self.pending.append((number, entry))
            if isinstance(entry, Header):
                # Keep the rhythm: a late cut does not delay all later ones, and an early one does
                # not either.
                interval = self.settings.interval
                self.cut_at = min(now, max(self.cut_at + interval, now - interval // 2))
        effects.extend(self._copy(number) for number, _ in self.pending if self.log.follower)
        return effects

    def _publish(self) -> list[Effect]:
        """Apply the batch once it is on every member now required (d), and send views."""
        if not self.pending or self.log.published < self.pending[-1][0]:
            return []
        batch, self.pending = [entry for _, entry in self.pending], []
        effects: list[Effect] = []
        displaced = self._apply(batch, effects)
        self.stored.published = self.log.end
        self.reports.forget_notes(self.log_state)
        effects.extend(self.stored.compact())
        effects.extend(self._tell(batch, displaced))
        return effects

    def _apply(self, batch: list[Entry], effects: list[Effect]) -> list[str]:
        """Apply published entries; return the volumes that lost their seat by them."""
        displaced: list[str] = []
        for entry in batch:
            if isinstance(entry, Seated | Vacated | Lapsed):
                seat = self.log_state.seats.get(entry.pair, [None, None])[entry.seat]
                if seat is not None and (
                    not isinstance(entry, Seated) or seat.volume != entry.volume
                ):
                    displaced.append(seat.volume)
            before = self.log_state.generation
            self.log_state.apply(entry)
            effects.extend(describe_entry(entry, before, self.term))
        return displaced

    # --- views --------------------------------------------------------------------------------

    def _tell(self, batch: list[Entry], displaced: list[str]) -> Iterator[Effect]:
        """Send views to members that published entries concern; others get theirs with a report."""
        headers = any(isinstance(entry, Header | Completed | PairsRetired) for entry in batch)
        if headers or any(isinstance(entry, _SEAT_NEWS) for entry in batch):
            seated = [s.volume for seats in self.log_state.seats.values() for s in seats if s]
            for volume in dict.fromkeys([*seated, *displaced]):
                if volume in self.reports.replicas:
                    yield self._to_replica(volume)
        if headers or any(isinstance(entry, _MERGE_NEWS) for entry in batch):
            for volume in self.log_state.merges.values():
                if volume in self.reports.merges:
                    yield self._to_merge(volume)
        if any(isinstance(entry, _SPLIT_NEWS) for entry in batch):
            for volume in self.reports.splits:
                yield self._to_split(volume)

    def _to_split(self, volume: str) -> Effect:
        report = self.reports.splits[volume].report
        return Send(volume, split_view(self.log_state, self.reports, self.version, volume, report))

    def _to_replica(self, volume: str) -> Effect:
        report = self.reports.replicas[volume].report
        view = replica_view(
            self.log_state, self.reports, self.version, volume, report, self.settings
        )
        return Send(volume, view)

    def _to_merge(self, volume: str) -> Effect:
        report = self.reports.merges[volume].report
        limit = self.settings.window
        view = merge_view(self.log_state, self.reports, self.version, volume, report, limit)
        return Send(volume, view)

    # --- the second copy ----------------------------------------------------------------------

    def fill(self, follower: str, now: int) -> list[Effect]:
        """Start to make another split the buddy (c), while there is none."""
        self.log.fill(follower, now)
        self.log.acked = -1
        return self._copy_again(now)

    def _copy(self, number: int) -> Effect:
        entry = self.stored.entries[number]
        message = CopyEntry(self.log.fence, number, entry, self.stored.published)
        return Send(self.log.follower or "", message)

    def _copy_again(self, now: int) -> list[Effect]:
        """Send entries that the follower has not acknowledged, or a heartbeat."""
        log = self.log
        if log.follower is None:
            return []
        if log.bond is Bond.FILLING and log.acked < max(self.stored.copy.base, 0):
            return [Send(log.follower, FillLog(log.fence, log.end, self.log_state.copy()))]
        missing = [self._copy(number) for number in log.next_to_copy(COPIES_AT_ONCE)]
        alive = Send(log.follower, CopyEntry(log.fence, 0, None, self.stored.published))
        return missing or ([alive] if self.heartbeat.is_due(alive, now) else [])
