"""The generator: rows by number alone, in the distribution and at the pace asked for."""

import datetime
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough
from tests.sources.builders import (
    FakeClock,
    generator_stream,
    opened,
    read_to_end,
    rows_of,
)

from tandem_core.contract.partitions import partitions_of
from tandem_runtime.arrow.schema import arrow_schema
from tandem_runtime.protocol.types import Mark, Position
from tandem_runtime.sources.generator.partition import generated
from tandem_runtime.sources.generator.zipf import Zipf
from tandem_runtime.sources.replay import replay

EVERYTHING = (
    "k STRING, b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, f4 FLOAT, f8 DOUBLE, "
    "s STRING NOT NULL, y BINARY, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, m DECIMAL(3,2), "
    "w DECIMAL(38,20), l ARRAY<ARRAY<STRING>>, p MAP<BOOLEAN, DECIMAL(5,2)>, "
    "r STRUCT<x: INT NOT NULL, y: ARRAY<BINARY>>"
)


@thorough(40)
@given(st.lists(st.integers(0, 300), min_size=2, max_size=5), st.integers(0, 2**70))
def test_row_is_same_however_it_is_read(cuts: list[int], seed: int) -> None:
    stream = generator_stream(schema=EVERYTHING, key=["k"], seed=seed, skew=0.9, jitter=500)
    cuts = sorted(cuts)
    whole = generated(stream, cuts[0], cuts[-1])
    parts = [generated(stream, a, b) for a, b in pairwise(cuts)]
    assert pa.concat_tables(parts).combine_chunks() == whole.combine_chunks()


def test_every_type_has_fitting_and_varying_values() -> None:
    stream = generator_stream(schema=EVERYTHING, key=["k"])
    rows = generated(stream, 0, 2000)
    rows.validate(full=True)
    assert rows.schema == arrow_schema(stream.schema)
    for name in rows.schema.names:
        values = rows.column(name)
        assert values.null_count == 0
        assert len({str(value) for value in values.to_pylist()}) > 1
    assert {len(value) for value in rows.column("l").to_pylist()} == {0, 1, 2, 3}
    assert all(len(dict(entries)) == len(entries) for entries in rows.column("p").to_pylist())


@pytest.mark.parametrize(
    "kind",
    ["BOOLEAN", "TINYINT", "BIGINT", "STRING", "BINARY", "DATE", "TIMESTAMP_NTZ", "DECIMAL(12,2)"],
)
def test_equal_ranks_give_equal_keys_of_every_type_in_every_stream(kind: str) -> None:
    one = generated(generator_stream(schema=f"a {kind}, x INT", key=["a"]), 0, 500)
    other = generated(generator_stream(schema=f"y STRING, b {kind}", key=["b"]), 0, 500)
    assert one.column("a") == other.column("b")
    one.validate(full=True)


def test_all_key_columns_share_one_rank() -> None:
    rows = generated(generator_stream(schema="a STRING, b INT", key=["a", "b"], keys=50), 0, 5000)
    pairs = set(zip(rows.column("a").to_pylist(), rows.column("b").to_pylist(), strict=True))
    assert pairs == {(f"key-{rank:06}", rank) for rank in range(50)}


def test_values_differ_by_seed_and_column() -> None:
    def amounts(seed: int, name: str) -> list[int]:
        stream = generator_stream(schema=f"user STRING, {name} INT", seed=seed)
        found: list[int] = generated(stream, 0, 100).column(name).to_pylist()
        return found

    assert amounts(1, "x") != amounts(2, "x")
    assert amounts(1, "x") != amounts(1, "y")


def test_numbers_are_uniformly_distributed() -> None:
    amounts = generated(generator_stream(), 0, 100_000).column("amount").to_numpy()
    counts = np.bincount(amounts // 100, minlength=10)
    assert counts.min() > 9_500
    assert counts.max() < 10_500


# --- event times --------------------------------------------------------------------------------


def test_event_times_follow_row_number() -> None:
    at = generated(generator_stream(rate=3), 0, 4).column("at").to_pylist()
    base = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert [(time - base).total_seconds() for time in at] == [0, 0.333333, 0.666666, 1]


def test_jitter_only_delays_and_stays_within_its_limit() -> None:
    times = [
        generated(generator_stream(rate=1000, jitter=jitter), 0, 20_000).column("at").cast("int64")
        for jitter in (0, 5000)
    ]
    delays = pc.min_max(pc.subtract(times[0], times[1])).as_py()
    assert 0 <= delays["min"] < 10_000
    assert 4_990_000 < delays["max"] <= 5_000_000


def test_watermark_column_is_event_time() -> None:
    schema = "user STRING, first TIMESTAMP, second TIMESTAMP"
    rows = generated(generator_stream(schema=schema, watermark="second"), 0, 100)
    second = rows.column("second").cast("int64").to_pylist()
    assert second == sorted(second)
    batch = opened(generator_stream(schema=schema, watermark="second", rows=50)).read(0)
    assert batch.event_time == second[batch.rows.num_rows - 1] // 1000


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 1.5, 3.0])
def test_ranks_follow_zipf_distribution(skew: float) -> None:
    keys, draws = 1000, 400_000
    uniform = (np.arange(draws) + 0.5) / draws
    counts = np.bincount(Zipf(keys, skew).ranks(uniform), minlength=keys)
    weights = np.arange(1, keys + 1) ** -skew
    assert np.abs(counts - draws * weights / weights.sum()).max() <= 1.5


@pytest.mark.parametrize("skew", [0.3, 1.0, 1.2, 3.0])
def test_zipf_tail_beyond_exact_sums_is_approximated(skew: float) -> None:
    keys = 1_000_000
    weights = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -skew)
    uniform = np.linspace(0, 1, 20_000, endpoint=False)
    exact = np.searchsorted(weights, uniform * weights[-1], side="right")
    ranks = Zipf(keys, skew).ranks(uniform)
    assert np.abs(ranks - exact).max() <= 1


@pytest.mark.parametrize("skew", [0.0, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("keys", [1, 2, 100_000, 100_001, 1_000_000_000])
def test_ranks_stay_within_key_range(keys: int, skew: float) -> None:
    ranks = Zipf(keys, skew).ranks(np.array([0.0, 0.5, np.nextafter(1.0, 0.0)]))
    assert ranks[0] == 0
    assert all(0 <= rank < keys for rank in ranks)
    assert list(ranks) == sorted(ranks)


def test_few_keys_have_most_rows_when_skewed() -> None:
    rows = generated(generator_stream(keys=10_000, skew=1.1), 0, 50_000)
    counts = Counter(rows.column("user").to_pylist())
    assert counts.most_common(1)[0][0] == "key-000000"
    assert counts["key-000000"] > 5 * counts["key-000010"]


# --- reading ------------------------------------------------------------------------------------


def test_generator_is_one_partition_that_ends_after_its_rows() -> None:
    stream = generator_stream(rows=1234, rate=1000)
    assert partitions_of(stream) == ("payments/0",)
    batches = read_to_end(opened(stream))
    assert rows_of(batches) == generated(stream, 0, 1234).to_pylist()
    after = opened(stream).read(1234)
    assert (after.end, after.ended, after.rows.num_rows) == (1234, True, 0)


@pytest.mark.parametrize("count", [2, 5])
def test_partitions_have_the_same_rows_as_one(count: int) -> None:
    one = generator_stream(rows=3000, keys=40, jitter=50, watermark="at")
    stream = generator_stream(rows=3000, keys=40, jitter=50, watermark="at", partitions=count)
    names = partitions_of(stream)
    assert len(names) == count
    parts = [rows_of(read_to_end(opened(stream, name))) for name in names]
    together = [repr(row) for part in parts for row in part]
    whole = generated(one, 0, 3000).to_pylist()
    assert sorted(together) == sorted(map(repr, whole))
    assert generated(stream, 0, 3000).to_pylist() == whole
    users = [{row["user"] for row in part} for part in parts]
    assert sum(map(len, users)) == len(set[str]().union(*users))
    for part, own in zip(parts, users, strict=True):
        assert part == [row for row in whole if row["user"] in own]


def test_partition_without_rows_of_its_own_moves_on_in_event_time() -> None:
    stream = generator_stream(rows=2000, keys=1, watermark="at", partitions=2)
    both = [read_to_end(opened(stream, name)) for name in partitions_of(stream)]
    assert [sum(batch.rows.num_rows for batch in batches) for batches in both] == [2000, 0]
    ends = [[(batch.end, batch.event_time, batch.ended) for batch in some] for some in both]
    assert ends[0] == ends[1]


def test_rows_of_a_partition_are_replayed() -> None:
    stream = generator_stream(rows=3000, keys=40, partitions=3)
    rows = generated(stream, 100, 2900, 1)
    marks = (Mark(100, 0, rows=7), Mark(2900, 0, rows=7 + rows.num_rows))
    found = replay(stream, "payments/1", *marks)
    assert pa.Table.from_batches(found) == rows


def test_reading_resumes_at_any_row() -> None:
    stream = generator_stream(rows=500)
    batches = read_to_end(opened(stream), 123)
    assert rows_of(batches) == generated(stream, 123, 500).to_pylist()


@pytest.mark.parametrize("rate", [1, 7, 1000, 1_000_000])
def test_rate_is_kept(rate: int) -> None:
    clock = FakeClock()
    source = opened(generator_stream(rate=rate), clock=clock)
    position: Position = 0
    while clock.time < 5:
        waited = sum(clock.waited)
        batch = source.read(position)
        position = batch.end
        assert sum(clock.waited) - waited <= 0.201
    assert rate * 4.5 - 1 <= batch.end <= rate * clock.time + 1  # type: ignore[operator]


def test_pause_is_not_followed_by_burst() -> None:
    clock = FakeClock()
    source = opened(generator_stream(rate=1000), clock=clock)
    first = source.read(0)
    clock.time += 60
    second = source.read(first.end)
    assert second.rows.num_rows == 250
    assert source.read(second.end).rows.num_rows <= 50
