"""Generates random values of every type from the seed, the column and the row number alone.

Columns are uniform unless they are keys or event times: whole numbers, decimals and floating-point
numbers below 1000 (TINYINT below 100), one of a thousand texts, dates and times of the year 2024,
lists of up to three elements, maps of up to two entries. Values are never null.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from tandem_core.model.ddl.types import Array, Column, DataType, Decimal, Map, Simple, Struct
from tandem_runtime.arrow.schema import arrow_type

ArrowArray = Any
U64Array = np.ndarray[tuple[int], np.dtype[np.uint64]]
I64Array = np.ndarray[tuple[int], np.dtype[np.int64]]
F64Array = np.ndarray[tuple[int], np.dtype[np.float64]]

BASE_DAY = 19_723
"""2024-01-01, in days since 1970."""

BASE = BASE_DAY * 86_400_000_000
"""The same in microseconds."""

_SECOND = 1_000_000
_YEAR_IN_DAYS = 366
_MOST_ELEMENTS = 3
_MOST_ENTRIES = 2
_BINARY_BYTES = 8
_KEY_DIGITS = 6
_WORDS = 2**62
"""Upper limit of whole numbers, so that they fit in signed 64 bits."""


class Draws:
    """Random numbers for a range of rows; a row's numbers do not depend on the other rows."""

    def __init__(self, seed: int, rows: I64Array) -> None:
        self.rows = rows
        self._seed = seed
        self._steps = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    def bits(self, what: str) -> U64Array:
        """Return 64 random bits for each row (SplitMix64), independent for each `what`."""
        start = np.uint64(xxhash.xxh64_intdigest(what.encode(), self._seed % 2**64))
        mixed = self._steps + start
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))

    def uniform(self, what: str) -> F64Array:
        """Return a number in [0, 1) for each row."""
        return (self.bits(what) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, what: str, limit: int) -> I64Array:
        """Return a whole number in [0, limit) for each row."""
        return (self.uniform(what) * limit).astype(np.int64)

    def several(self, counts: I64Array, most: int) -> "Draws":
        """Return draws for the parts of each row: `counts` per row, at most `most`."""
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return Draws(self._seed, np.repeat(self.rows, counts) * most + places)


def drawn(kind: DataType, what: str, draws: Draws) -> ArrowArray:
    """Return a column of random values; `what` is its name, or its path in a nested column."""
    match kind:
        case Simple():
            return _SIMPLE[kind](what, draws)
        case Decimal(precision, scale):
            return decimals(kind, draws.below(what, min(10**precision, 1000 * 10**scale, _WORDS)))
        case Array(element):
            return _list(element, what, draws)
        case Map(key, value):
            return _map(key, value, what, draws)
        case Struct(fields):
            return _struct(fields, what, draws)


def keys(kind: DataType, ranks: I64Array) -> ArrowArray:
    """Return a key for each rank: equal for equal ranks, regardless of the column's name.

    Texts are `key-000042`, numbers the rank modulo the type's range, dates and times the rank in
    days or seconds after the beginning of 2024. So streams with the same key type can be joined.
    """
    match kind:
        case Decimal(precision):
            return decimals(kind, ranks % min(10**precision, _WORDS))
        case Simple.BOOLEAN:
            return pa.array(ranks % 2 == 1)
        case Simple.STRING | Simple.BINARY:
            digits = pc.utf8_lpad(pa.array(ranks).cast(pa.string()), _KEY_DIGITS, "0")
            return pc.binary_join_element_wise("key-", digits, "").cast(arrow_type(kind))
        case Simple.DATE:
            return pa.array((BASE_DAY + ranks % 100_000).astype(np.int32)).cast(pa.date32())
        case Simple.TIMESTAMP | Simple.TIMESTAMP_NTZ:
            return pa.array(BASE + ranks * _SECOND).cast(arrow_type(kind))
        case _:
            target = arrow_type(kind)
            return pa.array(ranks % min(1 << (target.bit_width - 1), _WORDS)).cast(target)


def decimals(kind: Decimal, units: I64Array) -> ArrowArray:
    """Return decimals from non-negative counts of units of their last digit."""
    words = np.zeros((len(units), 2), dtype=np.int64)
    words[:, 0] = units
    return pa.Array.from_buffers(arrow_type(kind), len(units), [None, pa.py_buffer(words)])


def _whole(limit: int, kind: Simple) -> Callable[[str, Draws], ArrowArray]:
    return lambda what, draws: pa.array(draws.below(what, limit)).cast(arrow_type(kind))


def _floating(kind: Simple) -> Callable[[str, Draws], ArrowArray]:
    return lambda what, draws: pa.array(draws.uniform(what) * 1000).cast(arrow_type(kind))


def _time(kind: Simple) -> Callable[[str, Draws], ArrowArray]:
    limit = _YEAR_IN_DAYS * 86_400 * _SECOND
    return lambda what, draws: pa.array(BASE + draws.below(what, limit)).cast(arrow_type(kind))


def _boolean(what: str, draws: Draws) -> ArrowArray:
    return pa.array(draws.below(what, 2) == 1)


def _text(what: str, draws: Draws) -> ArrowArray:
    return _TEXTS.take(pa.array(draws.below(what, len(_TEXTS))))


def _binary(what: str, draws: Draws) -> ArrowArray:
    size = len(draws.rows)
    ends = np.arange(size + 1, dtype=np.int32) * np.int32(_BINARY_BYTES)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(draws.bits(what))]
    return pa.Array.from_buffers(pa.binary(), size, buffers)


def _date(what: str, draws: Draws) -> ArrowArray:
    days = (BASE_DAY + draws.below(what, _YEAR_IN_DAYS)).astype(np.int32)
    return pa.array(days).cast(pa.date32())


def _list(element: DataType, what: str, draws: Draws) -> ArrowArray:
    counts = draws.below(f"{what}#", _MOST_ELEMENTS + 1)
    parts = draws.several(counts, _MOST_ELEMENTS)
    return pa.ListArray.from_arrays(_ends(counts), drawn(element, f"{what}[]", parts))


def _map(key: DataType, value: DataType, what: str, draws: Draws) -> ArrowArray:
    counts = draws.below(f"{what}#", _MOST_ENTRIES + 1)
    parts = draws.several(counts, _MOST_ENTRIES)
    names = keys(key, parts.rows % _MOST_ENTRIES)
    return pa.MapArray.from_arrays(_ends(counts), names, drawn(value, f"{what}{{}}", parts))


def _struct(fields: tuple[Column, ...], what: str, draws: Draws) -> ArrowArray:
    parts = [drawn(field.type, f"{what}.{field.name}", draws) for field in fields]
    return pa.StructArray.from_arrays(parts, fields=list(arrow_type(Struct(fields))))


def _ends(counts: I64Array) -> ArrowArray:
    return pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))


_TEXTS = pa.array([f"text-{number:03}" for number in range(1000)])
_SIMPLE: Mapping[Simple, Callable[[str, Draws], ArrowArray]] = {
    Simple.BOOLEAN: _boolean,
    Simple.TINYINT: _whole(100, Simple.TINYINT),
    Simple.SMALLINT: _whole(1000, Simple.SMALLINT),
    Simple.INT: _whole(1000, Simple.INT),
    Simple.BIGINT: _whole(1000, Simple.BIGINT),
    Simple.FLOAT: _floating(Simple.FLOAT),
    Simple.DOUBLE: _floating(Simple.DOUBLE),
    Simple.STRING: _text,
    Simple.BINARY: _binary,
    Simple.DATE: _date,
    Simple.TIMESTAMP: _time(Simple.TIMESTAMP),
    Simple.TIMESTAMP_NTZ: _time(Simple.TIMESTAMP_NTZ),
}
