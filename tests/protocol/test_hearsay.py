"""What a lead has heard: soft, cumulative, of the newest incarnation."""

from tests.protocol.builders import (
    A1,
    A2,
    B1,
    G1,
    book_of,
    header,
    hearsay,
    lane_report,
    merge_report,
    note,
    peer,
    replica_report,
    running_book,
    seated,
    split_report,
)

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.peer_reports import (
    Heard,
    brings_news,
    committed,
    delivered_through,
    faster,
    newer,
    slot_delivered,
)
from tandem_runtime.protocol.log.entries import GenerationKnown, Seated, SlotEnded, SlotOpened
from tandem_runtime.protocol.types import Seat, Span


def test_silence_begins_after_the_last_word_of_any_kind() -> None:  # (f)
    hear = hearsay(
        now=100,
        replicas={"r": replica_report()},
        splits={"s": split_report()},
        merges={"m": merge_report()},
    )
    for volume in ("r", "s", "m", "never heard"):
        assert hear.last_word(volume) == 100
        assert not hear.silent(volume, 1599)
        assert hear.silent(volume, 1600)


def test_who_never_spoke_is_silent_from_the_beginning_of_the_term() -> None:  # (f)
    hear = hearsay(now=50)
    hear.replicas["r"] = Heard(1, 900, replica_report())
    assert hear.last_word("r") == 900
    assert hear.last_word("other") == 50


def test_notes_go_once_covered_or_their_lane_is_over() -> None:  # [12]
    book = running_book(header(1, Span(A1, 1, 2)))
    hear = hearsay(notes={A1: {1: note(), 2: note(), 3: note()}, B1: {1: note()}})
    hear.forget_notes(book)
    assert hear.notes == {A1: {3: note()}}


def test_reports_of_volumes_gone_for_good_go() -> None:  # [12]
    hear = hearsay(
        splits={"a": split_report(), "b": split_report()},
        replicas={"x0": replica_report()},
        merges={"m": merge_report()},
        gone={"a", "x0"},
    )
    hear.forget_gone()
    assert (set(hear.splits), set(hear.replicas), set(hear.merges)) == ({"b"}, set(), {"m"})


def test_a_newer_incarnation_or_number_replaces() -> None:  # [11] shared-name
    heard = Heard(2, 0, replica_report(sequence=5))
    assert newer(None, peer("r", 1), replica_report())
    assert newer(heard, peer("r", 2), replica_report(sequence=6))
    assert newer(heard, peer("r", 3), replica_report(sequence=1))
    assert not newer(heard, peer("r", 2), replica_report(sequence=5))
    assert not newer(heard, peer("r", 2), replica_report(sequence=4))
    assert not newer(heard, peer("r", 1), replica_report(sequence=9))


def test_news_is_what_differs_besides_the_number() -> None:
    heard = Heard(1, 0, replica_report(3, sequence=1))
    assert brings_news(None, replica_report(3))
    assert not brings_news(heard, replica_report(3, sequence=2))
    assert brings_news(heard, replica_report(4, sequence=2))


def test_only_the_volume_on_the_seat_says_what_it_has_committed() -> None:  # [5] shared-name
    hear = hearsay(replicas={"old": replica_report(9), "new": replica_report(5)})
    assert committed(Seat("new", 2, SeatState.VERIFIED), hear) == 5
    assert committed(Seat("other", 2, SeatState.VERIFIED), hear) == 2
    assert committed(Seat("new", 7, SeatState.VERIFIED), hear) == 7


def test_an_unverified_holder_has_committed_nothing_beyond_its_hold() -> None:  # [5]
    hear = hearsay(replicas={"new": replica_report(5)})
    assert committed(Seat("new", 2), hear) == 2


def test_delivered_is_what_every_slot_has_or_the_log_says() -> None:
    book = running_book(SlotOpened(slot=1, first=1, intent_version=1))
    hear = hearsay()
    hear.delivered = {0: 4}
    assert delivered_through(book, hear) == 0
    hear.delivered = {0: 4, 1: 3}
    assert delivered_through(book, hear) == 3
    book.apply(header(1, delivered=5))
    assert delivered_through(book, hear) == 5


def test_a_slot_that_begins_late_owes_nothing_before_its_first_epoch() -> None:
    book = running_book(SlotOpened(slot=1, first=4, intent_version=1))
    hear = hearsay(delivered=7)
    assert delivered_through(book, hear) == 3
    assert slot_delivered(book, hear, 1) == 3


def test_an_ended_slot_counts_through_its_last_epoch() -> None:
    ended = SlotEnded(slot=1, last=4, intent_version=2)
    book = running_book(SlotOpened(slot=1, first=1, intent_version=1), ended)
    hear = hearsay(delivered=7)
    hear.delivered[1] = 3
    assert delivered_through(book, hear) == 3
    hear.delivered[1] = 4
    assert delivered_through(book, hear) == 7
    book.apply(header(5, delivered=6))
    assert (slot_delivered(book, hear, 1), slot_delivered(book, hear, 2)) == (4, 0)


def test_slots_that_the_log_does_not_know_do_not_count() -> None:
    hear = hearsay(delivered=2)
    hear.delivered[1] = 1
    assert delivered_through(book_of(), hear) == 2


def test_the_faster_replica_counts_full_members_only() -> None:
    book = running_book()
    hear = hearsay(replicas={"x0": replica_report(3), "x1": replica_report(5)})
    assert faster(book, hear, "x") == 5
    alone = book_of(GenerationKnown(G1, 1), *seated("x", "x0"), Seated("x", 1, "x1"))
    alone.seats["x"][1] = Seat("x1", 9)
    assert faster(alone, hear, "x") == 3
    assert faster(book, hear, "no such pair") == 0


def test_what_an_owner_last_said_of_its_lanes_counts() -> None:
    hear = hearsay()
    first = split_report(lane_report(A1, through=3), lane_report(A2))
    hear.hear_lanes(None, first)
    assert set(hear.lanes) == {A1, A2}
    hear.hear_lanes(None, split_report(lane_report(B1)))
    hear.hear_lanes(Heard(1, 0, first), split_report(lane_report(A1, through=4)))
    assert {lane: report.through for lane, report in hear.lanes.items()} == {A1: 4, B1: 0}
    hear.gone = {"b"}
    hear.forget_gone()
    assert set(hear.lanes) == {A1}
