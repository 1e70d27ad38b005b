"""Reads blocks of JSON lines into rows: the fast path. `json_rows` decides which rows fit."""

import re

import pyarrow as pa
import pyarrow.json as pj

from tandem_core.model.ddl.types import (
    Array,
    Column,
    DataType,
    Decimal,
    Map,
    Schema,
    Simple,
    Struct,
)
from tandem_runtime.arrow.schema import ArrowType, arrow_schema, arrow_type, contains
from tandem_runtime.sources.base import Rows
from tandem_runtime.sources.formats.json_rows import JsonRows, TooDeep
from tandem_runtime.sources.formats.line_decoding import Decoded, decode, is_blank
from tandem_runtime.sources.formats.value_checks import (
    has_infinity,
    has_negative_exponents,
    in_range,
)

_AROUND_NEWLINES = re.compile(rb"[ \t\r]*\n[ \t\r\n]*")
_ODD_NUMBER = re.compile(rb"[:,\[]\s*(?:-?Inf(?!inity)|-NaN)")
"""Numbers that Arrow accepts although no other JSON reader does."""


class JsonDecoder:
    """Reads blocks of JSON lines into rows of a stream's schema.

    Streams with a BINARY or MAP column are always read line by line: Arrow reads neither.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = arrow_schema(schema)
        self._by_line = JsonRows(schema)
        self._quick = not any(contains(c.type, Simple.BINARY, Map) for c in schema.columns)
        self._decimals = any(contains(c.type, Decimal) for c in schema.columns)
        self._options = pj.ParseOptions(
            explicit_schema=pa.schema([(c.name, _as_read(c.type)) for c in schema.columns]),
            unexpected_field_behavior="ignore",
        )

    def decode(self, block: bytes) -> Decoded:
        """Read a block of lines, each of which ends in a newline."""
        return decode(block, self._schema, self._quickly, self._line)

    def _line(self, line: bytes) -> tuple[object, ...] | None:
        if is_blank(line):
            return None
        try:
            return self._by_line(line)
        except TooDeep:
            # Arrow has no such limit, and would have accepted the line as part of a block.
            rows = self._quickly(line + b"\n")
            if rows is None:
                raise
            return tuple(column.to_pylist()[0] for column in rows.columns)

    def _quickly(self, block: bytes) -> Rows | None:
        if not self._quick or (self._decimals and has_negative_exponents(block)):
            return None
        lines = _one_object_per_line(block)
        if lines is None:
            return None
        rows = self._parse(lines)
        return rows if rows is not None and rows.num_rows == lines.count(b"\n") else None

    def _parse(self, lines: bytes) -> Rows | None:
        # One block gives one chunk; no threads, since a split needs its CPU for other work too.
        options = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        try:
            table = pj.read_json(pa.py_buffer(lines), options, self._options)
            columns = [
                table.column(field.name).combine_chunks().cast(field.type) for field in self._schema
            ]
        except pa.ArrowException:
            return None
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return rows if in_range(rows) and not has_infinity(rows) else None


def _as_read(kind: DataType) -> ArrowType:
    """Return the type to request from Arrow, which reads dates only as text."""
    match kind:
        case Simple.DATE:
            return pa.string()
        case Array(element):
            return pa.list_(_as_read(element))
        case Struct(fields):
            return pa.struct([_field_as_read(field) for field in fields])
        case _:
            return arrow_type(kind)


def _field_as_read(column: Column) -> object:
    return pa.field(column.name, _as_read(column.type))


def _one_object_per_line(block: bytes) -> bytes | None:
    """Return the block without blank lines if every line may be one object, else None.

    Arrow accepts an object that spans several lines, and crashes the process on a block that begins
    with null. Where every line begins and ends with a brace, no object spans lines: within an
    object an opening brace never directly follows a closing one. Then an equal number of rows and
    lines means one row per line.
    """
    if (b"Inf" in block or b"-NaN" in block) and _ODD_NUMBER.search(block):
        return None
    if not _is_utf8(block):
        return None
    if not _is_regular(block):
        block = _AROUND_NEWLINES.sub(b"\n", block).lstrip(b"\n")
        if not _is_regular(block):
            return None
    return block


def _is_regular(block: bytes) -> bool:
    return (
        block.startswith(b"{")
        and block.endswith(b"}\n")
        and block.count(b"}\n{") == block.count(b"\n") - 1
    )


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True
