"""Reads a source partition of files, at the stream's rate."""

from pathlib import Path

import pyarrow as pa

from tandem_core.model.spec import FileFormat, FilesSource, OnError, Stream
from tandem_runtime.arrow.schema import arrow_schema, no_rows
from tandem_runtime.protocol.types import Position
from tandem_runtime.sources.base import (
    LONGEST_WAIT,
    Batch,
    Rejected,
    SourceFailed,
    SourceUnavailable,
    event_time_of,
)
from tandem_runtime.sources.files.file_sequence import Files, OpenFile, Walk
from tandem_runtime.sources.formats.csv_lines import check_csv_schema
from tandem_runtime.sources.formats.file_readers import MOST_ROWS, CsvReader, Piece, TextReader
from tandem_runtime.sources.formats.json_lines import JsonDecoder
from tandem_runtime.sources.formats.parquet_file import ParquetReader
from tandem_runtime.sources.pacing import Clock, Pace

_BATCH_BYTES = 2 * 2**20
"""Size at which a batch is returned; small files are combined."""

_LOOK_AGAIN = 0.05
"""Seconds between two polls of a directory without new rows."""


class FilesPartition:
    """The files of a directory that belong to one partition of a stream.

    Creating it fails if the format cannot hold a column. No file is opened before the first read.
    """

    def __init__(self, stream: Stream, source: FilesSource, index: int, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._schema = arrow_schema(stream.schema)
        self._files = files_of(stream, source, index)
        rate = source.rows_per_second
        self._pace = Pace(None if rate is None else rate / source.partitions)
        self._left_out: list[Rejected] = []
        """Files that were rejected as a whole and not reported yet."""
        self._walk: Walk | None = None

    def read(self, position: Position) -> Batch:
        """Return rows of the next files; see `SourcePartition.read`."""
        try:
            walk = self._walk_from(position)
            piece = self._gather(walk)
            waited = 0.0
            while walk.is_at(position) and not piece.rejected and not walk.ended:
                if waited >= LONGEST_WAIT:
                    break
                pause = min(self._pace.wait() or _LOOK_AGAIN, _LOOK_AGAIN)
                self._clock.wait(pause)
                waited += pause
                piece = self._gather(walk)
        except OSError as error:
            # The next call reads the gathered rows again, from the position.
            self.close()
            raise SourceUnavailable(f"{self._files.directory} cannot be read: {error}") from error
        return self._batch(position, walk, piece)

    def close(self) -> None:
        """Close the open file."""
        if self._walk is not None:
            self._walk.close()
            self._walk = None

    def _walk_from(self, position: Position) -> Walk:
        if self._walk is None or not self._walk.is_at(position):
            self.close()
            self._walk = Walk(self._files, position, self._clock, self._left_out)
        return self._walk

    def _gather(self, walk: Walk) -> Piece:
        """Combine pieces until they fill a batch, or there are no more now."""
        gathered = Piece([], [])
        rows = size = 0
        while size < _BATCH_BYTES and rows < MOST_ROWS:
            due = self._pace.due(self._clock.now(), MOST_ROWS - rows)
            piece = walk.step(due) if due else None
            if piece is None:
                break
            gathered.batches.extend(piece.batches)
            gathered.rejected.extend(piece.rejected)
            taken = sum(batch.num_rows for batch in piece.batches)
            self._pace.took(taken)
            # Rejected rows count too: they may be all rows of a file [12].
            rows += taken + len(piece.rejected)
            size += sum(batch.nbytes for batch in piece.batches)
            size += sum(len(rejected.row or "") for rejected in piece.rejected)
        return gathered

    def _batch(self, position: Position, walk: Walk, piece: Piece) -> Batch:
        rejected = (*self._left_out, *piece.rejected)
        if rejected and self._stream.on_error is OnError.FAIL:
            raise SourceFailed(f"stream {self._stream.name}: {rejected[0]}")
        rows = no_rows(self._schema)
        if piece.batches:
            table = pa.Table.from_batches(piece.batches).combine_chunks()
            rows = table.to_batches()[0] if table.num_rows else rows
        self._left_out.clear()
        return Batch(
            position,
            position if walk.is_at(position) else walk.position,
            rows,
            event_time_of(self._stream, rows),
            ended=walk.ended,
            rejected=rejected,
        )


def files_of(stream: Stream, source: FilesSource, index: int) -> Files:
    """Return the files of a partition, and how they are opened.

    Raises:
        SourceUnsupported: the format cannot represent a column.
    """
    return Files(
        Path(source.path),
        index,
        source.partitions,
        source.bounded,
        _opener(stream, source.format),
    )


def _opener(stream: Stream, file_format: FileFormat) -> OpenFile:
    schema = stream.schema
    match file_format:
        case FileFormat.JSON:
            decoder = JsonDecoder(schema)
            return lambda path, name, offset, end: TextReader(path, name, offset, decoder, end)
        case FileFormat.CSV:
            check_csv_schema(schema)
            return lambda path, name, offset, end: CsvReader(path, name, offset, schema, end)
        case FileFormat.PARQUET:
            wanted = arrow_schema(schema)
            return lambda path, name, offset, end: ParquetReader(path, name, offset, wanted, end)
