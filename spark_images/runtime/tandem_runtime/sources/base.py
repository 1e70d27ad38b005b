"""The interface of source partitions: batches of rows from a position on."""

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tandem_core.model.spec import Stream
from tandem_runtime.protocol.types import BEGINNING_OF_TIME, Position

# pyarrow has no type information, so its values are Any to the checker.
Rows = Any
"""A `pyarrow.RecordBatch`."""

BEGINNING = 0
"""Position before the first row of every source partition."""

SHORTENED = 1024
"""Maximum number of characters kept of a rejected row."""

LONGEST_WAIT = 0.2
"""Seconds that `read` may wait for rows before it returns an empty batch."""

_MICROSECONDS_IN_A_MILLISECOND = 1000


class SourceError(Exception):
    """A source partition cannot be read any further."""


class SourceFailed(SourceError):
    """A row or a file has to be left out and the stream says `onError: fail`.

    A retry does not help.
    """


class SourceUnavailable(SourceError):
    """The source cannot be reached or is misconfigured. A retry may succeed."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was left out or, without an offset, a file or the rest of it."""

    file: str
    offset: int | None
    reason: str
    row: str | None = None
    """The row as in the source, shortened."""

    def __str__(self) -> str:
        where = self.file if self.offset is None else f"{self.file} at {self.offset}"
        what = "" if self.row is None else f": {self.row}"
        return f"{where}: {self.reason}{what}"


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a source partition from `position` up to `end`, in their order.

    Without new rows `end` equals `position`. A batch may move the position without rows: all were
    rejected, or files were empty.
    """

    position: Position
    end: Position
    rows: Rows
    event_time: int
    """Highest event time in milliseconds, rounded down; BEGINNING_OF_TIME without any."""
    ended: bool = False
    """Whether no row will ever follow `end`."""
    forgotten: bool = False
    """Whether the source no longer has `position`. Never set by files and generators: a file that
    is gone is rejected, and reading continues with the next one."""
    rejected: tuple[Rejected, ...] = ()


class SourcePartition(Protocol):
    """One source partition. It belongs to one reader; a second object may read the same rows."""

    def read(self, position: Position) -> Batch:
        """Return rows from a position on, at the stream's pace.

        Blocks for at most about 200 ms without new rows. Continuing from the last `end` is fast;
        any other position may need a search.

        Raises:
            SourceFailed: something has to be left out and the stream says `onError: fail`.
            SourceUnavailable: the source cannot be reached now.
        """

    def close(self) -> None:
        """Close open files. The partition cannot be read any more."""


def event_time_of(stream: Stream, rows: Rows) -> int:
    """Return the highest event time of the rows in milliseconds, rounded down."""
    if stream.watermark is None or rows.num_rows == 0:
        return BEGINNING_OF_TIME
    newest = pc.max(rows.column(stream.watermark.column).cast(pa.int64())).as_py()
    return BEGINNING_OF_TIME if newest is None else newest // _MICROSECONDS_IN_A_MILLISECOND


def shortened(row: bytes) -> str:
    """Return the beginning of a row as text that can be printed and stored."""
    return row[:SHORTENED].decode("utf-8", errors="replace")
