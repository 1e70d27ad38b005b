"""Converts rows to a canonical form that depends on their values alone.

Equal rows may differ invisibly: how they are cut into batches, the bytes under a null and beyond
the end of a slice, which part of a list's values is used. Written as Arrow such rows differ in
their bytes. Here they become one record batch without any of that, so that equal rows are equal
bytes.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# pyarrow has no type information, so its values are Any to the checker.
Column = Any
Batch = Any


def canonical_batch(schema: Any, batches: Sequence[Batch]) -> Batch:
    """Combine batches into one canonical batch, under a schema with the same types.

    Raises:
        pyarrow.ArrowInvalid: a batch is not of that schema's types.
    """
    columns = [
        canonical_column(pa.concat_arrays([batch.column(index) for batch in batches]))
        for index in range(len(schema))
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def canonical_column(column: Column) -> Column:
    """Drop the invisible bytes of a column, which must start with its buffers, as no slice does."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _struct(column)
    if pa.types.is_map(kind):
        return _list(_as_list(column), kind)
    if pa.types.is_list(kind):
        return _list(column, kind)
    if column.null_count == 0:
        return column
    filled = pc.fill_null(column, _nothing(kind))
    return pa.Array.from_buffers(kind, len(column), [_validity(column), *filled.buffers()[1:]])


def _nothing(kind: Any) -> Any:
    """The value to store under a null."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar("" if pa.types.is_string(kind) else b"", kind)
    zero = Decimal(0) if pa.types.is_decimal(kind) else 0
    return pa.scalar(False if pa.types.is_boolean(kind) else zero, kind)


def _validity(column: Column) -> Any:
    """The validity bitmap, from the first bit on; None without nulls."""
    return pc.is_valid(column).buffers()[1] if column.null_count else None


def _struct(column: Column) -> Column:
    # Flattened, a field of a struct that is null is null too.
    fields = [canonical_column(pa.concat_arrays([field])) for field in column.flatten()]
    return pa.Array.from_buffers(column.type, len(column), [_validity(column)], children=fields)


def _list(column: Column, kind: Any) -> Column:
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    # Flattened, lists that are null have no values.
    values = canonical_column(pa.concat_arrays([column.flatten()]))
    buffers = [_validity(column), offsets.buffers()[1]]
    return pa.Array.from_buffers(kind, len(column), buffers, children=[values])


def _as_list(column: Column) -> Column:
    """A map as the list of its entries: Arrow has functions for lists that maps lack."""
    entries = column.type.field(0)
    values = pa.StructArray.from_arrays([column.keys, column.items], fields=list(entries.type))
    buffers = column.buffers()[:2]
    return pa.Array.from_buffers(pa.list_(entries), len(column), buffers, children=[values])
