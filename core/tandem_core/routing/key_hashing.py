"""Hashes key columns: one stable 64-bit hash for each row.

Equal keys have equal hashes on every machine, in every version of the libraries and for every
layout of the batch (plain, sliced, chunked, dictionary-encoded, 32- or 64-bit offsets, views).
The rules, which never change under the same `HASH_SCHEME`:

| column              | hashed as                                                              |
|---------------------|------------------------------------------------------------------------|
| integers            | XXH64 of the value as 64-bit integer; the width does not matter        |
| boolean             | as the integers 0 and 1                                                |
| date                | as the integer of days since 1970-01-01                                |
| timestamp           | as the integer of microseconds since the epoch, rounded down; unit and |
|                     | time zone do not matter, the instant does (Spark keeps microseconds)   |
| decimal             | the unscaled value: as integer if it fits 64 bits, else XXH64 of its   |
|                     | 16 bytes. The scale belongs to the schema: 1.0 and 1.00 differ         |
| string, binary      | XXH64 of the bytes, so a string equals the binary of its UTF-8         |
| null                | the seed, 42                                                           |
| several columns     | h(1..n) = XXH64 of h(n) as 64-bit integer with h(1..n-1) as seed, so   |
|                     | order matters and (null, x) differs from (x, null)                     |

For one column of BIGINT, STRING, BINARY, TIMESTAMP or DECIMAL up to 18 digits this is exactly
Spark's `xxhash64(column)`; narrower integers and dates need a cast to BIGINT first.

Limits: floating-point keys are refused (equal values have unequal bytes: 0.0 and -0.0, the many
NaNs), so are nested types, times, intervals, and unsigned 64-bit integers, which Spark lacks.
Strings are compared by bytes: columns with a collation other than UTF8_BINARY must not be keys.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tandem_core.routing.errors import UnroutableKeyError
from tandem_core.routing.xxh64 import (
    SEED,
    U64Array,
    hash_byte_strings,
    hash_double_words,
    hash_words,
)

HASH_SCHEME = 1
"""Version of the rules above; part of every serialised routing function."""

NULL_HASH = np.uint64(SEED)

_SAMPLE_ROWS = 8_192
_SAMPLE_PART = 8
"""The sample is at most one in this many rows, so that it costs less than it saves."""
_DECIMAL_BYTES = 16
_MICROSECONDS_IN = {"s": 1_000_000, "ms": 1_000}
_NANOSECONDS_IN_A_MICROSECOND = 1_000
_MILLISECONDS_IN_A_DAY = 86_400_000

# pyarrow has no type information, so its arrays are Any to the checker.
Column = Any
Batch = Any


def hash_keys(batch: Batch, key_columns: Sequence[str]) -> U64Array:
    """Hash the key of each row of a record batch or table.

    Raises:
        UnroutableKeyError: no key column is named, one is missing, or its type cannot be a key.
    """
    if not key_columns:
        raise UnroutableKeyError("no key column is named; a key needs at least one")
    missing = [name for name in key_columns if name not in batch.schema.names]
    if missing:
        raise UnroutableKeyError(
            f"key column {missing[0]!r} is not in the batch; it has {batch.schema.names}"
        )
    return hash_columns([batch.column(name) for name in key_columns], key_columns)


def hash_columns(columns: Sequence[Column], names: Sequence[str]) -> U64Array:
    """Hash keys made of several Arrow columns of equal length; `names` are for error messages."""
    hashes = hash_column(columns[0], names[0])
    for column, name in zip(columns[1:], names[1:], strict=True):
        hashes = hash_words(hash_column(column, name), seed=hashes)
    return hashes


def hash_column(column: Column, name: str) -> U64Array:
    """Hash each value of one Arrow array or chunked array."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 0:
            _hasher_for(_value_type(column.type), name)
            return np.empty(0, dtype=np.uint64)
        return np.concatenate([hash_column(chunk, name) for chunk in column.chunks])
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        return _spread(hash_column(column.dictionary, name), column.indices)
    hashes = _hasher_for(column.type, name)(column)
    if column.null_count:
        hashes[np.asarray(column.is_null())] = NULL_HASH
    return hashes


def _value_type(arrow_type: Any) -> Any:
    return arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type


def _spread(hashes: U64Array, indices: Column) -> U64Array:
    """Give each row the hash of the dictionary value it points to; null rows the null's."""
    with_null = np.append(hashes, NULL_HASH)
    return with_null[_as_integers(pc.fill_null(indices.cast(pa.int64()), len(hashes)))]


def _hasher_for(arrow_type: Any, name: str) -> Callable[[Column], U64Array]:
    """Return the hash function of a type; values under nulls do not matter."""
    for matches, hasher in _HASHERS:
        if matches(arrow_type):
            return hasher
    raise UnroutableKeyError(
        f"key column {name!r} is of type {arrow_type}, which cannot be a key; {_advice(arrow_type)}"
    )


def _advice(arrow_type: Any) -> str:
    if pa.types.is_floating(arrow_type):
        return "cast it to a decimal, an integer or a string, whose equal values are equal bytes"
    if pa.types.is_uint64(arrow_type):
        return "cast it to a signed 64-bit integer or to decimal(20, 0)"
    if pa.types.is_nested(arrow_type):
        return "name its fields as separate key columns"
    return "use a string, binary, integer, boolean, decimal, date or timestamp"


def _hash_integers(column: Column) -> U64Array:
    return hash_words(_as_words(column.cast(pa.int64())))


def _hash_booleans(column: Column) -> U64Array:
    return hash_words(_as_words(column.cast(pa.int8()).cast(pa.int64())))


def _hash_dates(column: Column) -> U64Array:
    if pa.types.is_date32(column.type):
        return hash_words(_as_words(column.view(pa.int32()).cast(pa.int64())))
    milliseconds = _as_integers(column.view(pa.int64()))
    return hash_words((milliseconds // _MILLISECONDS_IN_A_DAY).view(np.uint64))


def _hash_timestamps(column: Column) -> U64Array:
    ticks = column.view(pa.int64())
    unit = column.type.unit
    if unit in _MICROSECONDS_IN:
        # Checked: an instant beyond Spark's range must fail, not wrap around to another key.
        ticks = pc.multiply_checked(ticks, _MICROSECONDS_IN[unit])
    microseconds = _as_integers(ticks)
    if unit == "ns":
        microseconds = microseconds // _NANOSECONDS_IN_A_MICROSECOND
    return hash_words(microseconds.view(np.uint64))


def _hash_decimals(column: Column) -> U64Array:
    wide = column.cast(pa.decimal128(38, column.type.scale))
    start = wide.offset * _DECIMAL_BYTES
    words = np.frombuffer(wide.buffers()[1], dtype="<u8")
    words = words[start // 8 : start // 8 + 2 * len(wide)].reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    hashes = hash_words(low)
    # A value fits 64 bits when its high word only repeats the sign of the low one.
    wider = high != (low.view(np.int64) >> 63).view(np.uint64)
    if wider.any():
        hashes[wider] = hash_double_words(low[wider], high[wider])
    return hashes


def _hash_bytes(column: Column) -> U64Array:
    column = column.cast(pa.large_binary())
    if _repeats(column):
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary
        return _spread(hash_byte_strings(distinct.to_pylist(), len(distinct)), encoded.indices)
    return hash_byte_strings(column.fill_null(b"").to_pylist(), len(column))


def _repeats(column: Column) -> bool:
    """Whether hashing only the distinct values is likely quicker; never alters hashes.

    Of n rows drawn from D equally likely keys about n*n/2D repeat another one, which gives D from
    a sample. Finding the distinct values costs about half of hashing them all.
    """
    sample = min(len(column) // _SAMPLE_PART, _SAMPLE_ROWS)
    repeats = sample - pc.count_distinct(column.slice(0, sample), mode="all").as_py()
    return bool(repeats * len(column) > sample * sample)


def _hash_nulls(column: Column) -> U64Array:
    return np.full(len(column), NULL_HASH, dtype=np.uint64)


def _as_integers(column: Column) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    integers: np.ndarray[tuple[int], np.dtype[np.int64]] = np.asarray(
        pc.fill_null(column, 0), dtype=np.int64
    )
    return integers


def _as_words(column: Column) -> U64Array:
    return _as_integers(column).view(np.uint64)


def _is_integer(arrow_type: Any) -> bool:
    return pa.types.is_integer(arrow_type) and not pa.types.is_uint64(arrow_type)


def _is_bytes(arrow_type: Any) -> bool:
    return any(
        matches(arrow_type)
        for matches in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        )
    )


def _is_decimal(arrow_type: Any) -> bool:
    return pa.types.is_decimal(arrow_type) and not pa.types.is_decimal256(arrow_type)


_HASHERS: tuple[tuple[Callable[[Any], bool], Callable[[Column], U64Array]], ...] = (
    (_is_bytes, _hash_bytes),
    (_is_integer, _hash_integers),
    (pa.types.is_timestamp, _hash_timestamps),
    (pa.types.is_date, _hash_dates),
    (_is_decimal, _hash_decimals),
    (pa.types.is_boolean, _hash_booleans),
    (pa.types.is_null, _hash_nulls),
)
