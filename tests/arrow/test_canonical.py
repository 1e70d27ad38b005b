"""Equal rows are equal bytes, whatever became of them on their way."""

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_core.model.ddl.parser import parse_schema
from tandem_runtime.arrow.canonical import canonical_batch
from tandem_runtime.arrow.schema import arrow_schema

SCHEMA = arrow_schema(
    parse_schema(
        "b BOOLEAN, i TINYINT, n INT, d DOUBLE, s STRING, x BINARY, day DATE, t TIMESTAMP, "
        "m DECIMAL(20,3), a ARRAY<STRING>, p MAP<STRING,INT>, "
        "r STRUCT<u: INT, v: ARRAY<STRUCT<w: STRING>>>"
    )
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "b": st.booleans(),
    "i": st.integers(-100, 100),
    "n": st.integers(-9, 9),
    "d": st.floats(allow_nan=False),
    "s": st.text(max_size=3),
    "x": st.binary(max_size=3),
    "day": st.just(date(2024, 2, 29)),
    "t": st.just(datetime(2024, 2, 29, tzinfo=UTC)),
    "m": st.just(Decimal("17.125")),
    "a": st.lists(st.none() | st.text(max_size=2), max_size=3),
    "p": st.lists(st.tuples(st.text(max_size=2), st.none() | st.integers(0, 9)), max_size=2),
    "r": st.fixed_dictionaries(
        {
            "u": st.none() | st.integers(0, 9),
            "v": st.none() | st.lists(st.none() | st.just({"w": "x"}), max_size=2),
        }
    ),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | one for name, one in VALUES.items()}), max_size=24
)


def written(batch: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def garbled(column: Any, filler: Any) -> Any:
    """The same values, with those of a filler under the nulls and around the ends."""
    kind = column.type
    taken = pa.concat_arrays([filler, column, filler]).slice(len(filler), len(column))
    if not column.null_count:
        return taken
    # What a vectorised reader leaves under a null is anything.
    under = filler.take(pa.array([n % len(filler) for n in range(len(column))]))
    full = pa.compute.if_else(column.is_valid(), column, under)
    full = pa.concat_arrays([full])
    validity = column.is_valid().buffers()[1]
    children = None
    if pa.types.is_struct(kind):
        children = [pa.concat_arrays([full.field(n)]) for n in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(column), [validity], children=children)
    if pa.types.is_map(kind):
        entries = [full.keys, full.items]
        children = [pa.StructArray.from_arrays(entries, fields=list(kind.field(0).type))]
        return pa.Array.from_buffers(
            kind, len(column), [validity, full.buffers()[1]], children=children
        )
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(
            kind, len(column), [validity, full.buffers()[1]], children=[full.values]
        )
    return pa.Array.from_buffers(kind, len(column), [validity, *full.buffers()[1:]])


FILLER = pa.RecordBatch.from_pylist(
    [
        {
            "b": True, "i": 77, "n": 7, "d": 7.5, "s": "garbage", "x": b"garbage",
            "day": date(1999, 9, 9), "t": datetime(1999, 9, 9, tzinfo=UTC),
            "m": Decimal("9.999"), "a": ["g", None], "p": [("g", 7)],
            "r": {"u": 7, "v": [{"w": "g"}]},
        }
    ],
    schema=SCHEMA,
)  # fmt: skip


def spoilt(batch: Any) -> Any:
    columns = [
        garbled(column, filler)
        for column, filler in zip(batch.columns, FILLER.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.lists(st.integers(0, 24), max_size=3))
def test_bytes_depend_on_values_alone(rows: list[dict[str, Any]], cuts: list[int]) -> None:
    whole = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    borders = sorted({0, len(rows), *(cut for cut in cuts if cut <= len(rows))})
    pieces = [whole.slice(a, b - a) for a, b in pairwise(borders)] or [whole]
    right = canonical_batch(SCHEMA, [whole])
    assert right.to_pylist() == whole.to_pylist()
    for batches in ([spoilt(whole)], pieces, [spoilt(piece) for piece in pieces]):
        assert [row for batch in batches for row in batch.to_pylist()] == whole.to_pylist()
        assert written(canonical_batch(SCHEMA, batches)) == written(right)


def test_rows_of_another_schema_are_refused() -> None:
    with pytest.raises((pa.ArrowInvalid, TypeError)):
        canonical_batch(pa.schema([("a", pa.int64())]), [pa.record_batch({"a": ["x"]})])
