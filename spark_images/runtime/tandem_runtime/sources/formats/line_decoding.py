"""Decodes blocks of lines into rows: vectorised where all rows fit, else line by line.

A block goes through a vectorised reader. If that refuses it, the block is cut into pieces, which
are tried again and cut once more; only the lines of small pieces are read one by one. So a few bad
rows cost little, and a file of bad rows only costs two or three failed attempts. Whether a row is
accepted, and with which values, never depends on its neighbours.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from tandem_runtime.arrow.schema import ArrowSchema
from tandem_runtime.sources.base import Rows
from tandem_runtime.sources.formats.text_values import Unfit

_PIECES = 16
_SMALL = 16 * 2**10
"""Bytes up to which a piece is not cut any further."""
_BLANK = b" \t\r\n"

ReadBlock = Callable[[bytes], Rows | None]
"""Returns the rows of a block of whole lines, or None if it must be read line by line."""
ReadLine = Callable[[bytes], tuple[object, ...] | None]
"""Returns the values of a line without its newline; None if it has no row. Raises `Unfit`."""


class BadLine(NamedTuple):
    """A line that does not fit: its offset in the block, and the reason."""

    offset: int
    reason: str
    line: bytes


class Decoded(NamedTuple):
    """The rows of a block, and its bad lines."""

    batches: list[Rows]
    bad: list[BadLine]


def decode(block: bytes, schema: ArrowSchema, quickly: ReadBlock, by_line: ReadLine) -> Decoded:
    """Read a block of lines, each of which ends in a newline."""
    decoded = Decoded([], [])

    def read(start: int, block: bytes) -> None:
        rows = quickly(block)
        if rows is not None:
            decoded.batches.append(rows)
            return
        pieces = [] if len(block) <= _SMALL else list(_pieces(block))
        if len(pieces) > 1:
            for offset, piece in pieces:
                read(start + offset, piece)
        else:
            _decode_lines(start, block, schema, by_line, decoded)

    read(0, block)
    return decoded


def is_blank(line: bytes) -> bool:
    """Whether a line has only white space."""
    return not line.strip(_BLANK)


def _pieces(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield parts of about equal size, cut at newlines, with their offsets."""
    size = len(block) // _PIECES + 1
    start = 0
    while start < len(block):
        end = block.find(b"\n", min(start + size, len(block) - 1)) + 1
        yield start, block[start:end]
        start = end


def _decode_lines(
    start: int, piece: bytes, schema: ArrowSchema, by_line: ReadLine, decoded: Decoded
) -> None:
    taken: list[tuple[object, ...]] = []
    for line in piece.split(b"\n")[:-1]:
        try:
            values = by_line(line)
        except Unfit as problem:
            decoded.bad.append(BadLine(start, str(problem), line))
        else:
            if values is not None:
                taken.append(values)
        start += len(line) + 1
    if taken:
        columns = zip(*taken, strict=True)
        arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
        decoded.batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
