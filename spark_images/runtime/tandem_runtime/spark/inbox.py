"""The directory where a replica leaves an epoch's rows for Spark: `<epoch>/<stream>.arrow`."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from tandem.model.spec import Stream
from tandem_runtime.arrow_schema import TIMESTAMP, arrow_schema

WATERMARK_COLUMN = "_wm"
"""Null on rows, the header's watermark on the tick row that begins an epoch."""

_EARLIEST = -62_135_596_800_000
_LATEST = 253_402_300_799_999


def clamped(watermark: int | None) -> int:
    """Bring a watermark, in milliseconds, into the years 1 to 9999, which is all Spark knows.

    A stream of which nothing is known yet has none: the earliest.
    """
    return _EARLIEST if watermark is None else min(max(watermark, _EARLIEST), _LATEST)


def source_schema(stream: Stream) -> pa.Schema:
    """Give the schema of a stream's files: its columns, and the hidden one if it has event time.

    All columns may be null there, whatever the DDL says: a tick row has no values.
    """
    columns = arrow_schema(stream.schema)
    schema = pa.schema([column.with_nullable(True) for column in columns])
    return schema.append(pa.field(WATERMARK_COLUMN, TIMESTAMP)) if stream.watermark else schema


class Inbox:
    """Writes epochs and removes them. What is published is never written again."""

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
            schema = source_schema(stream)
            rows = _columns(stream, schema, batches.get(stream.name, ()))
            with (
                pa.OSFile(str(place / f"{stream.name}.arrow"), "wb") as file,
                pa.ipc.new_stream(file, schema) as writer,
            ):
                if stream.watermark:
                    writer.write_batch(_tick(schema, clamped(watermarks.get(stream.name))))
                for batch in rows:
                    writer.write_batch(batch)

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


def _columns(
    stream: Stream, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows == 0:
            continue
        hidden = [pa.nulls(batch.num_rows, TIMESTAMP)] if stream.watermark else []
        yield pa.RecordBatch.from_arrays([*batch.columns, *hidden], schema=schema)


def _tick(schema: pa.Schema, watermark: int) -> pa.RecordBatch:
    """Make the row that dictates Spark's watermark. It comes first: a LIMIT never reads a last."""
    nulls = [pa.nulls(1, field.type) for field in list(schema)[:-1]]
    return pa.RecordBatch.from_arrays(
        [*nulls, pa.array([watermark * 1000], TIMESTAMP)], schema=schema
    )
