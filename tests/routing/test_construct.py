"""Construction as a whole: balanced, sticky, honest about what it missed, never broken."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.routing.load.key_summary import AmountArray
from tandem.routing.load.profile import LoadProfile, merge_profiles
from tandem.routing.planning.construct import construct, why_reconstruct
from tandem.routing.planning.construction import Task
from tandem.routing.planning.routing_decision import RoutingDecision
from tandem.routing.planning.settings import (
    Beta,
    Heuristic,
    Measure,
    PlanningSettings,
    Resource,
    Utility,
)
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import from_bytes, to_bytes
from tandem_core.routing.ring import bucket_of
from tandem_core.routing.xxh64 import U64Array, hash_words

PROBES = hash_words(np.arange(20_000, dtype=np.uint64), seed=99)
ROWS_ONLY = PlanningSettings(
    Resource("state", Measure.ROWS),
    Resource("computation", Measure.ROWS),
    Resource("communication", Measure.ROWS),
)


def names(count: int, first: int = 0) -> list[str]:
    return [f"pair-{number:04d}" for number in range(first, first + count)]


def keys(count: int, seed: int = 1) -> U64Array:
    return hash_words(np.arange(count, dtype=np.uint64), seed=seed)


def profile_of(amounts: AmountArray, seed: int = 1) -> LoadProfile:
    return LoadProfile.exact(keys(len(amounts), seed), amounts)


def zipf(count: int, skew: float = 1.0, seed: int = 1) -> LoadProfile:
    rows = (10**9 / np.arange(1, count + 1) ** skew).astype(np.int64)
    return profile_of(np.stack([rows, rows * 100, rows * 7], axis=1), seed)


def owner_names(function: RoutingFunction, hashes: U64Array) -> npt.NDArray[np.str_]:
    return np.array(function.pairs)[function.owner_of(hashes)]


# Changes of pairs and load


def check_moves(old: RoutingFunction, decision: RoutingDecision, hashes: U64Array) -> None:
    """Exactly the listed keys and buckets change owners."""
    moves, new = decision.moves, decision.function
    changed = owner_names(old, hashes) != owner_names(new, hashes)
    in_keys = np.isin(hashes, moves.keys)
    in_buckets = np.isin(bucket_of(hashes), moves.buckets) & ~np.isin(hashes, moves.single)
    assert np.array_equal(changed, in_keys | in_buckets)
    for hashed, source, target in zip(moves.keys, moves.keys_from, moves.keys_to, strict=True):
        one = np.array([hashed], dtype=np.uint64)
        assert owner_names(old, one)[0] == old.pairs[source]
        assert owner_names(new, one)[0] == new.pairs[target]
    assert np.array_equal(moves.buckets_from, old.bucket_owners[moves.buckets])
    assert np.array_equal(moves.buckets_to, new.bucket_owners[moves.buckets])


def check_ring_is_consistent(old: RoutingFunction, new: RoutingFunction) -> None:
    """A bucket moves only from a pair that lost weight, or to one that gained some."""
    before = dict(zip(old.pairs, old.vnodes, strict=True))
    after = dict(zip(new.pairs, new.vnodes, strict=True))
    source = np.array(old.pairs)[old.bucket_owners]
    target = np.array(new.pairs)[new.bucket_owners]
    for left, entered in {*zip(source.tolist(), target.tolist(), strict=True)}:
        if left != entered:
            lost = before[left] > after.get(left, 0)
            gained = after[entered] > before.get(entered, 0)
            assert lost or gained


@pytest.mark.parametrize("heuristic", Heuristic)
@pytest.mark.parametrize(("before", "after"), [(4, 5), (5, 4), (1, 2), (2, 1), (3, 9), (6, 6)])
def test_only_listed_moves_change_owner(heuristic: Heuristic, before: int, after: int) -> None:
    chosen = PlanningSettings(heuristic=heuristic)
    first = construct(zipf(5_000, seed=3), names(before), None, chosen).function
    decision = construct(zipf(5_000, 1.2, seed=4), names(after), first, chosen)
    hashes = np.concatenate([PROBES, keys(5_000, 3), keys(5_000, 4)])
    check_moves(first, decision, hashes)
    check_ring_is_consistent(first, decision.function)
    assert decision.moves.total_bytes > 0


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 3), st.integers(0, 1_000))
@settings(max_examples=20, deadline=None)
def test_listed_moves_are_complete_for_any_change(
    before: int, after: int, renamed: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    first = construct(profile_of(rng.integers(0, 10**6, (60, 3)), 5), names(before)).function
    load = profile_of(rng.integers(0, 10**6, (60, 3)), 5)
    decision = construct(load, names(after, renamed), first)
    check_moves(first, decision, np.concatenate([PROBES[:5_000], keys(60, 5)]))
    check_ring_is_consistent(first, decision.function)


def test_move_bytes_equal_state_moved() -> None:
    load = zipf(2_000)
    first = construct(load, names(3)).function
    decision = construct(load, names(4), first)
    hashes = keys(2_000)
    memory = load.keys.amounts_of(hashes)[:, 2]
    changed = owner_names(first, hashes) != owner_names(decision.function, hashes)
    assert decision.moves.total_bytes == memory[changed].sum()
    assert decision.migration == pytest.approx(memory[changed].sum() / memory.sum() * 4)


def test_removed_pairs_own_nothing_and_their_keys_count_as_moved() -> None:
    load = zipf(2_000)
    first = construct(load, names(5)).function
    decision = construct(load, names(3), first)
    assert decision.function.pairs == tuple(names(3))
    gone = np.isin(owner_names(first, keys(2_000)), names(2, 3))
    memory = load.keys.amounts_of(keys(2_000))[:, 2]
    assert decision.moves.total_bytes >= memory[gone].sum()


def test_nothing_changes_while_all_bounds_hold() -> None:
    load = zipf(100_000)
    first = construct(load, names(8))
    assert first.missed == ()
    assert why_reconstruct(load, first.function) == ()
    again = construct(load, names(8), first.function)
    assert again.function is first.function
    assert again.moves.count == 0
    assert again.migration == 0
    assert "all bounds hold" in again.reasons[0]


def test_unreachable_bound_causes_no_moves() -> None:
    amounts = np.ones((1_000, 3), dtype=np.int64)
    amounts[0] = 10_000
    load = profile_of(amounts)
    function = construct(load, names(4)).function
    for _ in range(3):
        decision = construct(load, names(4), function)
        function = decision.function
        assert decision.missed
    assert decision.moves.count == 0
    assert "alone is" in decision.missed[0]
    assert "a key has one owner" in decision.missed[0]


@pytest.mark.parametrize("heuristic", Heuristic)
def test_negligible_gain_causes_no_moves(heuristic: Heuristic) -> None:
    """Another placement is always to be had, but with one huge key none is much better."""
    load = zipf(2_000)
    huge = profile_of(np.tile(load.totals, (1, 1)), seed=88)
    together = merge_profiles([load, huge])
    chosen = PlanningSettings(heuristic=heuristic)
    start = RoutingFunction.plain(names(6))
    settled = [construct(together, names(6), start, chosen)]
    for _ in range(3):
        settled.append(construct(together, names(6), settled[-1].function, chosen))
    assert settled[-1].missed
    assert settled[-1].moves.count == 0
    assert "worth moving for" in settled[-1].reasons[0]


def test_dropped_hot_keys_count_as_moved_from_start() -> None:
    first = construct(zipf(10_000, 1.2), names(6)).function
    task = Task.of(zipf(10_000, 0.6), tuple(names(7)), first, ROWS_ONLY)
    owners = task.ring.owners(task.initial_vnodes())
    board = task.board(owners, owners[bucket_of(task.workload.hashes)])
    dropped = task.workload.hashes[task.dropped]
    ring_owners = np.array(task.pairs)[owners[bucket_of(dropped)]]
    moved = owner_names(first, dropped) != ring_owners
    assert moved.any()
    assert board.spent == pytest.approx(task.workload.key_loads[0, task.dropped[moved]].sum())


def test_keys_of_removed_pairs_count_as_moved_from_start() -> None:
    load = zipf(10_000, 1.2)
    first = construct(load, names(6)).function
    task = Task.of(load, tuple(names(5)), first, ROWS_ONLY)
    owners = task.ring.owners(task.initial_vnodes())
    board = task.board(owners, owners[bucket_of(task.workload.hashes)])
    hot = task.workload.hashes[task.hot]
    orphaned = task.hot[owner_names(first, hot) == "pair-0005"]
    assert len(orphaned)
    with_them = task.workload.key_loads[0, orphaned].sum()
    task_without = Task.of(load, tuple(names(6)), first, ROWS_ONLY)
    owners = task_without.ring.owners(task_without.initial_vnodes())
    keys_on_ring = owners[bucket_of(task_without.workload.hashes)]
    assert task_without.board(owners, keys_on_ring).spent == 0
    assert board.spent >= with_them


def test_new_hot_keys_yield_function_within_bounds() -> None:
    load = zipf(100_000)
    first = construct(load, names(8)).function
    hashes = keys(3, seed=77)
    surge = profile_of(np.tile(load.totals // 20, (3, 1)), seed=77)
    together = merge_profiles([load, surge])
    assert why_reconstruct(together, first)
    decision = construct(together, names(8), first)
    assert decision.missed == ()
    assert decision.before is not None
    assert decision.before.missed
    assert set(hashes.tolist()) <= set(decision.function.hot_hashes.tolist())
    check_moves(first, decision, np.concatenate([PROBES, hashes]))


def test_cooled_key_returns_to_ring() -> None:
    load = zipf(10_000, 1.2)
    first = construct(load, names(6)).function
    decision = construct(zipf(10_000, 0.1), names(7), first)
    assert decision.function.hot_count < first.hot_count
    dropped = np.setdiff1d(first.hot_hashes, decision.function.hot_hashes)
    buckets = decision.function.bucket_owners[bucket_of(dropped)]
    assert np.array_equal(decision.function.owner_of(dropped), buckets)
    check_moves(first, decision, np.concatenate([PROBES, keys(10_000)]))


# Sameness


@pytest.mark.parametrize("heuristic", Heuristic)
@pytest.mark.parametrize("utility", Utility)
def test_construction_is_deterministic(heuristic: Heuristic, utility: Utility) -> None:
    chosen = PlanningSettings(heuristic=heuristic, utility=utility)
    parts = [zipf(3_000, seed=1), zipf(3_000, 1.3, seed=2), zipf(500, seed=3)]
    forms = set()
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        load = merge_profiles([parts[i] for i in order])
        pairs = names(7) if order[0] else names(7)[::-1]
        first = construct(load, pairs, None, chosen).function
        second = construct(load, [*pairs, "pair-0007"], from_bytes(to_bytes(first)), chosen)
        forms.add((to_bytes(first), to_bytes(second.function), second.reasons, second.missed))
    assert len(forms) == 1


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_constructed_function_round_trips(seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = profile_of(rng.integers(0, 10**6, (200, 3)), seed)
    function = construct(load, names(int(rng.integers(1, 9)))).function
    again = from_bytes(to_bytes(function))
    assert to_bytes(again) == to_bytes(function)
    assert np.array_equal(again.owner_of(PROBES), function.owner_of(PROBES))


# Inputs that must not break it


def one_key() -> LoadProfile:
    return profile_of(np.full((1, 3), 10**9, dtype=np.int64))


EXTREMES: dict[str, Callable[[], LoadProfile]] = {
    "nothing counted": LoadProfile.empty,
    "one key with all the load": one_key,
    "fewer keys than pairs": lambda: zipf(3),
    "many equal keys": lambda: profile_of(np.full((5_000, 3), 7, dtype=np.int64)),
    "only rows counted": lambda: profile_of(np.array([[5, 0, 0]] * 50)),
    "memory that shrank below nothing": lambda: profile_of(np.array([[5, 1, -9]] * 50)),
    "zipf": lambda: zipf(5_000),
}


@pytest.mark.parametrize("heuristic", Heuristic)
@pytest.mark.parametrize("pairs", [1, 2, 7, 40])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_extreme_loads_yield_valid_functions(
    extreme: str, pairs: int, heuristic: Heuristic
) -> None:
    load = EXTREMES[extreme]()
    chosen = PlanningSettings(heuristic=heuristic)
    first = construct(load, names(pairs), None, chosen)
    grown = construct(load, names(pairs + 1), first.function, chosen)
    shrunk = construct(load, names(max(pairs - 1, 1)), first.function, chosen)
    for decision in (first, grown, shrunk):
        owners = decision.function.owner_of(PROBES)
        assert (owners < len(decision.function.pairs)).all()
        assert decision.reasons
        assert bool(decision.missed) == bool(decision.after.missed)
        assert to_bytes(decision.function)
    check_moves(first.function, grown, PROBES)


def test_thousand_pairs_are_routed_and_grown() -> None:
    load = zipf(100_000)
    first = construct(load, names(1_000))
    grown = construct(load, names(1_001), first.function)
    check_moves(first.function, grown, PROBES)
    assert len(np.unique(first.function.bucket_owners)) == 1_000
    assert grown.migration < 20


@pytest.mark.parametrize("beta", Beta)
@pytest.mark.parametrize("tolerance", [1.0, 1.05, 4.0])
def test_every_resource_kind_yields_finite_balance(beta: Beta, tolerance: float) -> None:
    chosen = PlanningSettings(
        Resource("state", Measure.MEMORY, beta, tolerance),
        Resource("computation", Measure.ROWS, beta, tolerance),
        Resource("communication", Measure.BYTES, beta, tolerance),
    )
    decision = construct(zipf(20_000), names(6), None, chosen)
    assert decision.function.hot_count == 0 or beta is not Beta.CONSTANT
    assert math.isfinite(decision.after.relative)


def test_single_pair_owns_everything() -> None:
    decision = construct(zipf(1_000), ["only"])
    assert decision.function.hot_count == 0
    assert decision.missed == ()
    assert (decision.function.owner_of(PROBES) == 0).all()


def test_hot_key_limit_is_kept_and_reported() -> None:
    decision = construct(zipf(20_000), names(10), None, PlanningSettings(most_hot_keys=5))
    assert decision.function.hot_count == 5
    assert any("over the limit" in reason for reason in decision.reasons)


# The effect


def test_hot_keys_and_weights_meet_bounds_that_plain_ring_misses() -> None:
    load = zipf(1_000_000)
    plain = RoutingFunction.plain(names(10))
    assert len(why_reconstruct(load, plain)) == 3
    for heuristic in Heuristic:
        decision = construct(load, names(10), plain, PlanningSettings(heuristic=heuristic))
        assert decision.missed == ()
        assert decision.after.relative <= 1


def test_default_utility_weighs_migration() -> None:
    """Over several sets of keys, ignoring migration moves at least as much as weighing it."""
    moved = {}
    for utility in (Utility.UA, Utility.UAPM):
        chosen = replace(ROWS_ONLY, utility=utility)
        total = 0.0
        for seed in range(5):
            load = zipf(100_000, seed=seed + 1)
            function = construct(load, names(9), None, chosen).function
            total += construct(load, names(10), function, chosen).migration
        moved[utility] = total
    assert moved[Utility.UA] >= moved[Utility.UAPM]


def test_duplicate_pair_names_are_refused() -> None:
    with pytest.raises(ValueError, match="sorted and distinct"):
        construct(zipf(10), ["a", "a"])
