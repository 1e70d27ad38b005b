"""Changes of a layout: every bucket keeps exactly one owner, other pairs stay as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.layout.layouts import layouts, owners

from tandem.policy.layout.layout import (
    InvalidChange,
    Layout,
    move_buckets,
    reassign,
    unite_pairs,
)

TWO = Layout((("pair-0", frozenset({0, 1})), ("pair-1", frozenset({2, 3}))), 2)


def test_split_pair_has_fresh_names_and_one_parent() -> None:
    change = reassign(TWO, ["pair-0"], [frozenset({0}), frozenset({1})])
    assert change.after.pairs == (
        ("pair-1", frozenset({2, 3})),
        ("pair-2", frozenset({0})),
        ("pair-3", frozenset({1})),
    )
    assert change.parents == {"pair-2": ("pair-0",), "pair-3": ("pair-0",)}
    assert change.carried() == ("pair-1",)
    assert change.after.next_pair == 4


def test_united_pair_has_all_parents() -> None:
    change = unite_pairs(TWO, ["pair-1", "pair-0"])
    assert change.after.pairs == (("pair-2", frozenset(range(4))),)
    assert change.parents == {"pair-2": ("pair-0", "pair-1")}


def test_target_of_a_move_has_both_parents() -> None:
    change = move_buckets(TWO, frozenset({1}), "pair-0", "pair-1")
    assert owners(change.after) == {0: "pair-2", 1: "pair-3", 2: "pair-3", 3: "pair-3"}
    assert change.parents == {"pair-2": ("pair-0",), "pair-3": ("pair-0", "pair-1")}


@pytest.mark.parametrize(
    "parts",
    [
        [frozenset({0})],
        [frozenset({0, 1}), frozenset()],
        [frozenset({0, 1}), frozenset({1})],
        [frozenset({0, 1, 2})],
        [frozenset({0, 2})],
    ],
)
def test_parts_that_lose_repeat_or_add_buckets_are_refused(parts: list[frozenset[int]]) -> None:
    with pytest.raises(InvalidChange):
        reassign(TWO, ["pair-0"], parts)


def test_move_of_foreign_or_all_buckets_is_refused() -> None:
    for moved in ({2}, {0, 1}):
        with pytest.raises(InvalidChange):
            move_buckets(TWO, frozenset(moved), "pair-0", "pair-1")
    with pytest.raises(InvalidChange):
        move_buckets(TWO, frozenset({0}), "pair-0", "pair-0")


def test_unknown_pair_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidChange, match="pair-0, pair-1"):
        unite_pairs(TWO, ["pair-0", "pair-7"])


@given(layouts(least_pairs=2), st.data())
def test_change_keeps_one_owner_for_each_bucket(layout: Layout, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(layout.names()), min_size=1, unique=True))
    change = unite_pairs(layout, names)
    assert owners(change.after).keys() == owners(layout).keys()
    for name in change.carried():
        assert change.after.buckets_of(name) == layout.buckets_of(name)
    assert not set(change.parents) & set(layout.names())
