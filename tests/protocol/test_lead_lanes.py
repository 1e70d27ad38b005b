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
    book_of,
    header,
    hearsay,
    intent,
    lane_report,
    note,
    replica_report,
    running_book,
    seated,
    split_report,
)

from tandem_core.contract.intent import Pair
from tandem_runtime.protocol.lead.lane_rules import (
    buddy_changes,
    closings,
    lost_lanes,
    lost_partitions,
    may_get_owner,
    open_lanes,
    openings,
    ownerships,
    releases,
    rows_at_risk,
    settlements,
)
from tandem_runtime.protocol.lead.peer_reports import Heard, Hearsay
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
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.messages.peers import SealedCopy, SplitReport
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import LaneId, Mark, Span

LATE = S.silence
"""When everybody who spoke at 0 has been silent for long."""


def says(hear: Hearsay, split: str, report: SplitReport, at: int = LATE) -> None:
    hear.hear_lanes(hear.splits.get(split), report)
    hear.splits[split] = Heard(1, at, report)


# --- opening ----------------------------------------------------------------------------------


def test_a_lane_asked_for_is_opened_with_its_buddy() -> None:
    hear = hearsay(splits={"a": split_report(opening=(A1, "b"))})
    assert list(openings(Book(), hear, 0)) == [LaneOpened(A1, "b")]


def test_a_buddy_that_is_gone_is_not_recorded() -> None:  # [8]
    hear = hearsay(splits={"a": split_report(opening=(A1, "b"))}, gone={"b"})
    assert list(openings(Book(), hear, 0)) == [LaneOpened(A1, None)]


@pytest.mark.parametrize("number", [1, 2])
def test_a_number_used_before_opens_nothing(number: int) -> None:
    book = book_of(LaneOpened(A2, "b"), LaneClosed(A2, 0, ()))
    hear = hearsay(splits={"a": split_report(opening=(LaneId("a", number), "b"))})
    assert list(openings(book, hear, 0)) == []


def test_splits_that_leave_are_gone_or_do_not_ask_get_no_lane() -> None:
    hear = hearsay(
        splits={
            "a": split_report(opening=(A1, "b"), leaving=True),
            "b": split_report(opening=(B1, "a")),
            "c": split_report(),
        },
        gone={"b"},
    )
    assert list(openings(Book(), hear, 0)) == []


# --- second copies ------------------------------------------------------------------------------


def asking(view: int, buddy: str | None, *, live: bool = True) -> SplitReport:
    return split_report(lane_report(A1, live=live, ask=(view, buddy)))


def test_only_the_owner_changes_its_lane_s_buddy() -> None:  # [10] buddy-by-operator
    book = running_book()
    assert list(buddy_changes(book, hearsay(splits={"a": asking(2, "c")}), 0)) == [
        BuddyChanged(A1, 2, "c")
    ]
    quiet = hearsay(splits={"a": split_report(lane_report(A1))})
    assert list(buddy_changes(book, quiet, 0)) == []


def test_a_change_that_is_recorded_already_is_not_recorded_again() -> None:  # [11]
    hear = hearsay(splits={"a": asking(1, "c")})
    assert list(buddy_changes(running_book(), hear, 0)) == []


def test_buddy_changes_are_refused_while_closing_or_of_an_ended_or_lost_owner() -> None:
    hear = hearsay(splits={"a": asking(2, None)})
    assert list(buddy_changes(running_book(LaneClosing(A1)), hear, 0)) == []
    ended = hearsay(splits={"a": asking(2, None, live=False)})
    assert list(buddy_changes(running_book(), ended, 0)) == []
    gone = hearsay(splits={"a": asking(2, None)}, gone={"a"})
    assert list(buddy_changes(running_book(), gone, 0)) == []


# --- closing ----------------------------------------------------------------------------------


def test_a_lane_whose_owner_speaks_stays_open() -> None:
    hear = hearsay(splits={"a": split_report(lane_report(A1))})
    assert list(closings(running_book(), hear, LATE - 1)) == []


def test_silence_of_the_owner_makes_the_lead_try_to_close() -> None:  # (f)
    hear = hearsay(splits={"a": split_report(lane_report(A1))})
    assert list(closings(running_book(), hear, LATE)) == [LaneClosing(A1)]
    assert list(closings(running_book(LaneClosing(A1)), hear, LATE)) == []


def test_a_lane_is_closing_when_its_owner_is_gone_or_says_so() -> None:
    gone = hearsay(splits={"a": split_report(lane_report(A1))}, gone={"a"})
    assert list(closings(running_book(), gone, 0)) == [LaneClosing(A1)]
    ended = hearsay(splits={"a": split_report(lane_report(A1, live=False))})
    assert list(closings(running_book(), ended, 0)) == [LaneClosing(A1)]


SEALED = SealedCopy(A1, 1, 3, ((3, note(5)),))


def test_a_lane_ends_where_its_sealed_buddy_says() -> None:  # close-at-report [1]
    book = running_book(LaneClosing(A1))
    owner = split_report(lane_report(A1, through=9, live=False))
    hear = hearsay(splits={"a": owner, "b": split_report(sealed=(SEALED,))})
    assert list(settlements(book, hear, 0)) == [LaneClosed(A1, 3, ((3, note(5)),))]


def test_a_seal_of_another_buddy_record_or_of_a_stranger_does_not_count() -> None:
    book = running_book(BuddyChanged(A1, 2, "b"), LaneClosing(A1))
    old = hearsay(splits={"b": split_report(sealed=(SEALED,))})
    assert list(settlements(book, old, 0)) == []
    stranger = hearsay(splits={"c": split_report(sealed=(SEALED.replace(view=2),))})
    assert list(settlements(book, stranger, 0)) == []
    other_lane = hearsay(splits={"b": split_report(sealed=(SEALED.replace(lane=A2, view=2),))})
    assert list(settlements(book, other_lane, 0)) == []


def test_an_open_lane_is_not_settled() -> None:
    hear = hearsay(splits={"b": split_report(sealed=(SEALED,))})
    assert list(settlements(running_book(), hear, 0)) == []


def test_while_the_buddy_may_answer_the_lead_waits() -> None:
    book = running_book(LaneClosing(A1))
    hear = hearsay(splits={"a": split_report(lane_report(A1)), "b": split_report()})
    assert list(settlements(book, hear, LATE - 1)) == []


def test_closing_is_cancelled_if_the_buddy_is_silent_and_the_owner_answers() -> None:
    book = running_book(LaneClosing(A1))
    hear = hearsay(splits={"b": split_report()})
    says(hear, "a", split_report(lane_report(A1, through=4)))
    assert list(settlements(book, hear, LATE)) == [LaneResumed(A1)]


def test_an_ended_lane_whose_buddy_is_silent_ends_where_its_owner_says() -> None:
    book = running_book(header(1, Span(A1, 1, 2)), LaneClosing(A1))
    notes = {2: note(1), 3: note(2), 4: note(3)}
    hear = hearsay()
    says(hear, "a", split_report(lane_report(A1, notes, live=False)))
    closed = LaneClosed(A1, 4, ((3, note(2)), (4, note(3))), alone=True)
    assert list(settlements(book, hear, LATE)) == [closed]


def test_without_a_buddy_the_owner_decides() -> None:
    book = book_of(LaneOpened(A1, None), LaneClosing(A1))
    hear = hearsay(splits={"a": split_report(lane_report(A1))})
    assert list(settlements(book, hear, 0)) == [LaneResumed(A1)]


def test_when_nobody_answers_the_lead_waits() -> None:  # (f)
    book = running_book(LaneClosing(A1))
    hear = hearsay(splits={"a": split_report(lane_report(A1)), "b": split_report()})
    assert list(settlements(book, hear, LATE)) == []
    assert list(settlements(book, hearsay(), LATE)) == []


def test_a_lane_whose_owner_is_gone_waits_for_its_silent_buddy() -> None:  # [1]
    book = running_book(LaneClosing(A1))
    assert list(settlements(book, hearsay(gone={"a"}), LATE)) == []


def test_a_gone_buddy_is_not_waited_for() -> None:
    book = running_book(LaneClosing(A1))
    hear = hearsay(splits={"a": split_report(lane_report(A1))}, gone={"b"})
    assert list(settlements(book, hear, 0)) == [LaneResumed(A1)]


# --- both copies gone --------------------------------------------------------------------------


def both_gone(**committed: int) -> Hearsay:
    reports = {volume: replica_report(epoch) for volume, epoch in committed.items()}
    return hearsay(replicas=reports, gone={"a", "b"})


def test_a_lost_lane_that_no_kept_header_covers_loses_nothing() -> None:  # [1]
    book = running_book(LaneClosing(A1))
    assert list(settlements(book, both_gone(), 0)) == [LaneClosed(A1, 0, ())]


def test_a_lost_lane_without_any_buddy() -> None:
    book = book_of(LaneOpened(A1, None), LaneClosing(A1))
    assert list(settlements(book, both_gone(), 0)) == [LaneClosed(A1, 0, ())]


def test_rows_that_a_pair_still_needs_are_said_to_be_lost() -> None:  # [1] DataLost
    book = running_book(header(1, Span(A1, 1, 2)), header(2, Span(A1, 3, 4)), LaneClosing(A1))
    (closed,) = settlements(book, both_gone(x0=1, x1=0), 0)
    assert closed == LaneClosed(A1, 4, ())
    book.apply(closed)
    (lost,) = lost_lanes(book, both_gone(x0=1, x1=0), 0)
    assert isinstance(lost, DataLost)
    assert lost.subject == "lane a/1"
    book.apply(lost)
    assert list(lost_lanes(book, both_gone(x0=1, x1=0), 0)) == []


def test_a_closed_lane_of_which_one_copy_is_left_is_not_lost() -> None:  # [1]
    book = running_book(header(1, Span(A1, 1, 2)), LaneClosing(A1), LaneClosed(A1, 2, ()))
    hear = hearsay(replicas={"x0": replica_report(0)}, gone={"a"})
    assert list(lost_lanes(book, hear, 0)) == []


def test_rows_that_only_the_slower_replica_needs_make_it_lapse() -> None:  # [5]
    closing = (LaneClosing(A1), LaneClosed(A1, 2, ()))
    book = running_book(header(1, Span(A1, 1, 2)), header(2), *closing)
    assert list(lost_lanes(book, both_gone(x0=1, x1=0), 0)) == [Lapsed("x", 1, "x1")]


def test_a_joiner_without_state_need_not_lapse_for_a_lost_lane() -> None:  # [5]
    book = running_book(header(1, Span(A1, 1, 2)), Seated("x", 1, "n"), LaneClosed(A1, 2, ()))
    assert list(lost_lanes(book, both_gone(x0=1), 0)) == []


def test_a_closed_lane_whose_owner_lives_is_not_lost() -> None:  # [1]
    book = running_book(header(1, Span(A1, 1, 2)), BuddyChanged(A1, 2, None), LaneClosed(A1, 2, ()))
    assert list(lost_lanes(book, hearsay(), 0)) == []
    assert len(list(lost_lanes(book, hearsay(gone={"a"}), 0))) == 1


def test_rows_that_everybody_has_are_not_missed() -> None:
    book = running_book(header(1, Span(A1, 1, 2)), LaneClosing(A1), LaneClosed(A1, 2, ()))
    assert list(lost_lanes(book, both_gone(x0=1, x1=1), 0)) == []


def test_the_lapsed_are_not_asked_about_a_lost_lane_again() -> None:
    closing = (LaneClosing(A1), LaneClosed(A1, 2, ()))
    book = running_book(header(1, Span(A1, 1, 2)), Lapsed("x", 1, "x1"), *closing)
    assert list(lost_lanes(book, both_gone(x0=1, x1=0), 0)) == []


def test_a_shadow_that_needs_a_lost_lane_loses_no_data() -> None:
    shadow = G1.replace(number=2, pairs=(Pair("y", "y"),))
    book = running_book(
        GenerationKnown(shadow, 2),
        *seated("y", "y0"),
        header(1, Span(A1, 1, 2)),
        LaneClosing(A1),
        LaneClosed(A1, 2, ()),
    )
    assert list(lost_lanes(book, both_gone(x0=1, x1=1), 0)) == [Vacated("y", 0, "y0", "lapsed")]


# --- owners of partitions ------------------------------------------------------------------------


def live(*splits: str, leaving: tuple[str, ...] = ()) -> Mapping[str, SplitReport]:
    return {split: split_report(leaving=split in leaving) for split in splits}


def test_partitions_go_to_the_lanes_with_the_fewest() -> None:
    book = book_of(LaneOpened(A1, "b"), LaneOpened(B1, "a"), PartitionOwned("q", A1))
    hear = hearsay(splits=live("a", "b"), known=intent(partitions=("p", "q", "r", "s")))
    assert list(ownerships(book, hear, 0)) == [
        PartitionOwned("p", B1),
        PartitionOwned("r", A1),
        PartitionOwned("s", B1),
    ]


def test_without_lanes_or_intent_nothing_is_owned() -> None:
    assert list(ownerships(Book(), hearsay(known=intent()), 0)) == []
    book = book_of(LaneOpened(A1, "b"))
    assert list(ownerships(book, hearsay(splits=live("a")), 0)) == []


def test_a_partition_is_taken_over_only_once_headers_cover_its_old_lane() -> None:
    """[9] early-successor"""
    book = running_book(header(1, Span(A1, 1, 2)))
    assert not may_get_owner(book, "p")
    book.apply(LaneClosing(A1))
    assert not may_get_owner(book, "p")
    book.apply(LaneClosed(A1, 3, ((3, note()),)))
    assert not may_get_owner(book, "p")
    book.apply(header(2, Span(A1, 3, 3)))
    assert may_get_owner(book, "p")


@pytest.mark.parametrize(
    ("state", "free"),
    [(PartitionState.RELEASED, True), (PartitionState.ENDED, False), (PartitionState.IDLE, False)],
)
def test_a_released_partition_is_free_an_ended_one_never(
    state: PartitionState, free: bool
) -> None:  # [9]
    book = running_book(header(1, marks={"p": Mark(5, 5, state)}))
    assert may_get_owner(book, "p") is free


def test_a_partition_that_nobody_owns_or_whose_lane_is_forgotten_is_free() -> None:
    assert may_get_owner(Book(), "p")
    book = book_of(PartitionOwned("p", C1))
    assert may_get_owner(book, "p")
    book.apply(header(1, marks={"p": Mark(1, 1, PartitionState.ENDED)}))
    assert not may_get_owner(book, "p")


def test_lanes_that_can_take_partitions() -> None:
    book = book_of(
        LaneOpened(A1, "b"),
        LaneOpened(B1, "a"),
        LaneOpened(C1, "a"),
        LaneOpened(LaneId("d", 1), "a"),
        PartitionOwned("p", A1),
        PartitionOwned("q", A1),
        PartitionOwned("r", C1),
        LaneClosing(C1),
    )
    book.apply(header(1, marks={"q": Mark(1, 1, PartitionState.ENDED)}))
    hear = hearsay(splits=live("a", "b", "c", leaving=("b",)))
    assert open_lanes(book, hear) == {A1: 1}


def test_the_lane_with_two_more_lets_its_last_partition_go() -> None:
    book = book_of(LaneOpened(A1, "b"), PartitionOwned("p", A1), PartitionOwned("q", A1))
    book.apply(LaneOpened(B1, "a"))
    hear = hearsay(splits=live("a", "b"))
    assert releases(book, hear) == {"a": "q"}
    book.apply(PartitionOwned("r", B1))
    assert releases(book, hear) == {}


def test_nothing_is_released_while_a_partition_changes_hands() -> None:  # [9]
    book = book_of(LaneOpened(A1, "b"), PartitionOwned("p", A1), PartitionOwned("q", A1))
    book.apply(LaneOpened(B1, "a"))
    book.apply(header(1, marks={"q": Mark(1, 1, PartitionState.RELEASED)}))
    assert releases(book, hearsay(splits=live("a", "b"))) == {}


def test_ended_partitions_are_not_released() -> None:
    book = book_of(LaneOpened(A1, "b"), LaneOpened(B1, "a"))
    for partition in ("p", "q", "r"):
        book.apply(PartitionOwned(partition, A1))
    book.apply(header(1, marks={"r": Mark(1, 1, PartitionState.ENDED)}))
    hear = hearsay(splits=live("a", "b"))
    assert releases(book, hear) == {"a": "q"}
    assert releases(Book(), hearsay()) == {}


# --- lost partitions ------------------------------------------------------------------------------


def losing(lane: LaneId, *, is_live: bool = True) -> SplitReport:
    return split_report(lane_report(lane, live=is_live), lost=("p",))


def test_a_source_that_forgot_rows_is_said_once() -> None:  # DataLost
    book = running_book()
    hear = hearsay(splits={"a": losing(A1)})
    (found,) = lost_partitions(book, hear, 0)
    assert isinstance(found, DataLost)
    assert found.subject == "p"
    book.apply(found)
    assert list(lost_partitions(book, hear, 0)) == []


def test_only_the_present_owner_may_say_it() -> None:
    book = running_book()
    assert list(lost_partitions(book, hearsay(splits={"b": losing(B1)}), 0)) == []
    assert list(lost_partitions(book, hearsay(splits={"a": losing(A2)}), 0)) == []
    assert list(lost_partitions(book, hearsay(splits={"a": losing(A1, is_live=False)}), 0)) == []
    assert list(lost_partitions(Book(), hearsay(splits={"a": losing(A1)}), 0)) == []


# --- what would be lost with one more split ---------------------------------------------------


def closed(last: int = 3, *more: Entry) -> Book:
    return running_book(LaneClosing(A1), LaneClosed(A1, last, ((last, note(1)),)), *more)


def test_a_closed_lane_is_at_risk_while_one_of_its_copies_leaves_or_is_gone() -> None:  # [8]
    here = {"a": split_report(), "b": split_report()}
    assert not rows_at_risk(closed(), hearsay(splits=here))
    leaving = {**here, "a": split_report(leaving=True)}
    assert rows_at_risk(closed(), hearsay(splits=leaving))
    assert rows_at_risk(closed(), hearsay(splits=here, gone={"b"}))


def test_what_is_forgotten_open_or_lost_anyway_is_not_at_risk() -> None:
    gone = hearsay(gone={"b"})
    assert not rows_at_risk(closed(0), gone)
    assert not rows_at_risk(running_book(), gone)
    assert not rows_at_risk(closed(3, DataLost("lane a/1", "")), gone)
