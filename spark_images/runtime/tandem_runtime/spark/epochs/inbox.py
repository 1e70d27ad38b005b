"""Writes an epoch's rows to the directory where Spark reads them: `<epoch>/<stream>.arrow`.

A file's bytes depend only on the rows, their order and the watermark: they are equal in both twins,
and in every rebuild of the epoch.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tandem_core.model.spec import Stream
from tandem_runtime.arrow.canonical import canonical_batch
from tandem_runtime.arrow.schema import TIMESTAMP, arrow_schema

WATERMARK_COLUMN = "_wm"
"""Null on data rows, the header's watermark on the tick row that begins an epoch."""

_EARLIEST = -62_135_596_800_000
_LATEST = 253_402_300_799_999


def clamped(watermark: int | None) -> int:
    """Clamp a watermark in milliseconds to the years 1 to 9999, Spark's range.

    Without a watermark, before a stream's first one, return the earliest.
    """
    return _EARLIEST if watermark is None else min(max(watermark, _EARLIEST), _LATEST)


def source_schema(stream: Stream) -> pa.Schema:
    """Return the schema of a stream's files: its columns, and a hidden one if it has event time.

    All columns are nullable there, regardless of the DDL: a tick row has no values.
    """
    columns = arrow_schema(stream.schema)
    schema = pa.schema([column.with_nullable(True) for column in columns])
    return schema.append(pa.field(WATERMARK_COLUMN, TIMESTAMP)) if stream.watermark else schema


class Inbox:
    """Writes epochs and removes them. A published epoch is never written again."""

    def __init__(self, directory: Path, streams: Sequence[Stream]) -> None:
        self.directory = directory
        self._streams = streams

    def write(
        self,
        epoch: int,
        batches: Mapping[str, Sequence[pa.RecordBatch]],
        watermarks: Mapping[str, int | None],
    ) -> None:
        """Write one file for each stream; a stream without rows gets a file without rows.

        Raises:
            pyarrow.ArrowInvalid: a batch is not of its stream's schema.
        """
        place = self.directory / str(epoch)
        place.mkdir(parents=True, exist_ok=True)
        for stream in self._streams:
            with pa.OSFile(str(place / f"{stream.name}.arrow"), "wb") as file:
                rows = batches.get(stream.name, ())
                write_stream(file, stream, rows, watermarks.get(stream.name))

    def forget(self, through: int) -> None:
        """Remove the files of an epoch and of those before it."""
        for epoch in self._epochs():
            if epoch <= through:
                shutil.rmtree(self.directory / str(epoch))

    def clear(self) -> None:
        """Remove the files of all epochs."""
        for epoch in self._epochs():
            shutil.rmtree(self.directory / str(epoch))

    def _epochs(self) -> list[int]:
        if not self.directory.exists():
            return []
        return [int(path.name) for path in self.directory.iterdir() if path.name.isdecimal()]


def write_stream(
    file: Any, stream: Stream, batches: Sequence[pa.RecordBatch], watermark: int | None
) -> None:
    """Write the rows of a stream in an epoch, in order.

    Raises:
        pyarrow.ArrowInvalid: a batch is not of the stream's schema.
    """
    schema = source_schema(stream)
    batches = [batch for batch in batches if batch.num_rows]
    with pa.ipc.new_stream(file, schema) as writer:
        if stream.watermark:
            writer.write_batch(_tick(schema, clamped(watermark)))
        if batches:
            writer.write_batch(_rows(stream, schema, batches))


def _rows(stream: Stream, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if not stream.watermark:
        return canonical_batch(schema, batches)
    rows = canonical_batch(pa.schema(list(schema)[:-1]), batches)
    return rows.append_column(schema.field(len(schema) - 1), pa.nulls(rows.num_rows, TIMESTAMP))


def _tick(schema: pa.Schema, watermark: int) -> pa.RecordBatch:
    """Make the row that sets Spark's watermark; it comes first, since a LIMIT stops early."""
    nulls = [pa.nulls(1, field.type) for field in list(schema)[:-1]]
    return pa.RecordBatch.from_arrays(
        [*nulls, pa.array([watermark * 1000], TIMESTAMP)], schema=schema
    )
