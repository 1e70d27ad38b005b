"""The replicated log: who is required, what is published, what a copy takes."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.protocol.builders import PROPERTY

from tandem_runtime.protocol.log.replicated_log import Fence, LogCopy, OwnedLog
from tandem_runtime.protocol.states import Bond


def alone(end: int = 0, term: int = 3) -> OwnedLog:
    log = OwnedLog(0, end, term, now=0)
    assert log.bond is Bond.ALONE
    return log


def joining(end: int = 2) -> OwnedLog:
    log = alone(end)
    log.fill("b", 1)
    assert log.copied("b", log.fence, end, 2)
    assert log.bond is Bond.JOINING
    return log


def paired(end: int = 2) -> OwnedLog:
    log = joining(end)
    assert log.recorded(log.wanted, "b")
    assert log.bond is Bond.PAIRED
    return log


def leaving(end: int = 2) -> OwnedLog:
    log = paired(end)
    log.drop_follower()
    assert log.bond is Bond.LEAVING
    return log


def test_new_log_starts_at_given_end_with_fill_zero_of_its_term() -> None:
    log = OwnedLog(3, 7, 5, now=9)
    assert (log.base, log.end, log.published, log.fence) == (3, 7, 7, (5, 0))
    assert (log.heard, log.acked, log.view, log.wanted, log.follower) == (9, 0, 0, 0, None)
    assert log.asking is None


def test_append_numbers_entries_consecutively() -> None:
    log = alone(4)
    assert [log.append(), log.append()] == [5, 6]
    assert log.end == 6


def test_log_without_follower_publishes_at_once() -> None:  # (b)
    log = alone()
    log.append()
    assert log.published == 1


def test_publication_waits_for_every_required_member() -> None:  # (d) [8]
    log = paired()
    log.append()
    assert log.published == 2
    assert log.copied("b", log.fence, 3, 5)
    assert log.published == 3


def test_filling_follower_is_not_waited_for() -> None:  # (c)
    log = alone(2)
    log.fill("b", 1)
    log.append()
    assert log.published == 3
    assert log.asking is None


def test_filled_follower_is_proposed_only_once_it_has_every_entry() -> None:  # (c) name-before-fill
    log = alone(2)
    log.fill("b", 1)
    assert log.copied("b", log.fence, 1, 2)
    assert (log.bond, log.asking) == (Bond.FILLING, None)
    assert log.copied("b", log.fence, 2, 3)
    assert (log.bond, log.asking) == (Bond.JOINING, (1, "b"))


def test_empty_log_is_filled_by_first_acknowledgement() -> None:  # (c)
    log = alone(0)
    log.fill("b", 1)
    assert log.copied("b", log.fence, 0, 2)
    assert log.bond is Bond.JOINING


def test_joining_follower_is_required_for_publication() -> None:  # (c)
    log = joining()
    log.append()
    assert (log.end, log.published) == (3, 2)


def test_leaving_follower_stays_required_until_recorded() -> None:  # (b) (d)
    log = leaving()
    log.append()
    assert log.published == 2
    assert log.asking == (2, None)
    assert log.recorded(2, None)
    assert (log.bond, log.follower, log.published) == (Bond.ALONE, None, 3)
    assert log.asking is None


def test_acknowledgements_of_strangers_and_earlier_fills_are_ignored() -> None:  # (d)
    log = paired()
    log.append()
    old: Fence = (log.fence[0], log.fence[1] - 1)
    assert not log.copied("c", log.fence, 3, 50)
    assert not log.copied("b", old, 3, 50)
    assert not log.copied("b", (log.fence[0] - 1, log.fence[1]), 3, 50)
    assert (log.published, log.heard) == (2, 2)


def test_acknowledgement_beyond_end_is_ignored() -> None:  # (d)
    log = paired(2)
    assert not log.copied("b", log.fence, 3, 7)
    assert (log.acked, log.heard) == (2, 7)


def test_repeated_or_late_acknowledgement_counts_only_as_heartbeat() -> None:  # [11]
    log = paired(2)
    assert not log.copied("b", log.fence, 2, 8)
    assert not log.copied("b", log.fence, 1, 9)
    assert (log.acked, log.heard, log.bond) == (2, 9, Bond.PAIRED)


def test_each_fill_has_its_own_fence() -> None:  # (d)
    log = alone(term=3)
    log.fill("b", 1)
    assert log.fence == (3, 1)
    log.drop_follower()
    log.fill("c", 4)
    assert (log.fence, log.follower, log.heard) == ((3, 2), "c", 4)


def test_fill_begins_at_first_kept_entry() -> None:
    log = OwnedLog(2, 5, 1, 0)
    log.fill("b", 1)
    assert list(log.next_to_copy(10)) == [3, 4, 5]


def test_filling_follower_is_dropped_at_once() -> None:  # (b)
    log = alone(2)
    log.fill("b", 1)
    log.drop_follower()
    assert (log.bond, log.follower) == (Bond.ALONE, None)


def test_drop_numbers_change_after_last_proposed_or_recorded() -> None:  # (b)
    log = joining()
    asked = log.wanted
    log.drop_follower()
    assert log.asking == (asked + 1, None)
    other = paired()
    other.view = 9
    other.drop_follower()
    assert other.asking == (10, None)


def test_drop_without_follower_or_while_leaving_changes_nothing() -> None:
    log = alone()
    log.drop_follower()
    assert (log.bond, log.wanted) == (Bond.ALONE, 0)
    other = leaving()
    wanted = other.wanted
    other.drop_follower()
    assert (other.bond, other.wanted) == (Bond.LEAVING, wanted)


def test_joining_numbers_change_after_unrequested_record() -> None:
    log = alone(1)
    log.view = 6
    log.fill("b", 0)
    log.copied("b", log.fence, 1, 1)
    assert log.asking == (7, "b")


def test_old_record_changes_nothing() -> None:  # [11]
    log = joining()
    log.view = 4
    assert not log.recorded(4, "b")
    assert not log.recorded(3, "b")
    assert (log.bond, log.view) == (Bond.JOINING, 4)


def test_record_of_another_buddy_does_not_pair() -> None:  # (e)
    log = joining()
    assert not log.recorded(5, "c")
    assert (log.bond, log.view) == (Bond.JOINING, 5)
    assert not log.recorded(6, None)
    assert log.bond is Bond.JOINING


def test_late_record_of_leaving_follower_keeps_it_leaving() -> None:  # (b)
    log = joining()
    log.drop_follower()
    assert not log.recorded(1, "b")
    assert (log.bond, log.published) == (Bond.LEAVING, 2)


def test_repeated_record_leaves_log_paired() -> None:
    log = paired()
    assert not log.recorded(log.view + 1, "b")
    assert log.bond is Bond.PAIRED


def test_log_can_begin_paired_with_buddy() -> None:
    log = alone()
    log.begin_with("b", 5)
    assert (log.bond, log.follower, log.view, log.wanted, log.heard) == (
        Bond.PAIRED,
        "b",
        1,
        1,
        5,
    )
    other = alone()
    other.begin_with(None, 5)
    assert (other.bond, other.follower, other.view) == (Bond.ALONE, None, 1)


def test_entries_to_copy_are_bounded_and_lowest_first() -> None:  # [12]
    log = paired(2)
    for _ in range(5):
        log.append()
    assert list(log.next_to_copy(3)) == [3, 4, 5]
    assert list(log.next_to_copy(9)) == [3, 4, 5, 6, 7]
    assert list(alone(3).next_to_copy(9)) == []


def test_copy_accepts_entries_in_order_once() -> None:  # [3]
    copy = LogCopy((1, 1), 2, 2)
    assert not copy.accept(2)
    assert not copy.accept(4)
    assert copy.accept(3)
    assert not copy.accept(3)
    assert copy.through == 3


def test_copy_admits_only_its_own_fill_and_nothing_once_sealed() -> None:  # (d)
    copy = LogCopy((2, 1), 0, 0)
    assert copy.admits((2, 1))
    assert not copy.admits((2, 2))
    assert not copy.admits((1, 1))
    assert not LogCopy((2, 1), 0, 0, sealed=True).admits((2, 1))
    assert not copy.sealed


def test_only_higher_fence_replaces_copy() -> None:  # (a)
    copy = LogCopy((2, 1), 0, 0)
    assert copy.replaced_by((2, 2))
    assert copy.replaced_by((3, 0))
    assert not copy.replaced_by((2, 1))
    assert not copy.replaced_by((1, 9))


class OwnerAndCopies(RuleBasedStateMachine):
    """An owner, two possible buddies and an authority; messages late, lost, repeated.

    Published entries are on the volume of whoever the authority may have recorded, always (d).
    """

    def __init__(self) -> None:
        super().__init__()
        self.log = OwnedLog(0, 0, 1, 0)
        self.copies: dict[str, LogCopy] = {}
        self.record: tuple[int, str | None] = (0, None)
        self.entries: list[tuple[str, Fence, int]] = []
        self.acks: list[tuple[str, Fence, int]] = []
        self.asks: list[tuple[int, str | None]] = []
        self.records: list[tuple[int, str | None]] = []
        self.published = 0

    @rule()
    def append(self) -> None:
        self.log.append()

    @precondition(lambda self: self.log.bond is Bond.ALONE)
    @rule(who=st.sampled_from("bc"))
    def fill(self, who: str) -> None:
        self.log.fill(who, 0)

    @rule()
    def drop(self) -> None:
        self.log.drop_follower()

    @rule()
    def send(self) -> None:
        for number in self.log.next_to_copy(2):
            self.entries.append((self.log.follower or "", self.log.fence, number))

    @rule()
    def ask(self) -> None:
        if self.log.asking is not None:
            self.asks.append(self.log.asking)

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), repeat=st.booleans())
    def entry_arrives(self, data: st.DataObject, repeat: bool) -> None:
        at = data.draw(st.integers(0, len(self.entries) - 1))
        who, fence, number = self.entries[at]
        if not repeat:
            del self.entries[at]
        copy = self.copies.get(who)
        if copy is None or copy.replaced_by(fence):
            copy = self.copies[who] = LogCopy(fence, 0, 0)
        if copy.admits(fence):
            copy.accept(number)
            self.acks.append((who, fence, copy.through))

    @precondition(lambda self: self.acks)
    @rule(data=st.data(), repeat=st.booleans())
    def ack_arrives(self, data: st.DataObject, repeat: bool) -> None:
        at = data.draw(st.integers(0, len(self.acks) - 1))
        self.log.copied(*self.acks[at], 0)
        if not repeat:
            del self.acks[at]

    @precondition(lambda self: self.asks)
    @rule(data=st.data(), repeat=st.booleans())
    def ask_arrives(self, data: st.DataObject, repeat: bool) -> None:
        at = data.draw(st.integers(0, len(self.asks) - 1))
        if self.asks[at][0] > self.record[0]:
            self.record = self.asks[at]
            self.records.append(self.record)
        if not repeat:
            del self.asks[at]

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def record_arrives(self, data: st.DataObject) -> None:
        self.log.recorded(*self.records[data.draw(st.integers(0, len(self.records) - 1))])

    @invariant()
    def published_is_on_every_recorded_member(self) -> None:
        buddy = self.record[1]
        if buddy is not None:
            assert self.copies[buddy].through >= self.log.published

    @invariant()
    def published_never_falls_and_never_passes_the_end(self) -> None:
        assert self.published <= self.log.published <= self.log.end
        self.published = self.log.published


TestOwnerAndCopies = OwnerAndCopies.TestCase
TestOwnerAndCopies.settings = PROPERTY
