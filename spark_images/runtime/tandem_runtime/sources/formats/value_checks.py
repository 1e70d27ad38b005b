"""Checks for values that vectorised readers and casts accept wrongly."""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tandem_runtime.sources.base import Rows
from tandem_runtime.sources.formats.text_values import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    LAST_DAY,
    LAST_MICROSECOND,
)

_NEGATIVE_EXPONENT = re.compile(rb'(?:^|[:,\[\s"])[+-]?[0-9.]+[eE]-', re.MULTILINE)


def has_negative_exponents(text: bytes) -> bool:
    """Whether a number may be written like 1e-5.

    For a decimal with very many places Arrow reads beyond the end of a table and may return zero;
    without an exponent it checks the number of places.
    """
    if b"e-" not in text and b"E-" not in text:
        return False
    return _NEGATIVE_EXPONENT.search(text) is not None


def in_range(rows: Rows) -> bool:
    """Whether all NOT NULL columns are without nulls, and all values within their type's bounds.

    May be false for rows that fit: those with a null struct whose fields are NOT NULL.
    """
    return all(
        (nullable or not array.null_count) and _is_in_range(array)
        for array, nullable in _all_arrays(rows)
    )


def has_infinity(rows: Rows) -> bool:
    """Whether a floating-point number is infinite; one out of range is read as infinite."""
    return any(
        pc.any(pc.is_inf(array)).as_py()
        for array, _ in _all_arrays(rows)
        if pa.types.is_floating(array.type)
    )


def _all_arrays(rows: Rows) -> Iterator[tuple[Any, bool]]:
    for column, field in zip(rows.columns, rows.schema, strict=True):
        yield from _with_parts(column, field)


def _with_parts(array: Any, field: Any) -> Iterator[tuple[Any, bool]]:
    """Yield an array and the arrays nested in it, each with whether it may have nulls."""
    yield array, field.nullable
    if pa.types.is_struct(field.type):
        for part, inner in zip(array.flatten(), field.type, strict=True):
            yield from _with_parts(part, inner)
    elif pa.types.is_list(field.type):
        yield from _with_parts(array.flatten(), field.type.value_field)
    elif pa.types.is_map(field.type):
        entry = pa.struct([field.type.key_field, field.type.item_field])
        entries = pa.field(field.name, pa.list_(entry), field.nullable)
        yield from _with_parts(array.cast(entries.type), entries)


def _is_in_range(array: Any) -> bool:
    if pa.types.is_timestamp(array.type):
        return _between(array.cast(pa.int64()), FIRST_MICROSECOND, LAST_MICROSECOND)
    if pa.types.is_date(array.type):
        return _between(array.cast(pa.int32()), FIRST_DAY, LAST_DAY)
    if pa.types.is_decimal(array.type) or pa.types.is_string(array.type):
        return _is_valid(array)
    return True


def _is_valid(array: Any) -> bool:
    # Readers accept decimals that exceed the column's precision at its scale, and text of Parquet
    # files that is not UTF-8.
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _between(array: Any, first: int, last: int) -> bool:
    bounds = pc.min_max(array).as_py()
    return bounds["min"] is None or (first <= bounds["min"] and bounds["max"] <= last)
