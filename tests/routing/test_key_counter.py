"""Counting: never above the truth, never below by more than the bound, in bounded memory."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tandem.routing.load.distinct_keys import KEPT, DistinctSketch, merge_sketches
from tandem.routing.load.key_counter import KeyCounter
from tandem.routing.load.key_summary import BYTES, MEMORY, ROWS, KeySummary, merge_summaries
from tandem.routing.load.lossy_counter import LossyCounter
from tandem.routing.load.profile import merge_profiles
from tandem_core.routing.errors import InvalidSettingError
from tandem_core.routing.ring import bucket_of
from tandem_core.routing.xxh64 import U64Array, hash_words

ROWS_IN_STREAM = 60_000
STREAMS = [
    *[f"zipf {skew}" for skew in (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)],
    "uniform",
    "all distinct",
    "one key",
    "adversarial",
    "drifting",
]


def stream_of(name: str, seed: int) -> U64Array:
    rng = np.random.default_rng(seed)
    numbers = np.arange(ROWS_IN_STREAM, dtype=np.uint64)
    match name.split():
        case ["zipf", skew]:
            return zipf(rng, float(skew), ROWS_IN_STREAM)
        case ["uniform"]:
            return rng.integers(0, 20_000, ROWS_IN_STREAM, dtype=np.uint64)
        case ["all", "distinct"]:
            return numbers
        case ["one", "key"]:
            return numbers * 0
        case ["adversarial"]:
            return adversarial(ROWS_IN_STREAM, 200)
    return zipf(rng, 1.2, ROWS_IN_STREAM) + numbers // 6_000 * 7


def zipf(rng: np.random.Generator, skew: float, rows: int, domain: int = 20_000) -> U64Array:
    weights = 1 / np.arange(1, domain + 1) ** skew
    return rng.choice(domain, rows, p=weights / weights.sum()).astype(np.uint64)


def adversarial(rows: int, window: int) -> U64Array:
    """Each key comes exactly as often as keeps it from being forgotten, then falls short by one."""
    stream: list[int] = []
    key = 0
    while len(stream) < rows:
        for survivors in range(1, window + 1):
            stream += [key + n for n in range(survivors)]
            key += survivors // 2
    return np.array(stream[:rows], dtype=np.uint64)


def reference(stream: list[int], window: int) -> dict[int, tuple[int, int]]:
    """Lossy counting as published, one row at a time: key to (count, error)."""
    entries: dict[int, tuple[int, int]] = {}
    for row, key in enumerate(stream):
        index = row // window + 1
        count, error = entries.get(key, (0, index - 1))
        entries[key] = (count + 1, error)
        if (row + 1) % window == 0:
            entries = {k: (c, e) for k, (c, e) in entries.items() if c + e > index}
    return entries


def entries_of(summary: KeySummary) -> dict[int, tuple[int, int]]:
    rows, errors = summary.rows.tolist(), summary.errors.tolist()
    return dict(zip(summary.hashes.tolist(), zip(rows, errors, strict=True), strict=True))


def check_bounds(summary: KeySummary, stream: list[int], epsilon: float) -> None:
    truth = Counter(stream)
    listed = entries_of(summary)
    assert summary.total_rows == len(stream)
    assert summary.unlisted <= epsilon * len(stream)
    assert (summary.errors <= summary.unlisted).all()
    for key, true in truth.items():
        count, error = listed.get(key, (0, summary.unlisted))
        assert count <= true <= count + error
        assert true - count <= epsilon * len(stream)
    assert set(listed) <= set(truth)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    ("epsilon", "block"), [(0.005, None), (0.005, 1), (0.0003, 2), (0.1, None)]
)
def test_counts_and_memory_stay_within_their_bounds(
    name: str, epsilon: float, block: int | None
) -> None:
    stream = stream_of(name, seed=7)
    counter = LossyCounter(epsilon, block)
    for start in range(0, len(stream), 5_000):
        counter.add(stream[start : start + 5_000])
        assert counter.entries <= counter.most_entries(counter.rows)
    check_bounds(counter.summary(), stream.tolist(), epsilon)


@given(st.lists(st.integers(0, 12), max_size=200), st.integers(1, 15))
def test_single_window_blocks_match_published_lossy_counting(
    stream: list[int], window: int
) -> None:
    counter = LossyCounter(1 / window, windows_per_block=1)
    assert counter.window_rows == window
    counter.add(np.array(stream, dtype=np.uint64))
    assert entries_of(counter.summary()) == reference(stream, window)


@given(
    st.lists(st.integers(0, 12), max_size=150),
    st.integers(1, 15),
    st.integers(1, 5),
    st.lists(st.integers(0, 40), max_size=12),
)
def test_batch_boundaries_do_not_change_counts(
    stream: list[int], window: int, block: int, cuts: list[int]
) -> None:
    whole, cut = LossyCounter(1 / window, block), LossyCounter(1 / window, block)
    hashes = np.array(stream, dtype=np.uint64)
    sizes = np.arange(len(stream), dtype=np.int64)
    whole.add(hashes, sizes, sizes * 2)
    for part in pieces(len(stream), cuts):
        cut.add(hashes[part], sizes[part], sizes[part] * 2)
    assert entries_of(whole.summary()) == entries_of(cut.summary())
    assert np.array_equal(whole.summary().amounts, cut.summary().amounts)
    check_bounds(whole.summary(), stream, 1 / window)


def pieces(rows: int, cuts: list[int]) -> Iterator[slice]:
    start = 0
    for cut in cuts:
        yield slice(start, start + cut)
        start += cut
    yield slice(start, max(rows, start))


@given(st.lists(st.lists(st.integers(0, 12), max_size=80), min_size=1, max_size=4))
def test_merged_counts_keep_the_bounds_in_any_order(streams: list[list[int]]) -> None:
    parts = []
    for stream in streams:
        counter = LossyCounter(0.1, windows_per_block=1)
        counter.add(np.array(stream, dtype=np.uint64))
        parts.append(counter.summary())
    merged = merge_summaries(parts)
    together = [key for stream in streams for key in stream]
    check_bounds(merged, together, 0.1)
    assert entries_of(merge_summaries(parts[::-1])) == entries_of(merged)
    by_pairs = merge_summaries([merge_summaries(parts[:1]), merge_summaries(parts[1:])])
    check_bounds(by_pairs, together, 0.1)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=200), st.integers(1, 60))
def test_frequent_keys_are_returned_and_rare_ones_are_not(stream: list[int], least: int) -> None:
    counter = LossyCounter(0.1, windows_per_block=1)
    counter.add(np.array(stream, dtype=np.uint64))
    summary = counter.summary()
    assume(least > summary.unlisted)
    returned = set(summary.at_least(least).tolist())
    for key, true in Counter(stream).items():
        assert key in returned or true < least
        assert key not in returned or true >= least - summary.unlisted


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), max_size=100))
def test_bytes_and_memory_match_rows_counted(rows: list[tuple[int, int]]) -> None:
    hashes = np.array([key for key, _ in rows], dtype=np.uint64)
    sizes = np.array([size for _, size in rows], dtype=np.int64)
    counter = LossyCounter(0.001)
    counter.add(hashes, sizes, -sizes)
    summary = counter.summary()
    for key, amounts in zip(summary.hashes.tolist(), summary.amounts.tolist(), strict=True):
        expected = int(sizes[hashes == key].sum())
        assert amounts == [int((hashes == key).sum()), expected, -expected]


def test_window_holds_one_to_one_and_a_half_windows() -> None:
    counter = KeyCounter(window_rows=1_000, epsilon=0.01)
    for total in range(100, 6_000, 100):
        counter.add(np.zeros(100, dtype=np.uint64))
        assert counter.rows == total or 1_000 <= counter.rows <= 1_500
        assert counter.profile().keys.total_rows == counter.rows


def test_old_hot_key_is_forgotten_after_one_and_a_half_windows() -> None:
    counter = KeyCounter(window_rows=1_000, epsilon=0.01)
    counter.add(np.full(3_000, 7, dtype=np.uint64))
    assert 7 in counter.profile().keys.at_least(500)
    counter.add(np.full(1_500, 8, dtype=np.uint64))
    profile = counter.profile()
    assert profile.keys.hashes.tolist() == [8]
    assert profile.totals[ROWS] == counter.rows


@pytest.mark.parametrize("name", STREAMS)
def test_sliding_counter_keeps_error_bounds(name: str) -> None:
    stream = stream_of(name, seed=11)
    counter = KeyCounter(window_rows=20_000, epsilon=0.002)
    for start in range(0, len(stream), 3_000):
        counter.add(stream[start : start + 3_000])
        assert counter.entries <= counter.most_entries
        recent = stream[: start + 3_000][-counter.rows :]
        if start % 15_000 == 0:
            check_bounds(counter.profile().keys, recent.tolist(), 0.002)


def test_buckets_sum_all_rows_in_window() -> None:
    hashes = hash_words(zipf(np.random.default_rng(3), 1.0, 9_000))
    sizes = np.arange(9_000, dtype=np.int64)
    counter = KeyCounter(window_rows=4_000, epsilon=0.01)
    counter.add(hashes, sizes, sizes + 1)
    profile = counter.profile()
    recent, recent_sizes = hashes[-counter.rows :], sizes[-counter.rows :]
    expected = np.bincount(bucket_of(recent), recent_sizes, minlength=len(profile.buckets))
    assert np.array_equal(profile.buckets[:, BYTES], expected)
    assert profile.totals.tolist() == [
        counter.rows,
        int(recent_sizes.sum()),
        int(recent_sizes.sum()) + counter.rows,
    ]
    assert profile.buckets[:, MEMORY].min() >= 0


def test_merged_split_profiles_equal_profile_of_all_rows() -> None:
    stream = hash_words(zipf(np.random.default_rng(5), 1.0, 8_000))
    parts = []
    for split in range(4):
        counter = KeyCounter(window_rows=1_000_000, epsilon=0.001)
        counter.add(stream[split::4])
        parts.append(counter.profile())
    merged = merge_profiles(parts)
    whole = KeyCounter(window_rows=1_000_000, epsilon=0.001)
    whole.add(stream)
    assert np.array_equal(merged.buckets, whole.profile().buckets)
    assert merged.distinct.estimate == whole.profile().distinct.estimate
    check_bounds(merged.keys, stream.tolist(), 0.001)
    assert merge_profiles([]).totals.tolist() == [0, 0, 0]


@given(st.sets(st.integers(0, 2**64 - 1), max_size=300))
def test_few_distinct_keys_are_counted_exactly(keys: set[int]) -> None:
    hashes = np.array([*keys, *keys], dtype=np.uint64)
    assert DistinctSketch.empty().with_hashes(hashes).estimate == len(keys)


@pytest.mark.parametrize("keys", [KEPT, 10_000, 1_000_000])
def test_many_distinct_keys_are_estimated_and_mergeable(keys: int) -> None:
    hashes = hash_words(np.arange(keys, dtype=np.uint64))
    halves = [DistinctSketch.empty().with_hashes(part) for part in (hashes[::2], hashes[1::2])]
    merged = merge_sketches([*halves, DistinctSketch.empty()])
    assert merged.estimate == DistinctSketch.empty().with_hashes(hashes).estimate
    assert abs(merged.estimate / keys - 1) < 0.1


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.5])
def test_impossible_counting_settings_are_refused(epsilon: float) -> None:
    with pytest.raises(InvalidSettingError, match="epsilon"):
        LossyCounter(epsilon)
    with pytest.raises(InvalidSettingError, match="window of 1 rows"):
        KeyCounter(1, 0.1)
