"""Which slot delivers which pairs: dealt evenly, and moved as little as possible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.builders import PROPERTY

from tandem_runtime.protocol.merge.slots import deal, pairs_of_slot, slot_of_pair
from tandem_runtime.protocol.types import UNDIVIDED, Dealing

PAIRS = tuple(f"pair-{number}" for number in range(8))
NUMBERS = st.sets(st.integers(0, 7), min_size=1, max_size=4).map(sorted)


def dealing(**slots: tuple[str, ...]) -> Dealing:
    return Dealing(number=1, slots=tuple((int(name[1:]), pairs) for name, pairs in slots.items()))


def test_pairs_are_dealt_in_contiguous_shares_at_first() -> None:
    found = deal(1, PAIRS[:4], [0, 1], None)
    assert found == dealing(s0=("pair-0", "pair-1"), s1=("pair-2", "pair-3"))


def test_new_slot_takes_fewest_pairs() -> None:
    before = dealing(s0=("pair-0", "pair-1"), s1=("pair-2", "pair-3"))
    after = deal(2, PAIRS[:4], [0, 1, 4], before)
    assert after.slots == ((0, ("pair-0", "pair-1")), (1, ("pair-2",)), (4, ("pair-3",)))


def test_pairs_of_ended_slot_go_to_others() -> None:
    before = dealing(s0=("pair-0",), s1=("pair-1",), s2=("pair-2",))
    assert deal(2, PAIRS[:3], [0, 1], before).slots == (
        (0, ("pair-0", "pair-2")),
        (1, ("pair-1",)),
    )


def test_slot_may_have_no_pairs() -> None:
    assert deal(1, PAIRS[:1], [0, 1], None).slots == ((0, ("pair-0",)), (1, ()))


@PROPERTY
@given(st.sets(st.sampled_from(PAIRS)), NUMBERS, st.sets(st.sampled_from(PAIRS)), NUMBERS)
def test_pairs_are_dealt_once_evenly_and_moved_minimally(
    first: set[str], slots: list[int], then: set[str], later: list[int]
) -> None:
    before = deal(1, first, slots, None)
    after = deal(2, then, later, before)
    dealt = [pair for _, pairs in after.slots for pair in pairs]
    sizes = [len(pairs) for _, pairs in after.slots]
    assert sorted(dealt) == sorted(then)
    assert [slot for slot, _ in after.slots] == later
    assert max(sizes) - min(sizes) <= 1
    assert deal(3, then, later, after).slots == after.slots
    most = -(-len(then) // len(later))
    for slot, pairs in after.slots:
        # Nobody gives a pair away who has room for it.
        held = [pair for pair in before.pairs_of(slot) if pair in then]
        if len(held) <= len(then) // len(later):
            assert set(held) <= set(pairs)
        assert len(pairs) <= most


def test_slot_0_has_all_pairs_when_undivided() -> None:
    assert pairs_of_slot({}, UNDIVIDED, 0, ("y", "x")) == ("x", "y")
    assert pairs_of_slot({}, UNDIVIDED, 1, ("y", "x")) == ()
    assert slot_of_pair({}, UNDIVIDED, "x") == 0


def test_slot_delivers_its_dealt_pairs_of_epoch() -> None:
    known = {1: dealing(s0=("x", "old"), s1=("y",))}
    assert pairs_of_slot(known, 1, 0, ("y", "x")) == ("x",)
    assert pairs_of_slot(known, 1, 1, ("y", "x")) == ("y",)
    assert pairs_of_slot(known, 1, 2, ("y", "x")) == ()
    assert slot_of_pair(known, 1, "y") == 1
    assert slot_of_pair(known, 1, "z") is None


def test_unknown_dealing_raises() -> None:
    with pytest.raises(KeyError):
        pairs_of_slot({}, 3, 0, ("x",))
