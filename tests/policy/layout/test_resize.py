"""Resizing: reaches the wanted number in bounded steps, balanced, moving no more than needed."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.layout.layouts import layouts, owners

from tandem.policy.layout.layout import Layout
from tandem.policy.layout.resize import divide, next_step, parts_of_pairs
from tandem_core.model.change import LEAST_SURGE

loads = st.lists(st.floats(0, 100), min_size=40, max_size=40).map(lambda found: found.__getitem__)


def even(_: int) -> float:
    return 1.0


def whole(pairs: int, buckets: int = 64) -> Layout:
    size = buckets // pairs
    parts = [frozenset(range(n * size, (n + 1) * size)) for n in range(pairs)]
    return Layout(tuple((f"pair-{n}", part) for n, part in enumerate(parts)), pairs)


def sizes(layout: Layout) -> list[int]:
    return sorted(len(buckets) for _, buckets in layout.pairs)


def resized(layout: Layout, wanted: int, load: Callable[[int], float], surge: int = 2) -> Layout:
    for _ in range(80):
        change = next_step(layout, wanted, load, surge)
        if change is None:
            return layout
        layout = change.after
    raise AssertionError("never done")


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [(1, 2, [32, 32]), (2, 3, [16, 16, 32]), (4, 2, [32, 32]), (4, 3, [16, 16, 32])],
)
def test_usual_sizes(before: int, wanted: int, after: list[int]) -> None:
    assert sizes(resized(whole(before), wanted, even)) == after


def test_enough_pairs_need_no_step() -> None:
    assert next_step(whole(2), 2, even) is None


def test_only_the_most_loaded_pair_is_split() -> None:
    change = next_step(whole(4), 5, lambda bucket: 9.0 if bucket < 16 else 1.0)
    assert change is not None
    assert change.carried() == ("pair-1", "pair-2", "pair-3")
    assert set(change.parents.values()) == {("pair-0",)}


def test_only_the_least_loaded_pairs_are_united() -> None:
    change = next_step(whole(4), 3, lambda bucket: bucket / 16)
    assert change is not None
    assert change.parents == {"pair-4": ("pair-0", "pair-1")}


def test_surge_bounds_new_pairs_of_a_step() -> None:
    change = next_step(whole(1), 6, even, max_surge=4)
    assert change is not None
    assert len(change.parents) == 4
    change = next_step(whole(8), 4, even, max_surge=3)
    assert change is not None
    assert len(change.parents) == 3


def test_pairs_of_one_bucket_are_not_split() -> None:
    assert next_step(whole(4, buckets=4), 9, even) is None


@given(layouts(), st.integers(1, 12), loads, st.integers(1, 5))
def test_steps_reach_the_wanted_number_or_single_buckets(
    layout: Layout, wanted: int, load: Callable[[int], float], surge: int
) -> None:
    after = resized(layout, wanted, load, surge)
    assert len(after.pairs) == min(wanted, len(owners(layout)))
    assert owners(after).keys() == owners(layout).keys()


@given(layouts(), st.integers(1, 12), loads, st.integers(1, 5))
def test_step_keeps_carried_pairs_and_the_surge(
    layout: Layout, wanted: int, load: Callable[[int], float], surge: int
) -> None:
    change = next_step(layout, wanted, load, surge)
    if change is None:
        return
    assert len(change.parents) <= max(surge, LEAST_SURGE)
    for name in change.carried():
        assert change.after.buckets_of(name) == layout.buckets_of(name)
    gained = len(change.after.pairs) - len(layout.pairs)
    assert gained * (wanted - len(layout.pairs)) > 0


@given(
    st.lists(st.integers(1, 50).map(float), min_size=1, max_size=4),
    st.integers(1, 8),
)
def test_split_makes_the_largest_part_as_small_as_possible(load: list[float], more: int) -> None:
    wanted = len(load) + more
    found = parts_of_pairs(load, [99] * len(load), wanted)
    assert sum(found) == wanted
    best = min(
        max(w / k for w, k in zip(load, choice, strict=True))
        for choice in product(range(1, more + 2), repeat=len(load))
        if sum(choice) == wanted
    )
    assert max(w / k for w, k in zip(load, found, strict=True)) == best


@given(st.integers(1, 6), st.integers(6, 40), loads)
def test_divided_loads_differ_by_at_most_one_bucket(
    parts: int, buckets: int, load: Callable[[int], float]
) -> None:
    found = divide(frozenset(range(buckets)), parts, load)
    assert all(found)
    assert sorted(bucket for part in found for bucket in part) == list(range(buckets))
    totals = [sum(map(load, part)) for part in found]
    assert max(totals) - min(totals) <= max(map(load, range(buckets))) + 1e-6
