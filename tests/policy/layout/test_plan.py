"""Plans of a resize: they reach the count in bounded steps, and count exactly what moves."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.layout.layouts import layouts, owners

from tandem.policy.layout.layout import Layout
from tandem.policy.layout.plan import ResizePlan, plan_resize
from tandem_core.model.change import LEAST_SURGE

loads = st.none() | st.lists(st.floats(0, 100), min_size=40, max_size=40).map(
    lambda found: found.__getitem__
)
wishes = st.integers(1, 12)
surges = st.integers(1, 5)
Loads = Callable[[int], float] | None

TWO = Layout((("pair-0", frozenset(range(32))), ("pair-1", frozenset(range(32, 64)))), 2)


def layouts_on_the_way(plan: ResizePlan) -> list[Layout]:
    return [plan.before, *(step.after for step in plan.steps)]


def differing(before: Layout, after: Layout) -> float:
    old, new = owners(before), owners(after)
    return sum(old[bucket] != new[bucket] for bucket in old) / len(old)


def test_split_of_one_of_two_pairs() -> None:
    plan = plan_resize(TWO, 3)
    (step,) = plan.steps
    assert step.given_up == ("pair-0",)
    assert step.parents == (("pair-2", ("pair-0",)), ("pair-3", ("pair-0",)))
    assert step.carried == ("pair-1",)
    assert (step.moved, step.drivers_built, step.drivers_at_most) == (0.5, 4, 8)
    assert (plan.moved, plan.moves, plan.least) == (0.5, 0.5, 0.25)
    assert (plan.drivers_now, plan.drivers_at_most, plan.drivers_after) == (4, 8, 6)
    assert (plan.max_surge, plan.room) == (2, (4, 4))
    assert plan.reasons


def test_union_of_two_pairs() -> None:
    plan = plan_resize(TWO, 1, replicas=1)
    (step,) = plan.steps
    assert (step.given_up, step.carried) == (("pair-0", "pair-1"), ())
    assert step.parents == (("pair-2", ("pair-0", "pair-1")),)
    assert (plan.moved, plan.least) == (1.0, 0.5)
    assert (plan.drivers_now, plan.drivers_at_most, plan.drivers_after) == (2, 3, 1)


def test_reached_number_needs_no_step() -> None:
    plan = plan_resize(TWO, 2)
    assert (plan.steps, plan.moved, plan.moves, plan.least, plan.reasons) == ((), 0, 0, 0, ())
    assert plan.drivers_at_most == plan.drivers_now == plan.drivers_after
    assert plan.after == TWO


def test_keys_that_move_twice_count_twice_in_the_sum() -> None:
    plan = plan_resize(Layout((("pair-0", frozenset(range(64))),), 1), 3)
    assert len(plan.steps) == 2
    assert (plan.moved, plan.moves, plan.least) == (1.0, 1.5, 0.5)


def test_load_decides_which_pair_is_split() -> None:
    plan = plan_resize(TWO, 3, lambda bucket: 1.0 if bucket < 32 else 1.1)
    assert plan.steps[0].given_up == ("pair-1",)


def test_rounded_loads_do_not_depend_on_order() -> None:
    def load(bucket: int) -> float:
        return 0.1 + bucket % 7 / 3

    grown = frozenset[int]().union(*({bucket} for bucket in reversed(range(32))))
    again = Layout((("pair-0", grown), TWO.pairs[1]), 2)
    assert plan_resize(again, 7, load) == plan_resize(TWO, 7, load)


@given(layouts(), wishes, loads, surges)
def test_steps_reach_the_count_within_the_surge(
    layout: Layout, wanted: int, load: Loads, surge: int
) -> None:
    plan = plan_resize(layout, wanted, load, max_surge=surge)
    assert len(plan.after.pairs) == min(wanted, len(owners(layout)))
    assert all(len(step.parents) <= max(surge, LEAST_SURGE) for step in plan.steps)


@given(layouts(), wishes, loads, surges)
def test_every_bucket_has_one_owner_and_other_pairs_are_carried(
    layout: Layout, wanted: int, load: Loads, surge: int
) -> None:
    plan = plan_resize(layout, wanted, load, max_surge=surge)
    for (before, after), step in zip(pairwise(layouts_on_the_way(plan)), plan.steps, strict=True):
        assert owners(after).keys() == owners(layout).keys()
        assert {*step.given_up, *step.carried} == set(before.names())
        assert {*dict(step.parents), *step.carried} == set(after.names())
        assert {old for _, parents in step.parents for old in parents} == set(step.given_up)
        for name in step.carried:
            assert after.buckets_of(name) == before.buckets_of(name)


@given(layouts(), wishes, loads, surges)
def test_moved_share_is_what_owners_differ_in(
    layout: Layout, wanted: int, load: Loads, surge: int
) -> None:
    plan = plan_resize(layout, wanted, load, max_surge=surge)
    for (before, after), step in zip(pairwise(layouts_on_the_way(plan)), plan.steps, strict=True):
        assert step.moved == differing(before, after)
    assert plan.moved == differing(layout, plan.after)
    assert plan.least <= plan.moved <= plan.moves + 1e-9


@given(layouts(), wishes, loads, surges, st.data())
def test_plan_from_an_intermediate_layout_is_the_rest(
    layout: Layout, wanted: int, load: Loads, surge: int, data: st.DataObject
) -> None:
    plan = plan_resize(layout, wanted, load, max_surge=surge)
    done = data.draw(st.integers(0, len(plan.steps)))
    reached = layouts_on_the_way(plan)[done]
    # A restarted operator builds the sets of buckets anew, in another order.
    again = tuple((name, frozenset(sorted(mine, reverse=True))) for name, mine in reached.pairs)
    rest = plan_resize(Layout(again, reached.next_pair), wanted, load, max_surge=surge)
    assert rest.steps == plan.steps[done:]


@given(layouts(least_pairs=2), wishes, loads)
def test_united_pairs_have_less_than_twice_the_mean_load(
    layout: Layout, wanted: int, load: Loads
) -> None:
    plan = plan_resize(layout, wanted, load)
    weigh = load or (lambda _: 1.0)
    total = sum(map(weigh, owners(layout)))
    for step in plan.steps:
        for name, parents in step.parents:
            if len(parents) > 1:
                mine = sum(map(weigh, step.after.buckets_of(name)))
                assert mine <= 2 * total / (wanted + 1) * (1 + 1e-6)


@given(layouts(most_pairs=4), wishes, loads)
def test_no_continuation_of_old_pairs_moves_less_than_the_bound(
    layout: Layout, wanted: int, load: Loads
) -> None:
    plan = plan_resize(layout, wanted, load)
    assert plan.least == pytest.approx(1 - most_that_can_stay(layout, plan.after))


def most_that_can_stay(before: Layout, after: Layout) -> float:
    """Largest share that stays, over all ways to continue old pairs as new ones, one to one."""
    best = {frozenset[str](): 0}
    for _, old in before.pairs:
        grown = dict(best)
        for used, stays in best.items():
            for name, new in after.pairs:
                if name not in used and old & new:
                    key = used | {name}
                    grown[key] = max(grown.get(key, 0), stays + len(old & new))
        best = grown
    return max(best.values()) / len(owners(before))
