"""Reads source partitions, each in a thread of its own, one block ahead of the request."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tandem_core.contract.partitions import SourceUnsupported
from tandem_core.contract.reports import Trouble
from tandem_core.model.spec import Stream
from tandem_core.model.states import EventReason
from tandem_core.routing.key_hashing import hash_keys
from tandem_runtime.protocol.messages.peers import SourceRows
from tandem_runtime.protocol.types import BEGINNING_OF_TIME, Position
from tandem_runtime.services.event_loop import EventLoop, Failure
from tandem_runtime.services.health import HealthCheck
from tandem_runtime.services.metrics import REJECTED, ROWS_READ, SOURCE_FAILURES
from tandem_runtime.sources.base import Batch, SourceFailed, SourcePartition, SourceUnavailable
from tandem_runtime.sources.dead_letters import DeadLetters
from tandem_runtime.volume.chunks import HASH

RETRY_SECONDS = 1.0
"""Pause after a source could not be read."""

_MEND = (
    "fix the row or the file; or, in phase Refused or in a new pipeline, set onError: deadLetter, "
    "which puts such rows and files aside"
)
_REACHABLE = (
    "check that source.path exists and that splits can read it (in pods: mounted by "
    "spec.splits.template)"
)

_log = logging.getLogger(__name__)


class Reader:
    """One source partition at this split, for as long as the process lives."""

    def __init__(
        self,
        stream: Stream,
        partition: str,
        opened: Callable[[], SourcePartition],
        dead_letters: DeadLetters,
        loop: EventLoop,
    ) -> None:
        self.spot = HealthCheck(loop.tell_event)
        self._stream = stream
        self._partition = partition
        self._opened = opened
        self._dead_letters = dead_letters
        self._loop = loop
        self._asked = threading.Condition()
        self._wanted: list[Position] = []
        """The position asked for last, until it is answered."""
        threading.Thread(target=self._run, name=f"source {partition}", daemon=True).start()

    def pull(self, position: Position) -> None:
        """Request rows from a position on; replaces a request that is not answered yet."""
        with self._asked:
            self._wanted = [position]
            self._asked.notify()

    def _run(self) -> None:
        source: SourcePartition | None = None
        ahead: Batch | None = None
        while True:
            position = self._next_question()
            try:
                if source is None:
                    self._dead_letters.catch_up()
                    source = self._opened()
                batch = ahead if ahead and ahead.position == position else source.read(position)
                # Kept until its rejected rows are stored: a second read may not find all of them.
                ahead = batch
                self._answer(batch)
                ahead = None
                self.spot.worked()
                if batch.rows.num_rows and not batch.ended:
                    ahead = source.read(batch.end)
            except SourceFailed as failure:
                self._loop.fail(Failure("SourceFailed", str(failure), _MEND))
                return
            except SourceUnsupported as failure:
                self._loop.fail(Failure("SourceUnsupported", str(failure), ""))
                return
            except (SourceUnavailable, OSError, pa.ArrowException) as problem:
                SOURCE_FAILURES.labels(self._partition).inc()
                self.spot.failed(self._trouble(problem))
                self._loop.tell(unreadable(self._partition, position))
                time.sleep(RETRY_SECONDS)
            except Exception as problem:  # noqa: BLE001 - logged, and ends the process
                _log.exception("%s cannot be read", self._partition)
                self._loop.fail(Failure(type(problem).__name__, str(problem), "", final=False))
                return

    def _trouble(self, problem: Exception) -> Trouble:
        return Trouble(EventReason.SOURCE_FAILED, self._stream.name, str(problem), _REACHABLE)

    def _next_question(self) -> Position:
        with self._asked:
            self._asked.wait_for(lambda: self._wanted)
            return self._wanted.pop()

    def _answer(self, batch: Batch) -> None:
        if batch.rejected:
            self._dead_letters.add(self._partition, batch.rejected)
            REJECTED.labels(self._stream.name).inc(len(batch.rejected))
        ROWS_READ.labels(self._stream.name).inc(batch.rows.num_rows)
        self._loop.tell(
            SourceRows(
                partition=self._partition,
                position=batch.position,
                end=batch.end,
                size=batch.rows.nbytes,
                event_time=batch.event_time,
                ended=batch.ended,
                forgotten=batch.forgotten,
                payload=(self._stream.name, with_hashes(batch.rows, self._stream.key)),
                rows=batch.rows.num_rows,
                rejected=len(batch.rejected),
            )
        )


def unreadable(partition: str, position: Position) -> SourceRows:
    """The answer for a source that cannot be read now."""
    return SourceRows(
        partition=partition,
        position=position,
        end=position,
        size=0,
        event_time=BEGINNING_OF_TIME,
        ended=False,
        forgotten=False,
        unreadable=True,
    )


def with_hashes(rows: Any, key: tuple[str, ...]) -> Any:
    """Add a column with the hash of each row's key."""
    hashes = pa.array(hash_keys(rows, key), pa.uint64())
    return rows.append_column(HASH, hashes)
