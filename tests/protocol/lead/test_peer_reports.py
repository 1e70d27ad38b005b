"""What a lead has heard: soft, cumulative, of the newest incarnation."""

from tests.protocol.builders import (
    A1,
    A2,
    B1,
    G1,
    S,
    header,
    lane_report,
    make_reports,
    merge_report,
    note,
    peer,
    replica_report,
    running_state,
    seated,
    split_report,
    state_of,
)

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import (
    LastReport,
    PeerReports,
    committed,
    committed_by_faster,
    delivered_through,
    has_news,
    is_newer,
    slot_delivered,
)
from tandem_runtime.protocol.log.entries import GenerationKnown, Seated, SlotEnded, SlotOpened
from tandem_runtime.protocol.types import Seat, Span


def test_silence_begins_after_last_report_of_any_kind() -> None:  # (f)
    reports = make_reports(
        now=100,
        replicas={"r": replica_report()},
        splits={"s": split_report()},
        merges={"m": merge_report()},
    )
    for volume in ("r", "s", "m", "never heard"):
        assert reports.last_word(volume) == 100
        assert not reports.silent(volume, 1599)
        assert reports.silent(volume, 1600)


def test_nobody_is_silent_after_a_stall_of_the_lead_before_reports_could_be_read() -> None:  # (f)
    reports = make_reports(now=100, splits={"s": split_report()})
    for now in range(100, 1600, 100):
        reports.listen(now)
    assert reports.silent("s", 1600)
    reports.listen(1600 + S.silence // 2)
    assert not reports.silent("s", 1599 + S.silence // 2 + S.silence)
    assert reports.silent("s", 1600 + S.silence // 2 + S.silence)


def test_lead_is_never_silent_to_itself() -> None:  # [5]
    reports = PeerReports(0, S.silence, set(), me="a")
    assert not reports.silent("a", 10 * S.silence)
    assert reports.silent("b", 10 * S.silence)


def test_silence_of_unheard_member_begins_with_term() -> None:  # (f)
    reports = make_reports(now=50)
    reports.replicas["r"] = LastReport(1, 900, replica_report())
    assert reports.last_word("r") == 900
    assert reports.last_word("other") == 50


def test_notes_are_dropped_once_covered_or_lane_is_over() -> None:  # [12]
    log_state = running_state(header(1, Span(A1, 1, 2)))
    reports = make_reports(notes={A1: {1: note(), 2: note(), 3: note()}, B1: {1: note()}})
    reports.forget_notes(log_state)
    assert reports.notes == {A1: {3: note()}}


def test_reports_of_gone_volumes_are_dropped() -> None:  # [12]
    reports = make_reports(
        splits={"a": split_report(), "b": split_report()},
        replicas={"x0": replica_report()},
        merges={"m": merge_report()},
        gone={"a", "x0"},
    )
    reports.forget_gone()
    assert (set(reports.splits), set(reports.replicas), set(reports.merges)) == (
        {"b"},
        set(),
        {"m"},
    )


def test_newer_incarnation_or_sequence_replaces_report() -> None:  # [11] shared-name
    heard = LastReport(2, 0, replica_report(sequence=5))
    assert is_newer(None, peer("r", 1), replica_report())
    assert is_newer(heard, peer("r", 2), replica_report(sequence=6))
    assert is_newer(heard, peer("r", 3), replica_report(sequence=1))
    assert not is_newer(heard, peer("r", 2), replica_report(sequence=5))
    assert not is_newer(heard, peer("r", 2), replica_report(sequence=4))
    assert not is_newer(heard, peer("r", 1), replica_report(sequence=9))


def test_report_has_news_if_it_differs_beyond_sequence() -> None:
    heard = LastReport(1, 0, replica_report(3, sequence=1))
    assert has_news(None, replica_report(3))
    assert not has_news(heard, replica_report(3, sequence=2))
    assert has_news(heard, replica_report(4, sequence=2))


def test_only_volume_on_seat_reports_its_commits() -> None:  # [5] shared-name
    reports = make_reports(replicas={"old": replica_report(9), "new": replica_report(5)})
    assert committed(Seat("new", 2, SeatState.VERIFIED), reports) == 5
    assert committed(Seat("other", 2, SeatState.VERIFIED), reports) == 2
    assert committed(Seat("new", 7, SeatState.VERIFIED), reports) == 7


def test_unverified_holder_has_committed_nothing_beyond_its_hold() -> None:  # [5]
    reports = make_reports(replicas={"new": replica_report(5)})
    assert committed(Seat("new", 2), reports) == 2


def test_delivered_through_is_minimum_over_slots_or_log_value() -> None:
    log_state = running_state(SlotOpened(slot=1, first=1, intent_version=1))
    reports = make_reports()
    reports.delivered = {0: 4}
    assert delivered_through(log_state, reports) == 0
    reports.delivered = {0: 4, 1: 3}
    assert delivered_through(log_state, reports) == 3
    log_state.apply(header(1, delivered=5))
    assert delivered_through(log_state, reports) == 5


def test_late_slot_owes_nothing_before_its_first_epoch() -> None:
    log_state = running_state(SlotOpened(slot=1, first=4, intent_version=1))
    reports = make_reports(delivered=7)
    assert delivered_through(log_state, reports) == 3
    assert slot_delivered(log_state, reports, 1) == 3


def test_ended_slot_counts_through_its_last_epoch() -> None:
    ended = SlotEnded(slot=1, last=4, intent_version=2)
    log_state = running_state(SlotOpened(slot=1, first=1, intent_version=1), ended)
    reports = make_reports(delivered=7)
    reports.delivered[1] = 3
    assert delivered_through(log_state, reports) == 3
    reports.delivered[1] = 4
    assert delivered_through(log_state, reports) == 7
    log_state.apply(header(5, delivered=6))
    assert (slot_delivered(log_state, reports, 1), slot_delivered(log_state, reports, 2)) == (4, 0)


def test_unknown_slots_do_not_count() -> None:
    reports = make_reports(delivered=2)
    reports.delivered[1] = 1
    assert delivered_through(state_of(), reports) == 2


def test_faster_replica_is_chosen_among_full_members_only() -> None:
    log_state = running_state()
    reports = make_reports(replicas={"x0": replica_report(3), "x1": replica_report(5)})
    assert committed_by_faster(log_state, reports, "x") == 5
    alone = state_of(GenerationKnown(G1, 1), *seated("x", "x0"), Seated("x", 1, "x1"))
    alone.seats["x"][1] = Seat("x1", 9)
    assert committed_by_faster(alone, reports, "x") == 3
    assert committed_by_faster(log_state, reports, "no such pair") == 0


def test_last_lane_report_of_owner_replaces_earlier_ones() -> None:
    reports = make_reports()
    first = split_report(lane_report(A1, through=3), lane_report(A2))
    reports.on_lanes(None, first)
    assert set(reports.lanes) == {A1, A2}
    reports.on_lanes(None, split_report(lane_report(B1)))
    reports.on_lanes(LastReport(1, 0, first), split_report(lane_report(A1, through=4)))
    assert {lane: report.through for lane, report in reports.lanes.items()} == {A1: 4, B1: 0}
    reports.gone = {"b"}
    reports.forget_gone()
    assert set(reports.lanes) == {A1}
