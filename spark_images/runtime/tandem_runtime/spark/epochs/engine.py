"""Runs a pipeline's query, one micro-batch for each epoch."""

import logging
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa
from pyspark.sql import SparkSession

from tandem_core.model.pipeline import Pipeline
from tandem_runtime.spark.checks.check import check_query
from tandem_runtime.spark.epochs.failure import EngineError, EngineFailure, failure_of_findings
from tandem_runtime.spark.epochs.running_query import EngineEvents, RunningQuery
from tandem_runtime.spark.jvm.launch import SparkDriver, start_driver

_WARM_UP_EPOCHS = 2

_log = logging.getLogger(__name__)


class Engine:
    """Owns one JVM and one query. Call `boot`, `open`, then `run` and `finish` for each epoch.

    Call its methods from one thread at a time; it reports events from another.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        inbox: Path,
        events: EngineEvents,
        *,
        session: SparkSession | None = None,
    ) -> None:
        """Prepare the engine without starting anything.

        Args:
            pipeline: its paths are absolute.
            inbox: directory for the rows of epochs and for Spark's temporary files.
            events: receives the reports.
            session: an existing session to use instead of a new JVM.
        """
        self._pipeline = pipeline
        self._inbox = inbox
        self._events = events
        self._session = session
        self._driver: SparkDriver | None = None
        self._running: RunningQuery | None = None

    def boot(self, *, check: bool = False, warm_up: bool = True) -> None:
        """Start the JVM. Blocks for some seconds.

        Args:
            check: refuse a query that twins cannot run.
            warm_up: run the query on epochs without rows, so that later ones are fast; useless if
                it has to replay old epochs first.

        Raises:
            NoJava, LaunchFailed: the JVM cannot be started.
            EngineError: the query cannot be run.
        """
        if self._session is None:
            self._driver = start_driver(self._pipeline.spec.spark, self._inbox / "scratch")
            self._session = self._driver.session
        if check:
            self._check(self._session)
        if warm_up:
            self._warm_up(self._session)

    def new_session(self) -> SparkSession:
        """Return a session beside the query's, with views and settings of its own."""
        return cast("SparkSession", self._session).newSession()

    def open(self, checkpoint: Path, base: int = 0) -> None:
        """Start the query on a checkpoint, which may be empty or not exist.

        Args:
            checkpoint: directory of the checkpoint.
            base: the epoch before the first one, if the checkpoint is empty.

        Raises:
            EngineError: the query cannot be run.
        """
        session = cast("SparkSession", self._session)
        self._running = RunningQuery(
            session, self._pipeline, self._inbox, checkpoint, self._events, base
        )

    def run(
        self,
        epoch: int,
        batches: Mapping[str, Sequence[pa.RecordBatch]],
        watermarks: Mapping[str, int | None],
    ) -> None:
        """Give the query its next epoch.

        Args:
            epoch: one more than the last one.
            batches: the rows by stream, in order; of the streams' Arrow schemas.
            watermarks: the header's watermark of each stream in milliseconds since 1970.
        """
        self._query.run(epoch, batches, watermarks)

    def finish(self, epoch: int) -> None:
        """Allow the batch of an epoch to commit, once its result is safe."""
        self._query.finish(epoch)

    def close(self) -> None:
        """Stop the query; it may be opened again, on any checkpoint. No events of it follow."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def stop(self) -> None:
        """Stop the query, and the JVM if the engine started it. No events follow."""
        self.close()
        if self._driver is not None:
            self._driver.stop()

    @property
    def _query(self) -> RunningQuery:
        return cast("RunningQuery", self._running)

    def _check(self, session: SparkSession) -> None:
        verdict = check_query(session, self._pipeline)
        for doubt in verdict.warnings:
            _log.warning("%s: %s; %s", doubt.reason, doubt.message, doubt.hint)
        if verdict.refused:
            raise EngineError(failure_of_findings(verdict.refused))

    def _warm_up(self, session: SparkSession) -> None:
        place = self._inbox / "warm-up"
        shutil.rmtree(place, ignore_errors=True)
        listener = _WarmUp()
        query = RunningQuery(
            session, self._pipeline, place / "inbox", place / "checkpoint", listener, 0
        )
        try:
            for epoch in range(1, _WARM_UP_EPOCHS + 1):
                query.run(epoch, {}, {})
                query.finish(epoch)
                listener.await_commit(epoch)
        finally:
            query.stop()
            shutil.rmtree(place, ignore_errors=True)


class _WarmUp:
    """Waits for the epochs that warm a query up, and ignores their results."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._committed = 0
        self._failure: EngineFailure | None = None

    def result(self, epoch: int, payload: pa.Buffer, size: int, digest: int, rows: int) -> None:
        """Do nothing: the epochs have no rows."""

    def progress(self, late_dropped: int, batch_ms: float) -> None:
        """Do nothing: the figures of the first, slow batches do not count."""

    def committed(self, epoch: int) -> None:
        """Record the epoch."""
        with self._changed:
            self._committed = epoch
            self._changed.notify_all()

    def failed(self, error: EngineFailure) -> None:
        """Record the failure."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def await_commit(self, epoch: int) -> None:
        """Wait until an epoch is committed.

        Raises:
            EngineError: the query failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._committed >= epoch or self._failure is not None)
        if self._failure:
            raise EngineError(self._failure)
