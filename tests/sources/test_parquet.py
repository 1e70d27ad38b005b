"""Parquet files as a source: types of the same kind, rows that do not fit, damage."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.builders import (
    FakeClock,
    files_stream,
    opened,
    read_now,
    read_to_end,
    rejected_of,
    rows_of,
)

from tandem_core.model.spec import OnError
from tandem_runtime.sources.base import SourceFailed

NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)


def read_back(directory: Path, array: Any, kind: str) -> tuple[list[Any], list[Any]]:
    """What a column of a file gives in a column of a stream: values and rejections."""
    pq.write_table(pa.table({"a": array, "other": pa.nulls(len(array))}), directory / "a.parquet")
    stream = files_stream(directory, schema=f"a {kind}, missing INT", file_format="parquet")
    batches = read_to_end(opened(stream))
    assert all(row["missing"] is None for row in rows_of(batches))
    return [row["a"] for row in rows_of(batches)], rejected_of(batches)


@pytest.mark.parametrize(
    ("array", "kind", "values"),
    [
        (pa.array([1, None], pa.int64()), "TINYINT", [1, None]),
        (pa.array([1], pa.uint32()), "BIGINT", [1]),
        (pa.array([1.5], pa.float32()), "DOUBLE", [1.5]),
        (pa.array([float("inf")], pa.float64()), "FLOAT", [float("inf")]),
        (pa.array([Decimal("1.50")]), "DECIMAL(5,1)", [Decimal("1.5")]),
        (pa.array(["x"]).dictionary_encode(), "STRING", ["x"]),
        (pa.array([b"x"]), "STRING", ["x"]),
        (pa.array([NOON.replace(tzinfo=None)], pa.timestamp("ms")), "TIMESTAMP", [NOON]),
        (
            pa.array([1_001], pa.timestamp("ns")).cast(pa.timestamp("ns", "UTC")),
            "TIMESTAMP_NTZ",
            [datetime.datetime(1970, 1, 1, 0, 0, 0, 1)],
        ),
        (pa.array([datetime.date(2024, 1, 1)]), "DATE", [datetime.date(2024, 1, 1)]),
        (pa.array([{"y": 1, "x": 2}]), "STRUCT<x: INT, z: INT>", [{"x": 2, "z": None}]),
        (pa.array([[1]]), "ARRAY<INT>", [[1]]),
        (
            pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "MAP<STRING, INT>",
            [[("k", 1)]],
        ),
        (pa.nulls(1), "INT", [None]),
    ],
)
def test_types_of_same_kind_are_converted(
    tmp_path: Path, array: Any, kind: str, values: list[Any]
) -> None:
    assert read_back(tmp_path, array, kind) == (values, [])


@pytest.mark.parametrize(
    ("array", "kind", "values", "bad"),
    [
        (pa.array([1, 300, 2]), "TINYINT", [1, 2], [1]),
        (pa.array([1e300, 1.0]), "FLOAT", [1.0], [0]),
        (pa.array([Decimal("1.23"), Decimal("1.20")]), "DECIMAL(5,1)", [Decimal("1.2")], [0]),
        (pa.array([b"x", b"\xff"]), "STRING", ["x"], [1]),
        (pa.array([None, 1], pa.int32()), "INT NOT NULL", [1], [0]),
        (
            pa.array([2**62, 0], pa.timestamp("ms")),
            "TIMESTAMP_NTZ",
            [datetime.datetime(1970, 1, 1)],
            [0],
        ),
        (pa.array([[300], [3]]), "ARRAY<TINYINT>", [[3]], [0]),
    ],
)
def test_unfit_values_are_rejected_by_row(
    tmp_path: Path, array: Any, kind: str, values: list[Any], bad: list[int]
) -> None:
    found, rejected = read_back(tmp_path, array, kind)
    assert found == values
    assert [(r.file, r.offset) for r in rejected] == [("a.parquet", row) for row in bad]
    assert all(r.row for r in rejected)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array(["1"]), "INT"),
        (pa.array([1]), "STRING"),
        (pa.array([1]), "DOUBLE"),
        (pa.array([NOON]), "DATE"),
        (pa.array([[["x"]]]), "ARRAY<ARRAY<INT>>"),
        (pa.array([{"x": "1"}]), "STRUCT<x: INT>"),
        (pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())), "MAP<STRING, INT>"),
    ],
)
def test_file_with_column_of_another_kind_is_rejected_as_whole(
    tmp_path: Path, array: Any, kind: str
) -> None:
    found, rejected = read_back(tmp_path, array, kind)
    assert found == []
    assert [(r.file, r.offset) for r in rejected] == [("a.parquet", None)]


def test_file_with_ambiguous_or_missing_columns_is_rejected_as_whole(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": [1]}), tmp_path / "b.parquet")
    stream = files_stream(tmp_path, schema="a INT", file_format="parquet")
    assert [r.file for r in rejected_of(read_to_end(opened(stream)))] == ["a.parquet", "b.parquet"]


def test_many_bad_rows_are_all_found(tmp_path: Path) -> None:
    values = [n if n % 7 else 1000 for n in range(2000)]
    fitting = [n for n in values if n <= 127]
    found, rejected = read_back(tmp_path, pa.array(values), "TINYINT")
    assert found == fitting
    assert [r.offset for r in rejected] == [row for row, n in enumerate(values) if n > 127]


def test_damaged_file_is_rejected_and_next_one_read(tmp_path: Path) -> None:
    stream = files_stream(tmp_path, schema="a INT", file_format="parquet")
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    pq.write_table(pa.table({"a": list(range(10_000))}), tmp_path / "b.parquet", compression="zstd")
    damaged = bytearray((tmp_path / "b.parquet").read_bytes())
    damaged[4:200] = b"\xff" * 196
    (tmp_path / "b.parquet").write_bytes(damaged)
    pq.write_table(pa.table({"a": [7]}), tmp_path / "c.parquet")
    batches = read_to_end(opened(stream))
    assert rows_of(batches) == [{"a": 7}]
    assert [(r.file, r.offset) for r in rejected_of(batches)] == [
        ("a.parquet", None),
        ("b.parquet", None),
    ]


def test_damaged_file_fails_stream_with_on_error_fail(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    stream = files_stream(tmp_path, schema="a INT", file_format="parquet", on_error=OnError.FAIL)
    with pytest.raises(SourceFailed, match=r"a\.parquet"):
        opened(stream).read(0)


def test_file_still_being_written_is_waited_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / ".whole")
    whole = (tmp_path / ".whole").read_bytes()
    path = tmp_path / "a.parquet"
    path.write_bytes(whole[:50])
    clock = FakeClock()
    source = opened(
        files_stream(tmp_path, schema="a INT", file_format="parquet", bounded=False), clock=clock
    )
    first = read_now(source, 0)
    assert not rows_of(first)
    assert not rejected_of(first)
    assert clock.time < 2
    path.write_bytes(whole)
    assert rows_of(read_now(source, first[-1].end)) == [{"a": 1}, {"a": 2}]


def test_large_rows_are_read_in_small_batches(tmp_path: Path) -> None:
    texts = [f"{n}" * 200_000 for n in range(10)] * 5
    pq.write_table(
        pa.table({"a": texts}), tmp_path / "a.parquet", compression="none", use_dictionary=False
    )
    batches = read_to_end(opened(files_stream(tmp_path, schema="a STRING", file_format="parquet")))
    assert [row["a"] for row in rows_of(batches)] == texts
    assert max(batch.rows.nbytes for batch in batches) < 5 * 2**20
