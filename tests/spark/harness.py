"""A replica's engine, driven epoch by epoch, and what it told."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_runtime.arrow.schema import arrow_schema
from tandem_runtime.spark.epochs.engine import Engine
from tandem_runtime.spark.epochs.failure import EngineFailure

# A loaded machine may be slow; a test that waits this long has failed.
PATIENCE = 150.0


def stream(name: str, schema: str, key: str, **more: Any) -> dict[str, Any]:
    """A stream of a manifest."""
    return {"name": name, "schema": schema, "key": [key], "source": {"http": {}}, **more}


def pipeline(
    query: Mapping[str, Any], *streams: Mapping[str, Any], cores: int = 2, mode: str = "append"
) -> Pipeline:
    """A pipeline that is right."""
    manifest = {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "tried"},
        "spec": {
            "streams": list(streams),
            "query": {"outputMode": mode, **query},
            "sinks": [{"name": "none", "console": {}}],
            "spark": {"cores": cores},
        },
    }
    found = parse_pipeline(manifest)
    assert isinstance(found, Pipeline), found
    return found


def at(seconds: float) -> datetime:
    """An event time, in seconds since the beginning of a story in 2023."""
    return datetime.fromtimestamp(1_700_000_000 + seconds, tz=UTC)


def ms(seconds: float) -> int:
    """The same time as a header has it."""
    return int((1_700_000_000 + seconds) * 1000)


@dataclass
class Outcome:
    """What an epoch gave."""

    table: pa.Table
    digest: int
    committed_when_told: bool = False

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The rows in an order of their own."""
        columns = self.table.to_pydict().values()
        return sorted(zip(*columns, strict=True), key=repr)


@dataclass
class Told:
    """Everything an engine told."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)
    late: int = 0
    failure: EngineFailure | None = None


class Replica:
    """An engine with a checkpoint, from its start on."""

    def __init__(
        self, session: SparkSession, pipeline: Pipeline, place: Path, checkpoint: Path, base: int
    ) -> None:
        self.pipeline = pipeline
        self.inbox = place / "inbox"
        self.checkpoint = checkpoint
        self.told = Told()
        self.finishes = True
        """Whether every result is let commit as soon as it is there."""
        self._changed = threading.Condition()
        self.engine = Engine(pipeline, self.inbox, self, session=session)
        self.engine.open(checkpoint, base)

    def run(
        self,
        epoch: int,
        rows: Mapping[str, Sequence[Sequence[object]]] | None = None,
        watermarks: Mapping[str, int | None] | None = None,
    ) -> Outcome:
        """Run an epoch until it is committed, or only computed if it may not finish."""
        self.begin(epoch, rows, watermarks)
        self.await_(lambda told: epoch in told.outcomes)
        if self.finishes:
            self.await_(lambda told: epoch in told.committed)
        return self.told.outcomes[epoch]

    def begin(
        self,
        epoch: int,
        rows: Mapping[str, Sequence[Sequence[object]]] | None = None,
        watermarks: Mapping[str, int | None] | None = None,
    ) -> None:
        """Give an epoch to the engine and go on."""
        batches = {name: [self.batch(name, values)] for name, values in (rows or {}).items()}
        self.engine.run(epoch, batches, watermarks or {})

    def batch(self, name: str, rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
        """Rows of a stream as Arrow has them."""
        (stream,) = (one for one in self.pipeline.spec.streams if one.name == name)
        schema = arrow_schema(stream.schema)
        columns = [
            pa.array([row[index] for row in rows], kind) for index, kind in enumerate(schema.types)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def await_(self, condition: Any) -> None:
        """Wait until what was told fulfils a condition, or the query failed."""
        with self._changed:
            met = self._changed.wait_for(
                lambda: condition(self.told) or self.told.failure, PATIENCE
            )
        assert met, "nothing came"
        assert condition(self.told), self.told.failure

    def stop(self) -> None:
        self.engine.stop()

    # What the engine tells.

    def result(self, epoch: int, payload: pa.Buffer, size: int, digest: int, rows: int) -> None:
        with pa.ipc.open_stream(payload) as reader:
            table = reader.read_all()
        assert (payload.size, table.num_rows) == (size, rows)
        with self._changed:
            self.told.outcomes[epoch] = Outcome(table, digest)
            self._changed.notify_all()
        if self.finishes:
            self.engine.finish(epoch)

    def committed(self, epoch: int) -> None:
        with self._changed:
            batches = {path.name for path in (self.checkpoint / "commits").glob("[0-9]*")}
            newest = max(map(int, batches), default=-1)
            logged = (self.checkpoint / "offsets" / str(newest)).read_text()
            self.told.outcomes[epoch].committed_when_told = f'"epoch":{epoch}}}' in logged
            self.told.committed.append(epoch)
            self._changed.notify_all()

    def progress(self, late_dropped: int, batch_ms: float) -> None:
        with self._changed:
            self.told.late += late_dropped
            self._changed.notify_all()

    def failed(self, error: EngineFailure) -> None:
        with self._changed:
            self.told.failure = error
            self._changed.notify_all()
