"""The routing function: one owner for each key, consistent under change, equal everywhere."""

from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tandem.routing.planning.balance import modulo_owner
from tandem_core.routing.errors import InvalidSettingError
from tandem_core.routing.function import MOST_VNODES, RoutingFunction
from tandem_core.routing.key_hashing import hash_column
from tandem_core.routing.ring import BUCKETS, bucket_of
from tandem_core.routing.xxh64 import U64Array, hash_words

HASHES = st.integers(0, 2**64 - 1)
NAMES = st.lists(
    st.integers(0, 10**6).map(lambda n: f"pair-{n}"), min_size=1, max_size=12, unique=True
)


@st.composite
def functions(draw: st.DrawFn) -> RoutingFunction:
    pairs = tuple(sorted(draw(NAMES)))
    weights = draw(
        st.lists(st.integers(0, 64), min_size=len(pairs), max_size=len(pairs)).filter(any)
    )
    hot = sorted(draw(st.sets(HASHES, max_size=30)))
    owners = draw(st.lists(st.integers(0, len(pairs) - 1), min_size=len(hot), max_size=len(hot)))
    return function_of(pairs, weights, dict(zip(hot, owners, strict=True)))


def function_of(pairs: tuple[str, ...], weights: list[int], hot: dict[int, int]) -> RoutingFunction:
    return RoutingFunction(
        pairs,
        tuple(weights),
        np.array(sorted(hot), dtype=np.uint64),
        np.array([hot[h] for h in sorted(hot)], dtype=np.uint16),
    )


def keys(count: int, seed: int = 1) -> U64Array:
    return hash_words(np.arange(count, dtype=np.uint64), seed=seed)


@given(functions(), st.lists(HASHES, max_size=50))
def test_every_key_has_exactly_one_owner(function: RoutingFunction, more: list[int]) -> None:
    hashes = np.concatenate([np.array(more, dtype=np.uint64), function.hot_hashes, keys(100)])
    owners = function.owner_of(hashes)
    assert owners.shape == hashes.shape
    assert (owners < len(function.pairs)).all()
    held = np.array([function.share_of(pair).holds(hashes) for pair in function.pairs])
    assert (held.sum(axis=0) == 1).all()
    assert np.array_equal(held.argmax(axis=0), owners)


@given(functions())
def test_explicit_entry_wins_over_ring(function: RoutingFunction) -> None:
    assert np.array_equal(function.owner_of(function.hot_hashes), function.hot_owners)


@given(functions())
def test_ring_decides_without_entry(function: RoutingFunction) -> None:
    hashes = np.setdiff1d(keys(500), function.hot_hashes)
    expected = function.bucket_owners[bucket_of(hashes)]
    assert np.array_equal(function.owner_of(hashes), expected)


def test_entries_sharing_lowest_bits_are_distinguished() -> None:
    same_slot = [(n << 20) | 7 for n in range(1, 40)]
    hot = {h: i % 3 for i, h in enumerate(same_slot[::2])}
    function = function_of(("a", "b", "c"), [64, 64, 64], hot)
    owners = function.owner_of(np.array(same_slot, dtype=np.uint64))
    for h, owner in zip(same_slot, owners.tolist(), strict=True):
        assert owner == hot.get(h, int(function.bucket_owners[h >> 48]))


@given(NAMES, st.integers(0, 10**6).map(lambda n: f"new-{n}"))
def test_added_pair_takes_keys_only_for_itself(names: list[str], added: str) -> None:
    before = RoutingFunction.plain(names, 32)
    after = RoutingFunction.plain([*names, added], 32)
    hashes = keys(2_000)
    old = np.array(before.pairs)[before.owner_of(hashes)]
    new = np.array(after.pairs)[after.owner_of(hashes)]
    assert set(new[old != new].tolist()) <= {added}


@given(NAMES.filter(lambda names: len(names) > 1))
def test_removed_pair_gives_up_only_its_own_keys(names: list[str]) -> None:
    before = RoutingFunction.plain(names, 32)
    after = RoutingFunction.plain(names[1:], 32)
    hashes = keys(2_000)
    old = np.array(before.pairs)[before.owner_of(hashes)]
    new = np.array(after.pairs)[after.owner_of(hashes)]
    assert set(old[old != new].tolist()) <= {names[0]}


@given(NAMES.filter(lambda names: len(names) > 1), st.integers(1, 31))
def test_lower_weight_takes_buckets_only_from_its_pair(names: list[str], less: int) -> None:
    before = RoutingFunction.plain(names, 32)
    weights = [32 - less if pair == before.pairs[0] else 32 for pair in before.pairs]
    after = function_of(before.pairs, weights, {})
    changed = before.bucket_owners != after.bucket_owners
    assert (before.bucket_owners[changed] == 0).all()


def test_shares_of_the_ring_are_even() -> None:
    function = RoutingFunction.plain([f"pair-{n}" for n in range(10)], 1_000)
    shares = np.bincount(function.owner_of(keys(1_000_000))) / 1_000_000
    assert shares.max() < 0.11
    assert shares.min() > 0.09


def test_pair_order_does_not_matter() -> None:
    names = ["pair-2", "pair-10", "pair-1"]
    one, other = RoutingFunction.plain(names), RoutingFunction.plain(names[::-1])
    assert one.pairs == other.pairs
    assert np.array_equal(one.bucket_owners, other.bucket_owners)


def test_ring_matches_its_description() -> None:
    function = RoutingFunction.plain(["pair-0", "pair-1", "pair-2"], 512)
    assert owners_from_the_description(function) == function.bucket_owners.tolist()


def owners_from_the_description(function: RoutingFunction) -> list[int]:
    """One arc at a time, with plain integers and the reference library."""
    points = sorted(
        (xxhash.xxh64_intdigest(number.to_bytes(8, "little"), seed_of(pair)), index)
        for index, pair in enumerate(function.pairs)
        for number in range(function.vnodes[index])
    )
    following = [bisect_left(points, (arc << 48, 0)) for arc in range(BUCKETS)]
    return [points[place % len(points)][1] for place in following]


def seed_of(pair: str) -> int:
    return xxhash.xxh64_intdigest(pair.encode(), 42)


def test_rows_are_routed_by_their_key_columns() -> None:
    batch = pa.record_batch({"user": ["a", "b", None, "a"], "amount": [1, 2, 3, 4]})
    function = RoutingFunction.plain(["p", "q", "r"])
    expected = function.owner_of(hash_column(batch.column("user"), "user"))
    assert np.array_equal(function.owner_of_rows(batch, ["user"]), expected)
    assert len(function.owner_of_rows(batch.slice(0, 0), ["user"])) == 0


def test_batch_size_does_not_change_routing() -> None:
    hashes = keys(100_000)
    function = function_of(("a", "b"), [16, 16], {int(h): 1 for h in hashes[:3_000]})
    parts = [function.owner_of(hashes[i : i + 7_001]) for i in range(0, 100_000, 7_001)]
    assert np.array_equal(function.owner_of(hashes), np.concatenate(parts))


def test_modulo_is_uniform_and_moves_nearly_everything() -> None:
    hashes = keys(100_000)
    nine, ten = modulo_owner(hashes, 9), modulo_owner(hashes, 10)
    assert np.bincount(ten).min() > 9_500
    assert 0.88 < np.mean(nine != ten) < 0.92


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": ()}, "0 pairs"),
        ({"pairs": ("b", "a")}, "not sorted"),
        ({"pairs": ("a", "a")}, "not sorted"),
        ({"pairs": ("a", "x" * 64)}, "64 bytes"),
        ({"vnodes": (1,)}, "1 vnode counts for 2 pairs"),
        ({"vnodes": (0, 0)}, "one above 0"),
        ({"vnodes": (1, MOST_VNODES + 1)}, "within 0"),
        ({"hot_hashes": np.array([5, 5], dtype=np.uint64)}, "ascend"),
        ({"hot_owners": np.array([0], dtype=np.uint16)}, "differ in number"),
        ({"hot_owners": np.array([0, 2], dtype=np.uint16)}, "pair number 2 of 2"),
    ],
)
def test_non_canonical_function_is_refused(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "pairs": ("a", "b"),
        "vnodes": (1, 1),
        "hot_hashes": np.array([5, 6], dtype=np.uint64),
        "hot_owners": np.array([0, 1], dtype=np.uint16),
    }
    RoutingFunction(**good)  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingError, match=message):
        RoutingFunction(**(good | change))  # type: ignore[arg-type]


def test_share_of_unknown_pair_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="no pair 'z'"):
        RoutingFunction.plain(["a"]).share_of("z")


def test_explicit_map_owns_what_it_names() -> None:
    even, odd = range(0, BUCKETS, 2), range(1, BUCKETS, 2)
    hot = 5 << 48
    function = RoutingFunction.explicit({"pair-7": even, "pair-3": odd}, {hot: "pair-7"})
    hashes = np.array([0, 1 << 48, 2 << 48, hot, hot + 1], dtype=np.uint64)
    names = [function.pairs[index] for index in function.owner_of(hashes)]
    assert names == ["pair-7", "pair-3", "pair-7", "pair-7", "pair-3"]
    assert function.share_of("pair-3").holds(hashes).tolist() == [False, True, False, False, True]


@pytest.mark.parametrize(
    "buckets",
    [
        {"a": range(1, BUCKETS)},
        {"a": range(BUCKETS), "b": [7]},
    ],
)
def test_map_with_unowned_or_doubly_owned_bucket_is_refused(
    buckets: dict[str, range | list[int]],
) -> None:
    with pytest.raises(InvalidSettingError):
        RoutingFunction.explicit(buckets)


def test_hot_key_of_unknown_pair_is_refused() -> None:
    with pytest.raises(InvalidSettingError):
        RoutingFunction.explicit({"a": range(BUCKETS)}, {1: "b"})


def test_share_identity_follows_the_keys_not_the_function() -> None:
    ring = RoutingFunction.plain(["pair-0", "pair-1"])
    owners = ring.bucket_owners
    renamed = RoutingFunction.explicit(
        {"x": np.flatnonzero(owners == 0), "y": np.flatnonzero(owners == 1)}
    )
    assert ring.share_of("pair-0").identity == renamed.share_of("x").identity
    assert ring.share_of("pair-0").identity != renamed.share_of("y").identity


def test_share_identity_includes_hot_keys_taken_and_given() -> None:
    both = {"a": range(0, BUCKETS, 2), "b": range(1, BUCKETS, 2)}
    plain, hot = RoutingFunction.explicit(both), RoutingFunction.explicit(both, {3 << 48: "a"})
    assert plain.share_of("a").identity != hot.share_of("a").identity
    assert plain.share_of("b").identity != hot.share_of("b").identity
