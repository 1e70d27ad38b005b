"""What the lead decides about lanes: opening, second copies, closing, owners of partitions."""

from collections.abc import Mapping

import pytest
from tests.protocol.builders import (
    A1,
    A2,
    B1,
    C1,
    G1,
    S,
    header,
    intent,
    lane_report,
    make_reports,
    note,
    replica_report,
    running_state,
    seated,
    split_report,
    state_of,
)

from tandem_core.contract.intent import Pair
from tandem_runtime.protocol.lead.lane_rules import (
    assign_partitions,
    begin_closing_lanes,
    can_assign_partition,
    change_buddies,
    close_or_resume_lanes,
    has_rows_at_risk,
    open_requested_lanes,
    partitions_by_open_lane,
    partitions_to_release,
    report_lost_lanes,
    report_lost_partitions,
)
from tandem_runtime.protocol.lead.peer_reports import LastReport, PeerReports
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    DataLost,
    Entry,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    Lapsed,
    PartitionOwned,
    Seated,
    Vacated,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import SealedCopy, SplitReport
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import LaneId, Mark, Span

LATE = S.silence
"""When everybody who spoke at 0 has been silent for long."""


def says(reports: PeerReports, split: str, report: SplitReport, at: int = LATE) -> None:
    reports.on_lanes(reports.splits.get(split), report)
    reports.splits[split] = LastReport(1, at, report)


# --- opening ----------------------------------------------------------------------------------


def test_requested_lane_is_opened_with_its_buddy() -> None:
    reports = make_reports(splits={"a": split_report(opening=(A1, "b"))})
    assert list(open_requested_lanes(LogState(), reports, 0)) == [LaneOpened(A1, "b")]


def test_gone_buddy_is_not_recorded() -> None:  # [8]
    reports = make_reports(splits={"a": split_report(opening=(A1, "b"))}, gone={"b"})
    assert list(open_requested_lanes(LogState(), reports, 0)) == [LaneOpened(A1, None)]


@pytest.mark.parametrize("number", [1, 2])
def test_used_lane_number_opens_no_lane(number: int) -> None:
    log_state = state_of(LaneOpened(A2, "b"), LaneClosed(A2, 0, ()))
    reports = make_reports(splits={"a": split_report(opening=(LaneId("a", number), "b"))})
    assert list(open_requested_lanes(log_state, reports, 0)) == []


def test_leaving_gone_or_unasking_splits_get_no_lane() -> None:
    reports = make_reports(
        splits={
            "a": split_report(opening=(A1, "b"), leaving=True),
            "b": split_report(opening=(B1, "a")),
            "c": split_report(),
        },
        gone={"b"},
    )
    assert list(open_requested_lanes(LogState(), reports, 0)) == []


# --- second copies ------------------------------------------------------------------------------


def asking(view: int, buddy: str | None, *, live: bool = True) -> SplitReport:
    return split_report(lane_report(A1, live=live, ask=(view, buddy)))


def test_only_owner_changes_buddy_of_its_lane() -> None:  # [10] buddy-by-operator
    log_state = running_state()
    assert list(change_buddies(log_state, make_reports(splits={"a": asking(2, "c")}), 0)) == [
        BuddyChanged(A1, 2, "c")
    ]
    quiet = make_reports(splits={"a": split_report(lane_report(A1))})
    assert list(change_buddies(log_state, quiet, 0)) == []


def test_recorded_buddy_change_is_not_recorded_again() -> None:  # [11]
    reports = make_reports(splits={"a": asking(1, "c")})
    assert list(change_buddies(running_state(), reports, 0)) == []


def test_buddy_change_is_refused_for_closing_lane_or_ended_or_gone_owner() -> None:
    reports = make_reports(splits={"a": asking(2, None)})
    assert list(change_buddies(running_state(LaneClosing(A1)), reports, 0)) == []
    ended = make_reports(splits={"a": asking(2, None, live=False)})
    assert list(change_buddies(running_state(), ended, 0)) == []
    gone = make_reports(splits={"a": asking(2, None)}, gone={"a"})
    assert list(change_buddies(running_state(), gone, 0)) == []


# --- closing ----------------------------------------------------------------------------------


def test_lane_of_reporting_owner_stays_open() -> None:
    reports = make_reports(splits={"a": split_report(lane_report(A1))})
    assert list(begin_closing_lanes(running_state(), reports, LATE - 1)) == []


def test_silent_owner_lane_begins_closing() -> None:  # (f)
    reports = make_reports(splits={"a": split_report(lane_report(A1))})
    assert list(begin_closing_lanes(running_state(), reports, LATE)) == [LaneClosing(A1)]
    assert list(begin_closing_lanes(running_state(LaneClosing(A1)), reports, LATE)) == []


def test_lane_begins_closing_when_owner_is_gone_or_ended_it() -> None:
    gone = make_reports(splits={"a": split_report(lane_report(A1))}, gone={"a"})
    assert list(begin_closing_lanes(running_state(), gone, 0)) == [LaneClosing(A1)]
    ended = make_reports(splits={"a": split_report(lane_report(A1, live=False))})
    assert list(begin_closing_lanes(running_state(), ended, 0)) == [LaneClosing(A1)]


SEALED = SealedCopy(A1, 1, 3, ((3, note(5)),))


def test_lane_closes_at_last_chunk_of_sealed_buddy() -> None:  # close-at-report [1]
    log_state = running_state(LaneClosing(A1))
    owner = split_report(lane_report(A1, through=9, live=False))
    reports = make_reports(splits={"a": owner, "b": split_report(sealed=(SEALED,))})
    assert list(close_or_resume_lanes(log_state, reports, 0)) == [
        LaneClosed(A1, 3, ((3, note(5)),))
    ]


def test_seal_for_another_buddy_record_or_from_stranger_is_ignored() -> None:
    log_state = running_state(BuddyChanged(A1, 2, "b"), LaneClosing(A1))
    old = make_reports(splits={"b": split_report(sealed=(SEALED,))})
    assert list(close_or_resume_lanes(log_state, old, 0)) == []
    stranger = make_reports(splits={"c": split_report(sealed=(SEALED.replace(view=2),))})
    assert list(close_or_resume_lanes(log_state, stranger, 0)) == []
    other_lane = make_reports(splits={"b": split_report(sealed=(SEALED.replace(lane=A2, view=2),))})
    assert list(close_or_resume_lanes(log_state, other_lane, 0)) == []


def test_open_lane_is_neither_closed_nor_resumed() -> None:
    reports = make_reports(splits={"b": split_report(sealed=(SEALED,))})
    assert list(close_or_resume_lanes(running_state(), reports, 0)) == []


def test_lead_waits_while_buddy_may_answer() -> None:
    log_state = running_state(LaneClosing(A1))
    reports = make_reports(splits={"a": split_report(lane_report(A1)), "b": split_report()})
    assert list(close_or_resume_lanes(log_state, reports, LATE - 1)) == []


def test_closing_is_cancelled_if_buddy_is_silent_and_owner_answers() -> None:
    log_state = running_state(LaneClosing(A1))
    reports = make_reports(splits={"b": split_report()})
    says(reports, "a", split_report(lane_report(A1, through=4)))
    assert list(close_or_resume_lanes(log_state, reports, LATE)) == [LaneResumed(A1)]


def test_ended_lane_with_silent_buddy_closes_at_owner_end() -> None:
    log_state = running_state(header(1, Span(A1, 1, 2)), LaneClosing(A1))
    notes = {2: note(1), 3: note(2), 4: note(3)}
    reports = make_reports()
    says(reports, "a", split_report(lane_report(A1, notes, live=False)))
    closed = LaneClosed(A1, 4, ((3, note(2)), (4, note(3))), alone=True)
    assert list(close_or_resume_lanes(log_state, reports, LATE)) == [closed]


def test_owner_alone_resumes_lane_without_buddy() -> None:
    log_state = state_of(LaneOpened(A1, None), LaneClosing(A1))
    reports = make_reports(splits={"a": split_report(lane_report(A1))})
    assert list(close_or_resume_lanes(log_state, reports, 0)) == [LaneResumed(A1)]


def test_lead_waits_when_neither_owner_nor_buddy_answers() -> None:  # (f)
    log_state = running_state(LaneClosing(A1))
    reports = make_reports(splits={"a": split_report(lane_report(A1)), "b": split_report()})
    assert list(close_or_resume_lanes(log_state, reports, LATE)) == []
    assert list(close_or_resume_lanes(log_state, make_reports(), LATE)) == []


def test_lane_of_gone_owner_waits_for_silent_buddy() -> None:  # [1]
    log_state = running_state(LaneClosing(A1))
    assert list(close_or_resume_lanes(log_state, make_reports(gone={"a"}), LATE)) == []


def test_gone_buddy_is_not_waited_for() -> None:
    log_state = running_state(LaneClosing(A1))
    reports = make_reports(splits={"a": split_report(lane_report(A1))}, gone={"b"})
    assert list(close_or_resume_lanes(log_state, reports, 0)) == [LaneResumed(A1)]


# --- both copies gone --------------------------------------------------------------------------


def both_gone(**committed: int) -> PeerReports:
    committed_by = {volume: replica_report(epoch) for volume, epoch in committed.items()}
    return make_reports(replicas=committed_by, gone={"a", "b"})


def test_lost_lane_not_covered_by_kept_header_loses_nothing() -> None:  # [1]
    log_state = running_state(LaneClosing(A1))
    assert list(close_or_resume_lanes(log_state, both_gone(), 0)) == [LaneClosed(A1, 0, ())]


def test_lost_lane_without_buddy_is_closed() -> None:
    log_state = state_of(LaneOpened(A1, None), LaneClosing(A1))
    assert list(close_or_resume_lanes(log_state, both_gone(), 0)) == [LaneClosed(A1, 0, ())]


def test_lost_rows_still_needed_by_pair_are_reported() -> None:  # [1] DataLost
    log_state = running_state(header(1, Span(A1, 1, 2)), header(2, Span(A1, 3, 4)), LaneClosing(A1))
    (closed,) = close_or_resume_lanes(log_state, both_gone(x0=1, x1=0), 0)
    assert closed == LaneClosed(A1, 4, ())
    log_state.apply(closed)
    (lost,) = report_lost_lanes(log_state, both_gone(x0=1, x1=0), 0)
    assert isinstance(lost, DataLost)
    assert lost.subject == "lane a/1"
    log_state.apply(lost)
    assert list(report_lost_lanes(log_state, both_gone(x0=1, x1=0), 0)) == []


def test_closed_lane_with_one_remaining_copy_is_not_lost() -> None:  # [1]
    log_state = running_state(header(1, Span(A1, 1, 2)), LaneClosing(A1), LaneClosed(A1, 2, ()))
    reports = make_reports(replicas={"x0": replica_report(0)}, gone={"a"})
    assert list(report_lost_lanes(log_state, reports, 0)) == []


def test_slower_replica_that_needs_lost_rows_lapses() -> None:  # [5]
    closing = (LaneClosing(A1), LaneClosed(A1, 2, ()))
    log_state = running_state(header(1, Span(A1, 1, 2)), header(2), *closing)
    assert list(report_lost_lanes(log_state, both_gone(x0=1, x1=0), 0)) == [Lapsed("x", 1, "x1")]


def test_joiner_without_state_does_not_lapse_for_lost_lane() -> None:  # [5]
    log_state = running_state(header(1, Span(A1, 1, 2)), Seated("x", 1, "n"), LaneClosed(A1, 2, ()))
    assert list(report_lost_lanes(log_state, both_gone(x0=1), 0)) == []


def test_closed_lane_of_living_owner_is_not_lost() -> None:  # [1]
    log_state = running_state(
        header(1, Span(A1, 1, 2)), BuddyChanged(A1, 2, None), LaneClosed(A1, 2, ())
    )
    assert list(report_lost_lanes(log_state, make_reports(), 0)) == []
    assert len(list(report_lost_lanes(log_state, make_reports(gone={"a"}), 0))) == 1


def test_rows_committed_by_all_replicas_are_not_lost() -> None:
    log_state = running_state(header(1, Span(A1, 1, 2)), LaneClosing(A1), LaneClosed(A1, 2, ()))
    assert list(report_lost_lanes(log_state, both_gone(x0=1, x1=1), 0)) == []


def test_lapsed_replica_is_ignored_for_lost_lane() -> None:
    closing = (LaneClosing(A1), LaneClosed(A1, 2, ()))
    log_state = running_state(header(1, Span(A1, 1, 2)), Lapsed("x", 1, "x1"), *closing)
    assert list(report_lost_lanes(log_state, both_gone(x0=1, x1=0), 0)) == []


def test_shadow_that_needs_lost_lane_loses_no_data() -> None:
    shadow = G1.replace(number=2, pairs=(Pair("y", "y"),))
    log_state = running_state(
        GenerationKnown(shadow, 2),
        *seated("y", "y0"),
        header(1, Span(A1, 1, 2)),
        LaneClosing(A1),
        LaneClosed(A1, 2, ()),
    )
    assert list(report_lost_lanes(log_state, both_gone(x0=1, x1=1), 0)) == [
        Vacated("y", 0, "y0", "lapsed")
    ]


def replaced_while_lane_is_lost() -> LogState:
    """Pair y takes over from x at epoch 2; the lost lane has rows of both epochs."""
    return running_state(
        GenerationKnown(G1.replace(number=2, pairs=(Pair("y", "y"),)), 2),
        *seated("y", "y0", "y1"),
        header(1, Span(A1, 1, 2)),
        header(2, Span(A1, 3, 4), generation=2),
        LaneClosing(A1),
        LaneClosed(A1, 4, ()),
    )


def test_lost_rows_that_a_replaced_pair_has_to_answer_for_are_reported() -> None:  # [1] DataLost
    reports = both_gone(x0=0, x1=0, y0=2, y1=2)
    (lost,) = report_lost_lanes(replaced_while_lane_is_lost(), reports, 0)
    assert lost == DataLost("lane a/1", "needed by x")


def test_replaced_pair_keeps_its_seats_until_its_last_epoch_is_delivered() -> None:
    log_state = replaced_while_lane_is_lost()
    reports = both_gone(x0=1, x1=0, y0=2, y1=2)
    assert list(report_lost_lanes(log_state, reports, 0)) == []
    reports.delivered = {0: 1}
    vacated = [Vacated("x", number, f"x{number}", "lapsed") for number in (0, 1)]
    assert list(report_lost_lanes(log_state, reports, 0)) == vacated


# --- owners of partitions ------------------------------------------------------------------------


def live(*splits: str, leaving: tuple[str, ...] = ()) -> Mapping[str, SplitReport]:
    return {split: split_report(leaving=split in leaving) for split in splits}


def test_partitions_are_assigned_to_lanes_with_fewest() -> None:
    log_state = state_of(LaneOpened(A1, "b"), LaneOpened(B1, "a"), PartitionOwned("q", A1))
    reports = make_reports(splits=live("a", "b"), known=intent(partitions=("p", "q", "r", "s")))
    assert list(assign_partitions(log_state, reports, 0)) == [
        PartitionOwned("p", B1),
        PartitionOwned("r", A1),
        PartitionOwned("s", B1),
    ]


def test_no_partition_is_assigned_without_lanes_or_intent() -> None:
    assert list(assign_partitions(LogState(), make_reports(known=intent()), 0)) == []
    log_state = state_of(LaneOpened(A1, "b"))
    assert list(assign_partitions(log_state, make_reports(splits=live("a")), 0)) == []


def test_partition_is_reassigned_only_once_headers_cover_its_old_lane() -> None:
    """[9] early-successor"""
    log_state = running_state(header(1, Span(A1, 1, 2)))
    assert not can_assign_partition(log_state, "p")
    log_state.apply(LaneClosing(A1))
    assert not can_assign_partition(log_state, "p")
    log_state.apply(LaneClosed(A1, 3, ((3, note()),)))
    assert not can_assign_partition(log_state, "p")
    log_state.apply(header(2, Span(A1, 3, 3)))
    assert can_assign_partition(log_state, "p")


@pytest.mark.parametrize(
    ("state", "free"),
    [(PartitionState.RELEASED, True), (PartitionState.ENDED, False), (PartitionState.IDLE, False)],
)
def test_released_partition_is_assignable_and_ended_one_is_not(
    state: PartitionState, free: bool
) -> None:  # [9]
    log_state = running_state(header(1, marks={"p": Mark(5, 5, state)}))
    assert can_assign_partition(log_state, "p") is free


def test_unowned_partition_or_one_of_forgotten_lane_is_assignable() -> None:
    assert can_assign_partition(LogState(), "p")
    log_state = state_of(PartitionOwned("p", C1))
    assert can_assign_partition(log_state, "p")
    log_state.apply(header(1, marks={"p": Mark(1, 1, PartitionState.ENDED)}))
    assert not can_assign_partition(log_state, "p")


def test_only_live_open_lanes_take_partitions() -> None:
    log_state = state_of(
        LaneOpened(A1, "b"),
        LaneOpened(B1, "a"),
        LaneOpened(C1, "a"),
        LaneOpened(LaneId("d", 1), "a"),
        PartitionOwned("p", A1),
        PartitionOwned("q", A1),
        PartitionOwned("r", C1),
        LaneClosing(C1),
    )
    log_state.apply(header(1, marks={"q": Mark(1, 1, PartitionState.ENDED)}))
    reports = make_reports(splits=live("a", "b", "c", leaving=("b",)))
    assert partitions_by_open_lane(log_state, reports) == {A1: 1}


def test_lane_with_two_more_partitions_releases_its_last() -> None:
    log_state = state_of(LaneOpened(A1, "b"), PartitionOwned("p", A1), PartitionOwned("q", A1))
    log_state.apply(LaneOpened(B1, "a"))
    reports = make_reports(splits=live("a", "b"))
    assert partitions_to_release(log_state, reports) == {"a": "q"}
    log_state.apply(PartitionOwned("r", B1))
    assert partitions_to_release(log_state, reports) == {}


def test_nothing_is_released_while_partition_changes_hands() -> None:  # [9]
    log_state = state_of(LaneOpened(A1, "b"), PartitionOwned("p", A1), PartitionOwned("q", A1))
    log_state.apply(LaneOpened(B1, "a"))
    log_state.apply(header(1, marks={"q": Mark(1, 1, PartitionState.RELEASED)}))
    assert partitions_to_release(log_state, make_reports(splits=live("a", "b"))) == {}


def test_ended_partitions_are_not_released() -> None:
    log_state = state_of(LaneOpened(A1, "b"), LaneOpened(B1, "a"))
    for partition in ("p", "q", "r"):
        log_state.apply(PartitionOwned(partition, A1))
    log_state.apply(header(1, marks={"r": Mark(1, 1, PartitionState.ENDED)}))
    reports = make_reports(splits=live("a", "b"))
    assert partitions_to_release(log_state, reports) == {"a": "q"}
    assert partitions_to_release(LogState(), make_reports()) == {}


# --- lost partitions ------------------------------------------------------------------------------


def losing(lane: LaneId, *, is_live: bool = True) -> SplitReport:
    return split_report(lane_report(lane, live=is_live), lost=("p",))


def test_rows_forgotten_by_source_are_reported_once() -> None:  # DataLost
    log_state = running_state()
    reports = make_reports(splits={"a": losing(A1)})
    (found,) = report_lost_partitions(log_state, reports, 0)
    assert isinstance(found, DataLost)
    assert found.subject == "p"
    log_state.apply(found)
    assert list(report_lost_partitions(log_state, reports, 0)) == []


def test_only_current_owner_may_report_lost_partition() -> None:
    log_state = running_state()
    assert list(report_lost_partitions(log_state, make_reports(splits={"b": losing(B1)}), 0)) == []
    assert list(report_lost_partitions(log_state, make_reports(splits={"a": losing(A2)}), 0)) == []
    assert (
        list(
            report_lost_partitions(
                log_state, make_reports(splits={"a": losing(A1, is_live=False)}), 0
            )
        )
        == []
    )
    assert list(report_lost_partitions(LogState(), make_reports(splits={"a": losing(A1)}), 0)) == []


# --- what would be lost with one more split ---------------------------------------------------


def closed(last: int = 3, *more: Entry) -> LogState:
    return running_state(LaneClosing(A1), LaneClosed(A1, last, ((last, note(1)),)), *more)


def test_closed_lane_is_at_risk_while_one_copy_is_leaving_or_gone() -> None:  # [8]
    here = {"a": split_report(), "b": split_report()}
    assert not has_rows_at_risk(closed(), make_reports(splits=here))
    leaving = {**here, "a": split_report(leaving=True)}
    assert has_rows_at_risk(closed(), make_reports(splits=leaving))
    assert has_rows_at_risk(closed(), make_reports(splits=here, gone={"b"}))


def test_forgotten_open_or_lost_lane_is_not_at_risk() -> None:
    gone = make_reports(gone={"b"})
    assert not has_rows_at_risk(closed(0), gone)
    assert not has_rows_at_risk(running_state(), gone)
    assert not has_rows_at_risk(closed(3, DataLost("lane a/1", "")), gone)
