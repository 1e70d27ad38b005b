"""The lead: one batch under way at a time, decided from what is published, told at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from tests.protocol.builders import (
    A1,
    B1,
    G1,
    S,
    Volume,
    carry_out,
    header,
    intent,
    joiner_report,
    lane_report,
    merge_report,
    note,
    of,
    only,
    peer,
    replica_report,
    running_state,
    sent,
    split_report,
    state_of,
    told,
)

from tandem_core.contract.intent import Pair
from tandem_runtime.protocol.effects import Effect, Happened, Send, Write
from tandem_runtime.protocol.lead.lead import COPIES_AT_ONCE, Lead
from tandem_runtime.protocol.lead.trim_rules import trim_point
from tandem_runtime.protocol.log.entries import (
    Completed,
    Entry,
    GenerationKnown,
    LaneOpened,
    LapseCalled,
    MergeChosen,
    PairsRetired,
    PartitionOwned,
    RetirementCalled,
    Seated,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.header_log import HeaderLog, StoredEntry
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import (
    CopyEntry,
    EntryCopied,
    FillLog,
    MergeView,
    ReplicaReport,
    ReplicaView,
    SplitView,
    Standing,
)
from tandem_runtime.protocol.states import Bond, PartitionState
from tandem_runtime.protocol.types import Mark, ProtocolSettings, Span


class Leading:
    """A lead with its volume."""

    def __init__(
        self,
        log_state: LogState | None = None,
        settings: ProtocolSettings = S,
        *,
        paired: bool = False,
    ) -> None:
        self.volume: Volume = {}
        stored = HeaderLog(self.volume, settings.entries_before_snapshot)
        carry_out(self.volume, stored.reset((1, 0), 0, log_state or state_of()))
        self.lead = Lead("a", 2, stored, settings, set(), now=0)
        self.lead.cut_at = 0
        self.do(self.lead.begin())
        if paired:
            self.pair()

    def do(self, effects: list[Effect]) -> list[Effect]:
        carry_out(self.volume, effects)
        return effects

    def pair(self) -> None:
        log = self.lead.log
        self.do(self.lead.fill("b", 0))
        self.ack()
        assert log.asking is not None
        assert log.recorded(log.asking[0], "b")
        assert log.bond is Bond.PAIRED

    def ack(self, through: int | None = None, now: int = 0) -> list[Effect]:
        log = self.lead.log
        end = log.end if through is None else through
        return self.do(self.lead.copied(peer("b"), EntryCopied(log.fence, end), now))

    def written(self, effects: list[Effect]) -> list[Entry]:
        """The entries that effects put on the volume."""
        writes = [e for e in of(Write, effects) if e.key[0] == "entry"]
        return [cast("StoredEntry", write.value).entry for write in writes]


def running(*more: Entry, settings: ProtocolSettings = S, paired: bool = False) -> Leading:
    leading = Leading(running_state(*more), settings, paired=paired)
    leading.do(leading.lead.on_intent(intent(), 0))
    return leading


def acknowledged(lead: Lead, epoch: int, sequence: int) -> ReplicaReport:
    """The report of a replica that has committed the lead's own header of an epoch."""
    digest = lead.log_state.digest_of(epoch)
    assert digest is not None
    return replica_report(epoch, sequence=sequence).replace(committed_digest=digest)


@contextmanager
def busy(lead: Lead) -> Iterator[None]:
    """A batch that will never be published: what is heard meanwhile decides nothing yet."""
    lead.pending.append((10**9, Completed()))
    yield
    lead.pending.clear()


# --- beginning ------------------------------------------------------------------------------------


def test_new_term_starts_from_all_held_entries() -> None:  # (a)
    volume: Volume = {}
    stored = HeaderLog(volume, 24)
    carry_out(volume, stored.reset((1, 0), 3, state_of()))
    carry_out(volume, stored.add(4, LaneOpened(A1, "b")))
    lead = Lead("b", 2, stored, S, set(), now=0)
    assert A1 in lead.log_state.lanes
    assert (lead.log.base, lead.log.end, lead.version) == (4, 4, (2, 4))
    effects = lead.begin()
    carry_out(volume, effects)
    again = HeaderLog(volume, 24)
    assert (again.copy.fence, again.copy.base, again.entries) == ((2, 0), 4, {})
    assert A1 in again.fold().lanes
    assert [e.event for e in of(Happened, effects)] == ["LeadChanged"]


def test_stored_snapshot_is_independent_of_live_log_state() -> None:  # [6]
    leading = Leading()
    before = told(leading.lead.stored.snapshot)
    leading.do(leading.lead.on_intent(intent(), 0))
    assert leading.lead.log_state.generations
    assert told(HeaderLog(leading.volume, 24).snapshot) == before


# --- publishing -----------------------------------------------------------------------------------


def test_decision_without_buddy_applies_at_once() -> None:  # (b)
    leading = Leading()
    effects = leading.do(leading.lead.on_intent(intent(), 0))
    assert leading.written(effects) == [GenerationKnown(G1, 1)]
    assert leading.lead.log_state.generations == {1: G1}
    assert leading.lead.pending == []
    assert leading.lead.version == (2, 1)


def test_decision_with_buddy_applies_once_buddy_has_it() -> None:  # (d)
    leading = Leading(paired=True)
    effects = leading.do(leading.lead.on_intent(intent(), 0))
    (copy,) = sent(CopyEntry, effects)
    assert copy == ("b", CopyEntry((2, 1), 1, GenerationKnown(G1, 1), 0))
    assert (leading.lead.log_state.generations, leading.lead.version) == ({}, (2, 0))
    assert len(leading.lead.pending) == 1
    leading.ack()
    assert (leading.lead.log_state.generations, leading.lead.version) == ({1: G1}, (2, 1))
    assert leading.lead.stored.published == 1


def test_entry_is_written_before_it_is_sent() -> None:  # (d)
    leading = Leading(paired=True)
    effects = leading.lead.on_intent(intent(), 0)
    assert [type(e) for e in effects] == [Write, Send]


def test_acknowledgements_of_others_publish_nothing() -> None:  # (d) stale-buddy
    leading = Leading(paired=True)
    leading.do(leading.lead.on_intent(intent(), 0))
    fence = leading.lead.log.fence
    assert leading.lead.copied(peer("c"), EntryCopied(fence, 1), 0) == []
    assert leading.lead.copied(peer("b"), EntryCopied((1, 1), 1), 0) == []
    assert leading.lead.log_state.generations == {}


def test_acknowledgement_without_news_triggers_no_decision() -> None:  # [11]
    leading = running()
    lead = leading.lead
    with busy(lead):
        chunk = note(1, p=Mark(1, 1))
        lead.on_split_report(peer("a"), split_report(lane_report(A1, {1: chunk})), 0)
    assert lead.copied(peer("c"), EntryCopied((2, 1), 1), S.interval) == []
    assert lead.log_state.epoch == 0


def test_batches_are_published_whole_and_one_at_a_time() -> None:  # (d)
    leading = running(LaneOpened(B1, "a"), paired=True)
    report = split_report(lane_report(A1), opening=None)
    leading.lead.reports.splits.clear()
    leading.do(leading.lead.on_split_report(peer("a"), report, 0))
    pending = len(leading.lead.pending)
    leading.do(leading.lead.on_merge_report(peer("m"), merge_report(), 0))
    assert len(leading.lead.pending) == max(pending, 1)


def test_batch_of_two_entries_waits_for_last() -> None:  # (d)
    leading = running(header(1), paired=True)
    lead = leading.lead
    with busy(lead):
        lead.on_merge_report(peer("m"), merge_report(1), 0)
        for volume in ("x0", "x1"):
            lead.on_replica_report(peer(volume), replica_report(1), 0)
        chunk = note(1, p=Mark(1, 1))
        lead.on_split_report(peer("a"), split_report(lane_report(A1, {1: chunk})), 0)
    leading.do(lead.tick(S.interval))
    assert [entry for _, entry in lead.pending] == [MergeChosen(0, "m")]
    leading.ack(now=S.interval)
    trim, cut = lead.pending
    assert trim[1] == Trimmed(1)
    leading.ack(trim[0])
    assert (lead.log_state.trim, lead.log_state.epoch) == (0, 1)
    leading.ack(cut[0])
    assert (lead.log_state.trim, lead.log_state.epoch) == (1, 2)


def test_trim_point_and_header_share_batch() -> None:  # [5]
    leading = running(header(1))
    lead = leading.lead
    lead.reports.delivered = {0: 1}
    chunk = note(1, p=Mark(1, 1, PartitionState.RELEASED))
    leading.do(lead.on_split_report(peer("a"), split_report(lane_report(A1, {1: chunk})), 0))
    assert lead.log_state.epoch == 2
    leading.do(lead.on_replica_report(peer("x0"), replica_report(1), 0))
    effects = leading.do(lead.on_replica_report(peer("x1"), replica_report(1), 0))
    assert leading.written(effects) == [Trimmed(1)]


def test_seat_records_precede_trim_points() -> None:  # [5] trim-without-joiner
    leading = running(header(1), Vacated("x", 1, "x1", ""))
    lead = leading.lead
    with busy(lead):
        lead.reports.delivered = {0: 1}
        lead.on_replica_report(peer("x0"), replica_report(1), 0)
        lead.on_replica_report(peer("n"), joiner_report(), 0)
    effects = leading.do(lead.tick(0))
    assert leading.written(effects) == [Seated("x", 1, "n")]
    assert lead.log_state.trim == 0


def test_nothing_is_decided_after_completion() -> None:
    leading = running(Completed())
    effects = leading.do(
        leading.lead.on_split_report(peer("b"), split_report(opening=(B1, "a")), 0)
    )
    assert leading.written(effects) == []


def test_interval_counts_from_last_header() -> None:
    leading = running()
    lead = leading.lead
    first = split_report(lane_report(A1, {1: note(1, p=Mark(1, 1))}))
    leading.do(lead.on_split_report(peer("a"), first, 500))
    assert (lead.log_state.epoch, lead.cut_at) == (1, 500)
    second = split_report(lane_report(A1, {2: note(1, p=Mark(2, 1))}), sequence=2)
    leading.do(lead.on_split_report(peer("a"), second, 600))
    assert lead.log_state.epoch == 1
    leading.do(lead.tick(999))
    assert lead.log_state.epoch == 1
    leading.do(lead.tick(1000))
    assert (lead.log_state.epoch, lead.cut_at) == (2, 1000)


def test_new_lead_does_not_wait_full_interval_again() -> None:
    stored = HeaderLog({}, 24)
    assert Lead("a", 2, stored, S, set(), now=700).cut_at == 700 - S.interval


def test_early_headers_do_not_delay_next_one() -> None:
    leading = running()
    lead = leading.lead
    for number in range(1, 5):
        chunk = note(1, p=Mark(number, 1, PartitionState.RELEASED))
        report = split_report(lane_report(A1, {number: chunk}), sequence=number)
        leading.do(lead.on_split_report(peer("a"), report, 10 * number))
        for volume in ("x0", "x1"):
            done = acknowledged(lead, number, sequence=number)
            leading.do(lead.on_replica_report(peer(volume), done, 10 * number))
    assert (lead.log_state.epoch, lead.cut_at) == (4, 40)


@pytest.mark.parametrize(("late", "beat"), [(700, 500), (750, 500), (751, 501), (2000, 1750)])
def test_late_cut_keeps_schedule_unless_half_interval_late(late: int, beat: int) -> None:
    leading = running()
    lead = leading.lead
    first = split_report(lane_report(A1, {1: note(1, p=Mark(1, 1))}))
    leading.do(lead.on_split_report(peer("a"), first, late))
    assert (lead.log_state.epoch, lead.cut_at) == (1, beat)


def test_published_entries_are_compacted_beyond_limit() -> None:  # [12]
    leading = running(settings=S._replace(entries_before_snapshot=2))
    lead = leading.lead
    for number in range(1, 5):
        chunk = note(1, p=Mark(number, 1))
        report = split_report(lane_report(A1, {number: chunk}), sequence=number)
        leading.do(lead.on_split_report(peer("a"), report, 500 * number))
        reply = replica_report(number, sequence=number)
        leading.do(lead.on_replica_report(peer("x0"), reply, 500 * number))
    assert len(lead.stored.entries) <= 2
    assert told(HeaderLog(leading.volume, 2).fold()) == told(lead.log_state)


# --- reports --------------------------------------------------------------------------------------


def test_every_report_is_answered_with_view() -> None:
    leading = running()
    lead = leading.lead
    assert [
        to for to, _ in sent(SplitView, lead.on_split_report(peer("a"), split_report(), 1))
    ] == ["a"]
    assert "x0" in [
        to for to, _ in sent(ReplicaView, lead.on_replica_report(peer("x0"), replica_report(), 1))
    ]
    assert "m" in [
        to for to, _ in sent(MergeView, lead.on_merge_report(peer("m"), merge_report(), 1))
    ]


def test_late_repeated_and_zombie_reports_are_ignored() -> None:  # [11] shared-name
    leading = running()
    lead = leading.lead
    lead.on_split_report(peer("a", 2), split_report(sequence=5), 1)
    lead.on_replica_report(peer("x0", 2), replica_report(3, sequence=5), 1)
    lead.on_merge_report(peer("m", 2), merge_report(3, sequence=5), 1)
    for sender, sequence in ((2, 5), (2, 4), (1, 9)):
        assert lead.on_split_report(peer("a", sender), split_report(sequence=sequence), 2) == []
        late = replica_report(9, sequence=sequence)
        assert lead.on_replica_report(peer("x0", sender), late, 2) == []
        assert lead.on_merge_report(peer("m", sender), merge_report(9, sequence=sequence), 2) == []
    assert lead.reports.replicas["x0"].report.committed == 3
    assert lead.reports.delivered == {0: 3}
    assert lead.reports.splits["a"].at == lead.reports.replicas["x0"].at == 1


def test_unchanged_report_is_heartbeat_without_decision() -> None:
    leading = running()
    lead = leading.lead
    lead.on_replica_report(peer("x0"), replica_report(), 1)
    lead.reports.splits.clear()
    effects = lead.on_replica_report(peer("x0"), replica_report(sequence=2), 700)
    assert [type(e) for e in effects] == [Send]
    assert lead.reports.last_word("x0") == 700


def test_notes_count_only_for_live_known_uncovered_lanes() -> None:  # [1]
    leading = running(header(1, Span(A1, 1, 1)))
    lead = leading.lead
    chunk = note(1, p=Mark(1, 1))
    report = split_report(
        lane_report(A1, {1: chunk, 2: chunk}), lane_report(B1, {1: chunk}), sequence=1
    )
    lead.on_split_report(peer("a"), report, 1)
    assert lead.reports.notes == {A1: {2: chunk}}
    past = split_report(lane_report(A1, {3: chunk}, live=False), sequence=2)
    with busy(lead):
        lead.on_split_report(peer("a"), past, 2)
    assert 3 not in lead.reports.notes[A1]


def test_delivered_epoch_of_slot_never_falls() -> None:
    leading = running()
    lead = leading.lead
    lead.on_merge_report(peer("m"), merge_report(4), 1)
    lead.on_merge_report(peer("n"), merge_report(2), 1)
    lead.on_merge_report(peer("o"), merge_report(1, slot=1), 1)
    assert lead.reports.delivered == {0: 4, 1: 1}


def test_older_or_repeated_intent_is_ignored() -> None:  # [11]
    leading = Leading()
    lead = leading.lead
    lead.on_intent(intent(version=3), 0)
    assert lead.on_intent(intent(version=3, slots=9), 0) == []
    assert lead.on_intent(intent(version=2, slots=9), 0) == []
    assert lead.reports.intent is not None
    assert lead.reports.intent.slots == 1


def test_tick_drops_reports_of_gone_volumes() -> None:  # [12]
    leading = running()
    lead = leading.lead
    lead.on_split_report(peer("b"), split_report(), 0)
    lead.reports.gone = {"b"}
    lead.tick(1)
    assert "b" not in lead.reports.splits


# --- telling --------------------------------------------------------------------------------------


def test_published_header_is_sent_at_once_to_seated_replicas_and_active_merges() -> None:
    leading = running(MergeChosen(0, "m"))
    lead = leading.lead
    lead.on_replica_report(peer("x0"), replica_report(), 0)
    lead.on_replica_report(peer("waiting"), joiner_report(), 0)
    lead.on_merge_report(peer("m"), merge_report(), 0)
    lead.on_merge_report(peer("standby"), merge_report(), 0)
    chunk = note(1, p=Mark(1, 1))
    effects = lead.on_split_report(peer("a"), split_report(lane_report(A1, {1: chunk})), 500)
    views = sent(ReplicaView, effects)
    assert [to for to, _ in views] == ["x0"]
    assert [h.epoch for h in views[0][1].headers] == [1]
    assert [to for to, _ in sent(MergeView, effects)] == ["m"]
    assert [to for to, _ in sent(SplitView, effects)] == ["a"]


def test_unpublished_header_is_not_sent() -> None:  # [6] (d)
    leading = running(MergeChosen(0, "m"), paired=True)
    lead = leading.lead
    for volume in ("x0", "x1"):
        lead.on_replica_report(peer(volume), replica_report(), 0)
    chunk = note(1, p=Mark(1, 1))
    effects = lead.on_split_report(peer("a"), split_report(lane_report(A1, {1: chunk})), 500)
    leading.do(effects)
    assert len(lead.pending) == 1
    view = only(ReplicaView, lead.on_replica_report(peer("x0"), replica_report(sequence=2), 501))
    assert view.headers == ()
    effects = leading.ack()
    assert {h.epoch for _, v in sent(ReplicaView, effects) for h in v.headers} == {1}


def test_replica_that_loses_its_seat_is_notified_at_once() -> None:
    leading = running(header(1))
    lead = leading.lead
    lead.on_replica_report(peer("x1"), replica_report(), 0)
    for now in range(0, S.silence, 100):
        lead.tick(now)
    lead.on_replica_report(peer("x0"), replica_report(1), S.silence)
    lead.on_replica_report(peer("n"), joiner_report(), S.silence)
    answer = replica_report(1, calls=1, sequence=2)
    effects = lead.on_replica_report(peer("x0"), answer, S.silence)
    views = dict(sent(ReplicaView, effects))
    assert views["x1"].standing == Standing.DISPLACED
    assert lead.log_state.seat_of("n") is not None


@pytest.mark.parametrize(
    "other", [replica_report(1, history="other"), replica_report(2), replica_report(1, have=9)]
)
def test_replica_of_another_history_is_ignored_and_loses_its_seat(
    other: ReplicaReport,
) -> None:  # (i) [6] rebuild-by-number
    leading = running(header(1))
    lead = leading.lead
    effects = leading.do(lead.on_replica_report(peer("x1"), other, 0))
    foreign = other.committed_digest != header(1).digest
    vacated = [Vacated("x", 1, "x1", "other history")] if foreign else []
    assert [e for e in leading.written(effects) if isinstance(e, Vacated)] == vacated
    standing = sent(ReplicaView, effects)[-1][1].standing
    assert standing == (Standing.DISPLACED if foreign else Standing.SEATED)


def test_commits_of_another_history_do_not_move_trim_point() -> None:  # (i) [5]
    leading = running(header(1))
    lead = leading.lead
    with busy(lead):
        lead.on_merge_report(peer("m"), merge_report(1), 0)
        lead.on_replica_report(peer("x0"), replica_report(1), 0)
        lead.on_replica_report(peer("x1"), replica_report(1, history="other"), 0)
        assert list(trim_point(lead.log_state, lead.reports)) == []
        lead.on_replica_report(peer("x1"), replica_report(1, sequence=2), 0)
        assert list(trim_point(lead.log_state, lead.reports)) == [Trimmed(1)]


def test_joiner_with_copy_of_another_history_is_not_verified() -> None:  # (i)
    leading = running(header(1), Vacated("x", 1, "x1", "gone"), Seated("x", 1, "n"))
    lead = leading.lead
    copied = replica_report(1, history="other")
    effects = leading.do(lead.on_replica_report(peer("n"), copied, 0))
    assert leading.written(effects)[0] == Vacated("x", 1, "n", "other history")


def test_replica_with_differing_result_is_notified_once_its_twin_has_answered() -> None:  # [4]
    leading = running()
    lead = leading.lead
    lead.on_replica_report(peer("x1"), replica_report(), 0)
    lead.on_replica_report(peer("x0"), replica_report(), 0)
    differs = merge_report(differing=(("x", 1, "x1"),))
    effects = lead.on_merge_report(peer("m"), differs, 1)
    assert dict(sent(ReplicaView, effects))["x1"].standing == Standing.SEATED
    effects = lead.on_replica_report(peer("x0"), replica_report(calls=1, sequence=2), 2)
    assert dict(sent(ReplicaView, effects))["x1"].standing == Standing.DISPLACED


def test_shadow_that_loses_its_seat_is_notified_at_once() -> None:  # [5]
    shadow = G1.replace(number=2, pairs=(Pair("y", "y"),))
    leading = Leading(running_state(header(1), GenerationKnown(shadow, 2), Seated("y", 0, "y0")))
    lead = leading.lead
    lead.reports.intent = intent(G1, shadow)
    lead.reports.delivered = {0: 1}
    lead.on_replica_report(peer("y0"), joiner_report("y"), 0)
    for volume in ("x0", "x1"):
        lead.on_replica_report(peer(volume), replica_report(1), 0)
    full = split_report(lane_report(A1, over_bound=True))
    effects = lead.on_split_report(peer("a"), full, 1)
    assert lead.log_state.seat_of("y0") is None
    assert "y0" in [to for to, _ in sent(ReplicaView, effects)]


def test_lane_records_are_sent_to_every_split() -> None:
    leading = running()
    lead = leading.lead
    lead.on_split_report(peer("a"), split_report(lane_report(A1)), 0)
    effects = lead.on_split_report(peer("b"), split_report(opening=(B1, "a")), 1)
    assert {to for to, _ in sent(SplitView, effects)} == {"a", "b"}
    quiet = lead.on_merge_report(peer("m"), merge_report(), 2)
    assert sent(SplitView, quiet) == []


def test_chosen_merge_and_verified_replica_are_sent_to_merges() -> None:
    leading = running(Vacated("x", 1, "x1", ""))
    lead = leading.lead
    effects = lead.on_merge_report(peer("m"), merge_report(), 0)
    assert [view.active for _, view in sent(MergeView, effects)][-1]
    lead.on_replica_report(peer("n"), joiner_report(), 0)
    effects = lead.on_replica_report(peer("n"), replica_report(sequence=2), 0)
    assert dict(sent(MergeView, effects))["m"].holders == (("x", ("x0", "n")),)


def test_calls_are_sent_to_every_seated_replica() -> None:  # [5]
    leading = running(header(1), header(2))
    lead = leading.lead
    lead.reports.delivered = {0: 2}
    lead.on_replica_report(peer("x0"), replica_report(2), 0)
    lead.on_replica_report(peer("x1"), replica_report(1), 0)
    full = split_report(lane_report(A1, over_bound=True, stuck=True))
    effects = lead.on_split_report(peer("a"), full, 1)
    assert {to: view.calls for to, view in sent(ReplicaView, effects)} == {"x0": 1, "x1": 1}
    seat = lead.log_state.seats["x"][1]
    assert seat is not None
    assert seat.called == 1
    effects = lead.on_replica_report(peer("x0"), replica_report(2, calls=1, sequence=2), 2)
    assert dict(sent(ReplicaView, effects))["x1"].standing == Standing.DISPLACED


def test_retired_pair_is_notified_when_it_reports() -> None:
    second = G1.replace(number=2, pairs=(Pair("v", "v"),))
    log_state = running_state(
        GenerationKnown(second, 2), header(1, generation=2), PairsRetired(("x",))
    )
    view = only(
        ReplicaView, Leading(log_state).lead.on_replica_report(peer("x0"), replica_report(), 0)
    )
    assert view.standing == Standing.RETIRED


# --- the second copy ------------------------------------------------------------------------------


def test_new_buddy_receives_whole_log_state_first() -> None:  # (c)
    leading = running()
    lead = leading.lead
    effects = lead.fill("b", 5)
    ((to, fill),) = sent(FillLog, effects)
    assert (to, fill.fence, fill.through) == ("b", (2, 1), lead.log.end)
    assert told(fill.log_state) == told(lead.log_state)
    assert fill.log_state is not lead.log_state
    assert (lead.log.bond, lead.log.heard) == (Bond.FILLING, 5)


def test_no_entry_is_sent_until_fill_is_acknowledged() -> None:  # (c)
    leading = running()
    lead = leading.lead
    lead.fill("b", 0)
    assert len(sent(FillLog, lead.tick(1))) == 1
    leading.ack()
    assert sent(FillLog, lead.tick(2)) == []
    assert lead.log.asking is not None


def test_filled_buddy_receives_entries_added_meanwhile() -> None:  # (c)
    leading = running()
    lead = leading.lead
    lead.fill("b", 0)
    through = lead.log.end
    leading.do(lead.on_split_report(peer("b"), split_report(opening=(B1, "a")), 1))
    assert B1 in lead.log_state.lanes
    leading.ack(through)
    assert lead.log.bond is Bond.FILLING
    copies = sent(CopyEntry, lead.tick(2))
    assert [message.number for _, message in copies] == list(range(through + 1, lead.log.end + 1))
    leading.ack()
    assert lead.log.asking is not None


def test_follower_behind_snapshot_is_filled_again() -> None:  # (c) [12]
    leading = running(settings=S._replace(entries_before_snapshot=2))
    lead = leading.lead
    lead.fill("b", 0)
    through = lead.log.end
    for number in range(1, 5):
        report = split_report(opening=(B1.replace(number=number), None), sequence=number)
        leading.do(lead.on_split_report(peer("b"), report, 1))
    leading.ack(through)
    assert lead.stored.copy.base > through
    assert lead.log.bond is Bond.FILLING
    fill = only(FillLog, lead.tick(2))
    assert fill.through == lead.log.end


def test_silent_buddy_is_resent_entries_in_small_batches() -> None:  # [11] [12]
    leading = running(paired=True)
    lead = leading.lead
    lead.pending.extend((lead.log.append(), Trimmed(n)) for n in range(COPIES_AT_ONCE + 2))
    for number, entry in lead.pending:
        lead.stored.add(number, entry)
    numbers = [message.number for _, message in sent(CopyEntry, lead.tick(1))]
    assert numbers == list(range(1, COPIES_AT_ONCE + 1))


def test_up_to_date_buddy_receives_heartbeat() -> None:
    leading = running(paired=True)
    lead = leading.lead
    ((to, message),) = sent(CopyEntry, lead.tick(1))
    assert (to, message) == ("b", CopyEntry(lead.log.fence, 0, None, lead.stored.published))
    assert sent(CopyEntry, running().lead.tick(1)) == []


def test_pending_entries_wait_for_drop_of_buddy() -> None:  # (b) (d)
    leading = Leading(paired=True)
    lead = leading.lead
    leading.do(lead.on_intent(intent(), 0))
    lead.log.drop_follower()
    leading.do(lead.advance(1))
    assert lead.log_state.generations == {}
    asking = lead.log.asking
    assert asking is not None
    lead.log.recorded(*asking)
    leading.do(lead.advance(2))
    assert lead.log_state.generations == {1: G1}


# --- events ---------------------------------------------------------------------------------------


def events(effects: list[Effect]) -> list[tuple[str, str]]:
    return [(e.event, e.subject) for e in of(Happened, effects)]


def test_published_entries_are_reported_as_events() -> None:
    leading = Leading()
    lead = leading.lead
    found = events(lead.on_intent(intent(), 0))
    found += events(lead.on_replica_report(peer("x0"), joiner_report(), 0))
    found += events(lead.on_replica_report(peer("x0"), replica_report(sequence=2), 0))
    found += events(lead.on_split_report(peer("a"), split_report(opening=(A1, "b")), 0))
    chunk = note(1, p=Mark(1, 1))
    report = split_report(lane_report(A1, {1: chunk}), sequence=2)
    found += events(lead.on_split_report(peer("a"), report, 500))
    assert [event for event, _ in found] == [
        "GenerationKnown",
        "Seated",
        "Verified",
        "LaneOpened",
        "HeaderPublished",
    ]
    assert found[-1] == ("HeaderPublished", "1")


def test_cutover_is_reported_as_event_unless_first_generation() -> None:
    second = G1.replace(number=2)
    leading = Leading(running_state(header(1)))
    lead = leading.lead
    effects = lead.on_intent(intent(G1, second, version=2, target=2), 0)
    assert ("GenerationCut", "2") in events(effects)
    assert lead.log_state.generation == 2
    first = Leading(running_state())
    chunk = note(1, p=Mark(1, 1, PartitionState.ENDED))
    first.lead.on_intent(intent(), 0)
    effects = first.lead.on_split_report(peer("a"), split_report(lane_report(A1, {1: chunk})), 0)
    assert "GenerationCut" not in [event for event, _ in events(effects)]


# --- a whole life ---------------------------------------------------------------------------------


def test_small_pipeline_produces_each_decision_once_in_order() -> None:
    """Every decision once, in order: the header log of a small pipeline."""
    leading = Leading(settings=S._replace(interval=0))
    lead = leading.lead
    effects = lead.on_intent(intent(), 0)
    effects += lead.on_replica_report(peer("x0"), joiner_report(), 0)
    effects += lead.on_replica_report(peer("x0"), replica_report(sequence=2), 0)
    effects += lead.on_merge_report(peer("m"), merge_report(), 0)
    effects += lead.on_split_report(peer("a"), split_report(opening=(A1, "b")), 0)
    chunk = note(1, p=Mark(1, 7, PartitionState.ENDED))
    last = split_report(lane_report(A1, {1: chunk}), sequence=2)
    effects += lead.on_split_report(peer("a"), last, 0)
    assert [type(e).__name__ for e in leading.written(effects)] == [
        "GenerationKnown",
        "Seated",
        "Verified",
        "MergeChosen",
        "LaneOpened",
        "PartitionOwned",
        "Header",
        "Header",
    ]
    assert lead.log_state.final
    assert PartitionOwned("p", A1) in leading.written(effects)
    assert Verified("x", 0, "x0", 0) in leading.written(effects)
    effects = lead.on_replica_report(peer("x0"), acknowledged(lead, 2, sequence=3), 1)
    effects += lead.on_merge_report(peer("m"), merge_report(1, sequence=2), 1)
    assert leading.written(effects) == [Trimmed(1)]
    effects = lead.on_merge_report(peer("m"), merge_report(2, sequence=3), 1)
    assert leading.written(effects) == [Completed()]
    assert [v.completed for _, v in sent(MergeView, effects)][-1]
    assert lead.log_state.completed


def test_calls_are_numbered_across_kinds() -> None:
    log_state = running_state(LapseCalled("x", 1, "x1"), RetirementCalled())
    leading = Leading(log_state)
    view = only(ReplicaView, leading.lead.on_replica_report(peer("x0"), replica_report(), 0))
    assert view.calls == 2
