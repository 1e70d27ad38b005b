"""Reads blocks of CSV lines into rows: the fast path. `csv_rows` decides which rows fit."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tandem_core.contract.partitions import SourceUnsupported
from tandem_core.model.ddl.types import Array, Decimal, Map, Schema, Simple, Struct
from tandem_runtime.arrow.schema import arrow_schema, contains
from tandem_runtime.sources.base import Rows
from tandem_runtime.sources.formats.csv_rows import CsvRows, split, text_of
from tandem_runtime.sources.formats.line_decoding import Decoded, decode
from tandem_runtime.sources.formats.text_values import Unfit
from tandem_runtime.sources.formats.value_checks import (
    has_infinity,
    has_negative_exponents,
    in_range,
)

_EMPTY_LINES = re.compile(rb"(?:\r?\n)+")
_ZONED = re.compile(r".{10}[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)")


class BadHeader(Exception):
    """The header of a file is unusable; the message says why."""


class CsvDecoder:
    """Reads blocks of CSV lines into rows of a stream's schema.

    Streams with a BINARY column are always read line by line: Arrow does not decode Base64.
    """

    def __init__(self, schema: Schema, header: bytes) -> None:
        """Parse the header line.

        Raises:
            BadHeader: it repeats a name, or names no column of the schema.
        """
        self._names = _names(header)
        if not set(self._names) & set(schema.names):
            raise BadHeader("the header names no column of the schema")
        self._schema = arrow_schema(schema)
        self._by_line = CsvRows(schema, self._names)
        self._decimals = any(contains(c.type, Decimal) for c in schema.columns)
        self._quick = not any(contains(c.type, Simple.BINARY) for c in schema.columns)

    def decode(self, block: bytes) -> Decoded:
        """Read a block of lines, each of which ends in a newline."""
        return decode(block, self._schema, self._quickly, self._by_line)

    def _quickly(self, block: bytes) -> Rows | None:
        # Arrow reads a carriage return alone as the end of a line.
        if not self._quick or block.count(b"\r") != block.count(b"\r\n"):
            return None
        if self._decimals and has_negative_exponents(block):
            return None
        lines = _EMPTY_LINES.sub(b"\n", block).lstrip(b"\n") if _has_empty_lines(block) else block
        first = _regular(lines)
        if first is None:
            return None
        try:
            rows = self._parse(lines, first)
        except pa.ArrowException:
            return None
        one_per_line = rows.num_rows == lines.count(b"\n")
        return rows if one_per_line and in_range(rows) and not has_infinity(rows) else None

    def _parse(self, lines: bytes, first: Sequence[str | None]) -> Rows:
        types = {f.name: self._as_read(f, first) for f in self._schema if f.name in self._names}
        table = self._read(lines, types)
        if (b"0x" in lines or b"0X" in lines) and self._has_hexadecimals(lines):
            raise pa.ArrowInvalid("Arrow takes hexadecimal numbers, nobody else does")
        columns = [
            table.column(field.name).combine_chunks().cast(field.type)
            if field.name in types
            else pa.nulls(table.num_rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _as_read(self, field: Any, first: Sequence[str | None]) -> Any:
        """Return the type to request from Arrow: times all with a zone or none, as the first."""
        if not pa.types.is_timestamp(field.type):
            return field.type
        place = self._names.index(field.name)
        example = first[place] if place < len(first) else None
        return pa.timestamp("us", "UTC" if example and _ZONED.fullmatch(example) else None)

    def _has_hexadecimals(self, lines: bytes) -> bool:
        whole = [f.name for f in self._schema if pa.types.is_integer(f.type)]
        texts = self._read(lines, {name: pa.string() for name in whole if name in self._names})
        return any(
            pc.any(pc.match_substring(column, "0x", ignore_case=True)).as_py()
            for column in texts.columns
        )

    def _read(self, lines: bytes, types: dict[str, Any]) -> Any:
        # One block gives one chunk; no threads, since a split needs its CPU for other work too.
        return pyarrow.csv.read_csv(
            pa.py_buffer(lines),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(lines) + 1, column_names=self._names
            ),
            pyarrow.csv.ParseOptions(),
            pyarrow.csv.ConvertOptions(
                include_columns=list(types),
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
            ),
        )


def check_csv_schema(schema: Schema) -> None:
    """Check that CSV can represent every column.

    Raises:
        SourceUnsupported: a column is nested.
    """
    for column in schema.columns:
        if contains(column.type, Array, Map, Struct):
            raise SourceUnsupported(
                f"column {column.name} is of type {column.type}, for which CSV has no form; "
                "use json or parquet, or read it as STRING"
            )


def _names(header: bytes) -> list[str]:
    try:
        names = split(text_of(header.removesuffix(b"\n")))
    except Unfit as problem:
        raise BadHeader(f"the header cannot be read: {problem}") from None
    plain = [name or "" for name in names]
    repeated = [name for name in plain if name and plain.count(name) > 1]
    if repeated:
        raise BadHeader(f"the header names {repeated[0]} twice")
    # Arrow needs distinct names, even for unnamed columns that are not read.
    return [name or f"\0{place}" for place, name in enumerate(plain)]


def _has_empty_lines(block: bytes) -> bool:
    return block.startswith((b"\n", b"\r\n")) or b"\n\n" in block or b"\n\r\n" in block


def _regular(lines: bytes) -> Sequence[str | None] | None:
    """Return the values of the first line; None if Arrow may not read the lines.

    An unclosed quote swallows ends of lines, which the number of rows reveals, except in the last
    line.
    """
    last = lines[lines.rfind(b"\n", 0, -1) + 1 : -1]
    try:
        lines.decode()
        split(text_of(last))
        return split(text_of(lines[: lines.index(b"\n")]))
    except (Unfit, UnicodeDecodeError, ValueError):
        return None
