"""Streams, files and a clock for tests of sources."""

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tandem_core.model.ddl.parser import parse_schema
from tandem_core.model.fields.quantities import Duration
from tandem_core.model.spec import (
    FileFormat,
    FilesSource,
    GeneratorSource,
    OnError,
    Stream,
    Watermark,
)
from tandem_runtime.protocol.types import Position
from tandem_runtime.sources.base import Batch, Rejected, SourcePartition
from tandem_runtime.sources.factory import open_partition
from tandem_runtime.sources.formats.text_values import Unfit
from tandem_runtime.sources.pacing import Clock

PAYMENTS = "user STRING, amount BIGINT, at TIMESTAMP"


class FakeClock:
    """A clock that goes on only when somebody waits."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waited: list[float] = []

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.time += seconds


def files_stream(
    path: Path,
    *,
    schema: str = PAYMENTS,
    file_format: str = "json",
    bounded: bool = True,
    partitions: int = 1,
    rate: int | None = None,
    on_error: OnError = OnError.DEAD_LETTER,
) -> Stream:
    parsed = parse_schema(schema)
    has_time = parsed.column("at") is not None
    return Stream(
        name="payments",
        schema=parsed,
        key=(parsed.names[0],),
        source=FilesSource(
            path=str(path),
            format=FileFormat(file_format),
            bounded=bounded,
            partitions=partitions,
            rows_per_second=rate,
        ),
        watermark=Watermark(column="at", delay=Duration(1000)) if has_time else None,
        on_error=on_error,
    )


def generator_stream(
    *,
    schema: str = PAYMENTS,
    key: Sequence[str] = ("user",),
    rate: int = 1000,
    jitter: int = 0,
    watermark: str | None = None,
    **source: Any,
) -> Stream:
    return Stream(
        name="payments",
        schema=parse_schema(schema),
        key=tuple(key),
        source=GeneratorSource(
            **{"keys": 100, "seed": 7, **source}, rows_per_second=rate, jitter=Duration(jitter)
        ),
        watermark=None if watermark is None else Watermark(column=watermark, delay=Duration(0)),
    )


_opened: list[SourcePartition] = []


def opened(
    stream: Stream, partition: str = "payments/0", clock: Clock | None = None
) -> SourcePartition:
    """A source partition that is closed after the test."""
    _opened.append(open_partition(stream, partition, clock or FakeClock()))
    return _opened[-1]


def close_all() -> None:
    while _opened:
        _opened.pop().close()


def read_to_end(source: SourcePartition, position: Position = 0) -> list[Batch]:
    """All batches of a bounded source."""
    batches = [source.read(position)]
    while not batches[-1].ended:
        batches.append(source.read(batches[-1].end))
        assert len(batches) < 10_000
    return batches


def read_now(source: SourcePartition, position: Position) -> list[Batch]:
    """What a watched source has, until it answers that there is nothing."""
    batches = [source.read(position)]
    while batches[-1].end != batches[-1].position:
        batches.append(source.read(batches[-1].end))
        assert len(batches) < 10_000
    return batches


def rows_of(batches: Iterable[Batch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.rows.to_pylist()]


def column_of(batches: Iterable[Batch], name: str) -> list[Any]:
    return [value for batch in batches for value in batch.rows.column(name).to_pylist()]


def rejected_of(batches: Iterable[Batch]) -> list[Rejected]:
    return [rejected for batch in batches for rejected in batch.rejected]


def json_lines(users: Iterable[object]) -> bytes:
    return b"".join(json.dumps({"user": user}).encode() + b"\n" for user in users)


def write(directory: Path, name: str, content: bytes) -> Path:
    """A file that appears at once, gzipped if its name says so."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def only_value(decoded: Any) -> Any:
    """The one value of column `a` that was decoded; times as Arrow's numbers.

    Raises:
        Unfit: it was rejected.
    """
    if decoded.bad:
        raise Unfit(decoded.bad[0].reason)
    column = decoded.batches[0].column("a")
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    return column.to_pylist()[0]
