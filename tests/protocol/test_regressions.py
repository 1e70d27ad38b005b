"""The schedules that showed a rule of the first design to be wrong, each as a scenario.

The numbers are those of docs/protocol/design-history.md.
"""

from tests.protocol.builders import (
    A1,
    B1,
    G1,
    G2,
    Volume,
    carry_out,
    header,
    intent,
    joiner_report,
    lane_report,
    make_reports,
    merge_report,
    note,
    of,
    peer,
    replica_report,
    running_state,
    seated,
    sent,
    split_report,
    state_of,
)

from tandem_runtime.protocol.effects import Happened
from tandem_runtime.protocol.election.register import RegisterClient, swap
from tandem_runtime.protocol.lead.copy_rules import build_epoch
from tandem_runtime.protocol.lead.lane_rules import close_or_resume_lanes, report_lost_lanes
from tandem_runtime.protocol.lead.lead import Lead
from tandem_runtime.protocol.lead.peer_reports import delivered_through
from tandem_runtime.protocol.log.entries import (
    DataLost,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    SlotOpened,
    Trimmed,
)
from tandem_runtime.protocol.log.header_log import HeaderLog
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.merge.sink_position import SinkTracker
from tandem_runtime.protocol.messages.peers import (
    CopyChunk,
    Owned,
    RegisterAnswer,
    ReplicaView,
    SealedCopy,
    Standing,
)
from tandem_runtime.protocol.split.lane_copies import Copies
from tandem_runtime.protocol.split.own_lane import OwnLane
from tandem_runtime.protocol.types import Chunk, Mark, ProtocolSettings, RegisterState, Span

S = ProtocolSettings(interval=500, silence=1500, max_lane_bytes=10)
FULL = lane_report(A1, over_bound=True)


class Leading:
    """A lead that is alone, so that what it decides is published at once."""

    def __init__(self, log_state: LogState) -> None:
        volume: Volume = {}
        stored = HeaderLog(volume, 24)
        carry_out(volume, stored.reset((1, 0), 0, log_state))
        self.gone: set[str] = set()
        self.lead = Lead("a", 2, stored, S, self.gone, now=0)
        self.lead.begin()

    def lose(self, *volumes: str) -> None:
        self.gone.update(volumes)
        self.lead.advance(1)


def test_1_unnoticed_death_of_twin_does_not_displace_survivor() -> None:
    leading = Leading(running_state(header(1, Span(A1, 1, 1)), header(2, Span(A1, 2, 2))))
    lead = leading.lead
    lead.on_intent(intent(), 0)
    lead.on_merge_report(peer("m"), merge_report(2), 0)
    lead.on_replica_report(peer("x0"), replica_report(2), 0)
    lead.on_replica_report(peer("x1"), replica_report(1), 0)
    # x0 is dead by now, but nobody knows. A full lane makes the lead call the one behind.
    effects = lead.on_split_report(peer("a"), split_report(FULL), 1)
    views = dict(sent(ReplicaView, effects))
    assert all(view.standing != Standing.DISPLACED for view in views.values())
    assert lead.log_state.trim == 1
    leading.lose("x0")
    _, survivor = lead.log_state.seats["x"]
    assert survivor is not None
    assert survivor.volume == "x1"
    assert not survivor.lapsed
    assert not survivor.called


def test_1_joiner_does_not_displace_frozen_holder_while_its_twin_may_be_dead() -> None:
    leading = Leading(running_state(header(1)))
    lead = leading.lead
    lead.on_intent(intent(), 0)
    lead.on_replica_report(peer("x0"), replica_report(1), 0)
    lead.on_replica_report(peer("x1"), replica_report(1), S.silence - 1)
    lead.on_replica_report(peer("n"), joiner_report(), S.silence)
    assert lead.log_state.seat_of("x0") is not None
    leading.lose("x1")
    assert lead.log_state.seat_of("x0") is not None
    assert lead.log_state.lost == {}


def test_2_parents_stay_while_new_pair_may_be_dead() -> None:
    log_state = running_state(
        GenerationKnown(G2, 2),
        *seated("y", "y0", "y1"),
        *seated("z", "z0", "z1"),
        header(1),
        header(2, generation=2),
    )
    leading = Leading(log_state)
    lead = leading.lead
    lead.on_intent(intent(G1, G2, version=2, target=2), 0)
    for volume in ("x0", "x1", "y0", "y1", "z0", "z1"):
        lead.on_replica_report(peer(volume), replica_report(2, pair=volume[0]), 0)
    lead.on_merge_report(peer("m"), merge_report(2), 0)
    assert lead.log_state.retiring == 1
    leading.lose("y0", "y1")
    assert "x" not in lead.log_state.retired
    assert lead.log_state.lost == {}


def test_3_swap_of_former_process_is_not_mistaken_for_own() -> None:
    done, place = swap(RegisterState(0, 0, "", None), 0, RegisterState(0, 1, "a", None))
    assert done
    # Restarted, it must not propose before it has read: the same content stands there already.
    client = RegisterClient(patience=750)
    assert not client.consulted
    (question,) = client.tick(0)
    client.answered(RegisterAnswer(question.op, swapped=False, place=place), 1)  # type: ignore[union-attr]
    client.propose(RegisterState(0, 2, "a", None), 2)
    outcome, _ = client.answered(RegisterAnswer(2, swapped=False, place=place), 3)
    assert outcome is None


def test_4_trimming_waits_for_sinks() -> None:
    leading = Leading(running_state(header(1), header(2)))
    lead = leading.lead
    lead.on_intent(intent(), 0)
    lead.on_replica_report(peer("x0"), replica_report(2), 0)
    lead.on_replica_report(peer("x1"), replica_report(2), 0)
    assert lead.log_state.trim == 0
    lead.on_merge_report(peer("m"), merge_report(1), 0)
    assert lead.log_state.trim == 1


def test_5_seal_outlives_its_lane() -> None:
    copies = Copies("b", {})
    chunk = (Chunk(note(), ("rows",)),)
    copies.seal(A1, view=1)
    copies.forget(A1, (1, 9))
    late = CopyChunk(A1, (0, 0), (1, 5), 0, 1, chunk)
    assert copies.take(late) == ([], None)
    _, through = copies.take(late.replace(lane=B1, version=(1, 9)))
    assert through == 1


def test_6_lane_may_be_assigned_partition_it_released() -> None:
    lane = OwnLane(A1, "b", S, 0)
    lane.own(Owned("p", A1, Mark(0, 0), 1))
    lane.release("p")
    lane.seal((1, 1), 0)
    lane.own(Owned("p", A1, Mark(0, 0), 1))
    assert lane.pulls(1) == []
    lane.own(Owned("p", A1, Mark(0, 0), 2))
    assert len(lane.pulls(1)) == 1


def test_7_late_answer_does_not_rewind_sink() -> None:
    sink = SinkTracker("s")
    sink.read(0, now=0)
    sink.told(2, op=1)
    sink.deliver(3, (), now=1)
    sink.read(0, now=2)
    # The sink read its position for the second question before the delivery landed.
    assert not sink.told(3, op=2)
    assert not sink.told(2, op=3)
    assert (sink.position, sink.rewound) == (3, False)


def test_8_chunk_held_only_by_restarted_owner_enters_no_epoch() -> None:
    leading = Leading(running_state())
    lead = leading.lead
    lead.on_intent(intent(), 0)
    past = lane_report(A1, {1: note(p=Mark(5, 0))}, live=False)
    lead.on_split_report(peer("a", 2), split_report(past), S.interval)
    lead.tick(2 * S.interval)
    assert lead.log_state.epoch == 0


def test_9_log_voided_in_error_is_redeemed() -> None:
    volume: Volume = {}
    log = HeaderLog(volume, 24)
    carry_out(volume, log.reset((1, 1), 3, state_of()))
    carry_out(volume, log.declare_void())
    assert HeaderLog(volume, 24).void
    carry_out(volume, log.redeem())
    restarted = HeaderLog(volume, 24)
    assert not restarted.void
    assert restarted.copy.through == 3


def test_late_filled_buddy_closes_no_lane_below_trimmed_chunks() -> None:
    log_state = running_state(header(1, Span(A1, 1, 3)), LaneClosing(A1))
    log_state.lanes[A1] = log_state.lanes[A1].replace(trimmed=3)
    sealed = SealedCopy(A1, 1, 1, ())
    reports = make_reports(splits={"b": split_report(sealed=(sealed,))})
    assert list(close_or_resume_lanes(log_state, reports, 0)) == [LaneClosed(A1, 3, ())]


def test_lane_closed_by_owner_alone_claims_no_second_copy() -> None:  # [8]
    log_state = running_state(header(1, Span(A1, 1, 3)), LaneClosing(A1))
    log_state.apply(LaneClosed(A1, 3, (), alone=True))
    assert log_state.lanes[A1].buddy is None
    gone = make_reports(gone={"a"}, replicas={"x0": replica_report(0)})
    (lost,) = report_lost_lanes(log_state, gone, 0)
    assert isinstance(lost, DataLost)


def test_new_lead_builds_no_pair_below_trim_point() -> None:
    log_state = running_state(
        GenerationKnown(G2, 2), header(1), header(2), Trimmed(2), header(3, generation=2)
    )
    assert build_epoch(log_state, make_reports(replicas={"x0": replica_report(3)}), "y") == 2


def test_slot_count_comes_from_log_and_not_from_intent() -> None:
    reports = make_reports()
    reports.delivered = {0: 4}
    assert delivered_through(running_state(header(1)), reports) == 4
    second = SlotOpened(slot=1, first=1, intent_version=1)
    reports.intent = intent(slots=1)
    assert delivered_through(running_state(second, header(1)), reports) == 0


def test_loss_is_reported_again_by_next_lead() -> None:
    volume: Volume = {}
    stored = HeaderLog(volume, 24)
    carry_out(volume, stored.reset((1, 0), 0, running_state(DataLost("x", "gone"))))
    effects = Lead("b", 2, stored, S, set(), now=0).begin()
    assert [e.event for e in of(Happened, effects)] == ["LeadChanged", "DataLost"]
