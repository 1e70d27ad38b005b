"""Runs one query on one checkpoint, from its start to its end."""

import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from tandem_core.model.pipeline import Pipeline
from tandem_runtime.spark.checks.plan_fingerprint import query_fingerprint
from tandem_runtime.spark.epochs.failure import (
    EngineError,
    EngineFailure,
    failure_of_exception,
    failure_of_query,
)
from tandem_runtime.spark.epochs.inbox import Inbox, clamped
from tandem_runtime.spark.epochs.jvm_bridge import Bridge
from tandem_runtime.spark.epochs.result import read_result
from tandem_runtime.spark.query import (
    Origin,
    build_query,
    keeps_shaped_state,
    streams_read,
    with_digest,
)
from tandem_runtime.spark.state.checkpoint import claim, settle
from tandem_runtime.spark.state.offsets import read_batch

_log = logging.getLogger(__name__)

_STORE = "spark.sql.streaming.stateStore.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state"
_ON_HEAP_STORE = f"{_STATE}.HDFSBackedStateStoreProvider"
_DISK_STORE = f"{_STATE}.RocksDBStateStoreProvider"


class EngineEvents(Protocol):
    """Receives the reports of a query, one call at a time, from a separate thread."""

    def result(self, epoch: int, payload: pa.Buffer, size: int, digest: int, rows: int) -> None:
        """Take an epoch's rows; the batch waits for `finish`."""

    def committed(self, epoch: int) -> None:
        """Note that an epoch is committed in the checkpoint."""

    def progress(self, late_dropped: int, batch_ms: float) -> None:
        """Take the number of late rows and the duration of the batch just committed."""

    def failed(self, error: EngineFailure) -> None:
        """Note that the query has failed; no further calls follow."""


class OutOfStep(Exception):
    """Spark did something other than requested."""


class RunningQuery:
    """A query on a checkpoint. It runs from construction until `stop`."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        inbox: Path,
        checkpoint: Path,
        events: EngineEvents,
        base: int,
    ) -> None:
        """Start the query.

        Raises:
            EngineError: it cannot be built or started, or the checkpoint is of another query.
        """
        self._checkpoint = checkpoint
        self._events = events
        self._columns = {stream.name: stream.schema.names for stream in pipeline.spec.streams}
        self._inbox = Inbox(inbox, pipeline.spec.streams)
        self._inbox.clear()
        self._watermark_after: dict[int, int] = {}
        """Spark's expected watermark after the batch of an epoch."""
        self._given = range(0)
        """The epochs that were run by this object."""
        self._stopping = False
        self._bridge = Bridge(session, f"query-{uuid.uuid4()}")
        try:
            query = build_query(session, pipeline, Origin(self._bridge.channel, inbox, base))
            self._timed = self._prepare(session, pipeline, query)
            mode = pipeline.spec.query.output_mode
            self._bridge.start(with_digest(query), mode, checkpoint, inbox)
        except Exception as error:
            raise EngineError(failure_of_exception(error, self._columns)) from error
        self._listener = threading.Thread(target=self._listen, name="spark-events", daemon=True)
        self._listener.start()

    def _prepare(self, session: SparkSession, pipeline: Pipeline, query: DataFrame) -> list[str]:
        """Claim the checkpoint, choose the state store, return the streams with a watermark."""
        settle(self._checkpoint)
        claim(self._checkpoint, query_fingerprint(query, pipeline.spec.query))
        # Where both stores work, the one on the heap is faster up to some hundred thousand keys.
        session.conf.set(_STORE, _DISK_STORE if keeps_shaped_state(query) else _ON_HEAP_STORE)
        read = streams_read(query)
        return [s.name for s in pipeline.spec.streams if s.watermark and s.name in read]

    def run(
        self,
        epoch: int,
        batches: Mapping[str, Sequence[pa.RecordBatch]],
        watermarks: Mapping[str, int | None],
    ) -> None:
        """Write an epoch's rows and let the query read them."""
        self._inbox.write(epoch, batches, watermarks)
        if self._timed:
            # Spark's watermark begins at 1970 and follows the slowest stream.
            slowest = min(clamped(watermarks.get(name)) for name in self._timed)
            self._watermark_after[epoch] = max(0, slowest)
        self._given = range(self._given.start if self._given else epoch, epoch + 1)
        self._bridge.publish(epoch)

    def finish(self, epoch: int) -> None:
        """Allow the batch of an epoch to commit."""
        self._bridge.finish(epoch)

    def stop(self) -> None:
        """Stop the query; no events follow. A batch that waits for `finish` is not committed."""
        self._stopping = True
        try:
            self._bridge.stop()
        except (Py4JError, ConnectionError):
            # The JVM is gone, or the query exceeds Spark's stop timeout and ends with the JVM.
            return
        self._listener.join()

    def _listen(self) -> None:
        try:
            while self._handle(self._bridge.next_event()):
                pass
        except (Py4JError, ConnectionError):
            self._fail(EngineFailure("JvmLost", "the JVM exited; see its log"))
        except Exception as error:  # noqa: BLE001 - logged, and fails the query
            _log.exception("events of the query cannot be read")
            self._fail(EngineFailure(type(error).__name__, str(error)))

    def _handle(self, event: dict[str, Any]) -> bool:
        match event["event"]:
            case "result":
                self._report_result(event["epoch"], event["batch"], Path(event["file"]))
            case "asked":
                self._report_commit(event)
            case "ended":
                if "type" in event:
                    self._fail(failure_of_query(event, self._columns))
                return False
        return True

    def _report_result(self, epoch: int, batch: int, file: Path) -> None:
        logged = read_batch(self._checkpoint, batch)
        if logged.epoch != epoch:
            raise OutOfStep(f"batch {batch} is of epoch {logged.epoch}, and Spark ran {epoch}")
        expected = self._watermark_after.pop(epoch - 1, logged.watermark)
        if logged.watermark != expected:
            raise OutOfStep(
                f"Spark ran epoch {epoch} under watermark {logged.watermark} ms, and the header "
                f"before it says {expected} ms"
            )
        result = read_result(file)
        if not self._stopping:
            payload = result.payload
            self._events.result(epoch, payload, payload.size, result.digest, result.rows)

    def _report_commit(self, event: dict[str, Any]) -> None:
        """Report the epoch before the requested one as committed, if it was run here."""
        epoch = event["epoch"] - 1
        if epoch not in self._given or self._stopping:
            return
        self._inbox.forget(epoch)
        self._events.committed(epoch)
        if "durations" in event:
            durations = event["durations"]
            waited = durations.get("latestOffset", 0) + event["heldBack"]
            self._events.progress(
                event["lateDropped"], max(0.0, durations["triggerExecution"] - waited)
            )

    def _fail(self, failure: EngineFailure) -> None:
        if not self._stopping:
            self._events.failed(failure)
