"""Reads a Parquet file in batches of rows; offsets are row numbers."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tandem_runtime.arrow.schema import ArrowSchema
from tandem_runtime.sources.base import SHORTENED, Rejected, Rows
from tandem_runtime.sources.formats.file_readers import MOST_ROWS, Piece
from tandem_runtime.sources.formats.parquet_cast import as_wanted, mismatch
from tandem_runtime.sources.formats.text_values import Unfit

_BATCH_BYTES = 2 * 2**20


class ParquetReader:
    """Reads a Parquet file from a row on.

    A truncated file counts as unfinished, whether it is still being written or damaged. If a column
    is of another kind than the schema says, the whole file is rejected.
    """

    def __init__(
        self, path: Path, name: str, offset: int, schema: ArrowSchema, end: int | None = None
    ) -> None:
        """Open the file and ignore rows from number `end` on.

        Raises:
            OSError: it cannot be opened, or does not exist.
        """
        self.offset = offset
        self._end = end
        self._name = name
        self._schema = schema
        self._raw = path.open("rb")
        self._left: Rows | None = None
        """Rows that were read and not returned yet."""
        self._broken: str | None = None
        self._batches: Iterator[Rows] = iter(())
        try:
            self._batches = self._open(_opened(self._raw))
        except pa.ArrowException as error:
            self._broken = f"the file cannot be read: {error}"

    def read(self, most: int) -> Piece:
        """Return the next rows."""
        if self._end is not None:
            most = min(most, self._end - self.offset)
        if most and not self._left:
            self._left = self._next()
        if not most or not self._left:
            return Piece([], [])
        rows = self._left.slice(0, min(most, MOST_ROWS))
        self._left = self._left.slice(rows.num_rows)
        piece = Piece([], [])
        self._sort_out(rows, self.offset, piece)
        self.offset += rows.num_rows
        return piece

    def finish(self) -> Piece:
        """Reject the file, or the rest of it, if it cannot be read; once."""
        if self._broken is None:
            return Piece([], [])
        rejected = Rejected(self._name, None, self._broken)
        self._broken = None
        return Piece([], [rejected])

    @property
    def unfinished(self) -> bool:
        """Whether the file, or the rest of it, cannot be read and was not rejected yet."""
        return self._broken is not None

    def size_and_change(self) -> tuple[int, int]:
        """Return the size of the file, and the time of its last change."""
        found = os.fstat(self._raw.fileno())
        return found.st_size, found.st_ctime_ns

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def _open(self, file: Any) -> Iterator[Rows]:
        self._broken = mismatch(file.schema_arrow, self._schema)
        if self._broken:
            return iter(())
        names = [name for name in self._schema.names if name in file.schema_arrow.names]
        return _batches(file, names, self.offset)

    def _next(self) -> Rows | None:
        try:
            return next(self._batches, None)
        except (pa.ArrowException, OSError) as error:
            # PyArrow reports damage as an OSError too, but only system errors have an errno.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self._broken = f"the file is damaged from row {self.offset} on: {error}"
            self._batches = iter(())
            return None

    def _sort_out(self, rows: Rows, offset: int, piece: Piece) -> None:
        """Keep the rows that fit; find the others by bisection and reject them."""
        try:
            piece.batches.append(as_wanted(rows, self._schema))
        except Unfit as problem:
            if rows.num_rows == 1:
                piece.rejected.append(Rejected(self._name, offset, str(problem), _written(rows)))
                return
            half = rows.num_rows // 2
            self._sort_out(rows.slice(0, half), offset, piece)
            self._sort_out(rows.slice(half), offset + half, piece)


def _opened(raw: BinaryIO) -> Any:
    return pq.ParquetFile(raw, buffer_size=_BATCH_BYTES, page_checksum_verification=True)


def _batches(file: Any, columns: list[str], offset: int) -> Iterator[Rows]:
    """Yield batches of about equal size from a row on, one row group after the other."""
    for group in range(file.metadata.num_row_groups):
        about = file.metadata.row_group(group)
        if offset >= about.num_rows:
            offset -= about.num_rows
            continue
        row_bytes = max(1, about.total_byte_size // about.num_rows)
        size = min(MOST_ROWS, max(1, _BATCH_BYTES // row_bytes))
        for batch in file.iter_batches(size, row_groups=[group], columns=columns):
            if offset < batch.num_rows:
                yield batch.slice(offset)
            offset = max(0, offset - batch.num_rows)


def _written(rows: Rows) -> str:
    try:
        return json.dumps(rows.to_pylist()[0], default=str, ensure_ascii=False)[:SHORTENED]
    except (ArithmeticError, ValueError):
        return "a row that cannot be written as text"
