"""Real splits with real sources, and a replica of each pair that keeps what it is given.

Splits are processes. A replica is a thread of the test: the shipped machine, loop, driver and
volume, with whatever engine the test puts in Spark's place. It needs no merge: results may wait for
ever.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import pyarrow as pa
from tests.local.harness import wait_for

from tandem_core.contract.intent import Function, Generation, Intent, IntentStream, Pair, Share
from tandem_core.contract.intent_text import function_key, intent_text
from tandem_core.contract.partitions import partitions_of
from tandem_core.contract.reports import DriverState, ReplicaState
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of, to_bytes
from tandem_runtime.environment.hosts import LaptopHost
from tandem_runtime.environment.laptop import Laptop
from tandem_runtime.protocol.effects import Select
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.protocol.types import Header
from tandem_runtime.services.driver import Driver
from tandem_runtime.services.event_loop import EventLoop, milliseconds
from tandem_runtime.services.process import Process
from tandem_runtime.spark.epochs.inbox import Inbox
from tandem_runtime.volume.chunks import read_segments

PATIENCE = 150.0
Document = dict[str, Any]


class Epoch(NamedTuple):
    """An epoch as a replica had it."""

    header: Header
    files: dict[str, bytes]
    """What lay in its inbox, by stream."""
    result: list[dict[str, Any]]
    """What its query gave."""


class NoSpark:
    """An engine that writes epochs into its inbox and has no rows to give."""

    def __init__(self, pipeline: Pipeline, inbox: Path, events: Driver) -> None:
        self._inbox = Inbox(inbox, pipeline.spec.streams)
        self._events = events

    def boot(self, *, check: bool, warm_up: bool) -> None: ...

    def open(self, checkpoint: Path) -> None: ...

    def stop(self) -> None: ...

    def run(
        self,
        epoch: int,
        batches: Mapping[str, Sequence[pa.RecordBatch]],
        watermarks: Mapping[str, int | None],
    ) -> None:
        self._inbox.write(epoch, batches, watermarks)
        self._events.result(epoch, _written(pa.table({"none": []})), 1, 0, 0)

    def finish(self, epoch: int) -> None:
        self._inbox.forget(epoch)
        self._events.committed(epoch)


class KeepingDriver(Driver):
    """Keeps every epoch, as it lies in the inbox when its result is there."""

    def __init__(self, process: Process[Laptop]) -> None:
        self.epochs: list[Epoch] = []
        self.readers: dict[str, set[str]] = {}
        """The splits from whose lanes rows of a partition came."""
        self.largest = 0
        """Bytes of the largest share of a chunk."""
        self._headers: dict[int, Header] = {}
        self._place = process.volume.directory / "inbox"
        super().__init__(process.environment.pipeline, process.volume, process.post)

    def _start(self, header: Header, rows: tuple[object, ...]) -> None:
        self._headers[header.epoch] = header
        for span, forms in zip(header.spans, cast("Any", rows), strict=True):
            self.largest = max([self.largest, *(len(memoryview(form)) for form in forms)])
            for segment in (each for form in forms for each in read_segments(form)):
                self.readers.setdefault(segment.partition, set()).add(span.lane.split)
        super()._start(header, rows)

    def result(self, epoch: int, payload: pa.Buffer, size: int, digest: int, rows: int) -> None:
        files = {
            path.stem: path.read_bytes()
            for path in (self._place / str(epoch)).glob("*.arrow")
            if path.stem != "result"
        }
        table = pa.ipc.open_stream(payload).read_all()
        self.epochs.append(Epoch(self._headers.pop(epoch), files, table.to_pylist()))
        super().result(epoch, payload, size, digest, rows)


class KeepingReplica:
    """The one replica of a pair."""

    def __init__(self, directory: Path, pair: str, share: Share) -> None:
        process = Process("replica", LaptopHost(directory, pair, f"{pair}.a"))
        self.driver = KeepingDriver(process)
        self.driver.settled.wait()
        machine = ReplicaMachine(
            process.volume.id,
            process.volume.incarnation,
            pair,
            share,
            StoredReplica(process.volume.contents()),
            process.settings._replace(max_undelivered=10**9),
            milliseconds(),
            booting=True,
        )
        self._loop = EventLoop(
            machine, process.volume, process.environment, process.post, process.settings
        )
        self.driver.serve(self._loop, lambda: share)
        process.serve(lambda: ReplicaState(DriverState.RUNNING), lambda: True, pair)
        process._loop = self._loop
        self._thread = threading.Thread(target=self._loop.run, daemon=True)
        self._thread.start()

    @property
    def epochs(self) -> list[Epoch]:
        return self.driver.epochs

    def has_final(self) -> bool:
        assert self._thread.is_alive(), self.driver.failure
        return bool(self.epochs) and self.epochs[-1].header.final

    def end(self) -> None:
        self._loop.stop()
        self._thread.join(PATIENCE)
        self.driver.stop()


class Intake:
    """A pipeline of splits and keeping replicas, in a directory of its own."""

    def __init__(self, directory: Path, manifest: Document, *, splits: int, pairs: int) -> None:
        parsed = parse_pipeline(manifest)
        assert isinstance(parsed, Pipeline), parsed
        self.pipeline = parsed
        self.directory = directory
        function = RoutingFunction.plain([f"pair-{n}" for n in range(pairs)])
        self.function = Function(digest_of(function), to_bytes(function))
        self.shares = {pair: Select(self.function, pair) for pair in function.pairs}
        self._split_count = splits
        self.splits: list[subprocess.Popen[bytes]] = []
        self.replicas: dict[str, KeepingReplica] = {}
        directory.mkdir(parents=True)
        (directory / "pipeline.json").write_text(json.dumps({"manifest": manifest}))
        for name, content in (("uid", "u-1"), ("token", "t")):
            (directory / name).write_text(content)
        (directory / function_key(self.function.digest)).write_bytes(self.function.form)
        (directory / "peers").mkdir()

    def _intent(self) -> Intent:
        streams = tuple(
            IntentStream(
                name=stream.name,
                partitions=partitions_of(stream),
                delay=stream.watermark.delay.milliseconds if stream.watermark else 0,
            )
            for stream in self.pipeline.spec.streams
        )
        pairs = tuple(Pair(pair, pair) for pair in self.shares)
        generation = Generation(1, self.function.digest, pairs)
        return Intent(version=1, generations=(generation,), target=1, streams=streams)

    def __enter__(self) -> Self:
        for number in range(self._split_count):
            self._start_split(f"split-{number}")
        # Partitions are dealt when the intent comes: every split is to have its lane by then.
        wait_for(self._has_all_lanes, PATIENCE)
        (self.directory / "intent").write_text(intent_text(self._intent()))
        self.replicas = {
            pair: KeepingReplica(self.directory, pair, Share(self.function.digest, pair))
            for pair in self.shares
        }
        return self

    def _has_all_lanes(self) -> bool:
        """A lane that is open is copied by its buddy; the only split there is has none."""
        kind = "copy" if self._split_count > 1 else "lane"
        found = list(self.directory.glob(f"volumes/*/keys/{kind}/*"))
        return len(found) >= self._split_count

    def _start_split(self, name: str) -> None:
        place = ["--dir", str(self.directory), "--name", name, "--volume", f"{name}.a"]
        command = [sys.executable, "-m", "tandem_runtime.services.split", *place]
        with (self.directory / f"{name}.log").open("ab") as log:
            self.splits.append(
                subprocess.Popen(command, env=os.environ, stdout=log, stderr=subprocess.STDOUT)
            )

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for log in self.directory.glob("*.log"):
                print(log.name, log.read_text()[-4000:], sep="\n")  # noqa: T201
        for replica in self.replicas.values():
            replica.end()
        for split in self.splits:
            split.kill()
            split.wait()

    # --- what happens to it ---------------------------------------------------------------------

    def await_rows(self, count: float) -> None:
        """Wait until so many rows are in epochs."""
        wait_for(lambda: self._rows() >= count, PATIENCE)

    def _rows(self) -> int:
        (replica, *_) = self.replicas.values()
        headers = [epoch.header for epoch in replica.epochs]
        return sum(mark.rows for _, mark in headers[-1].marks) if headers else 0

    def kill(self, number: int) -> None:
        """End a split's process, and give its volume up."""
        self.splits[number].kill()
        self.splits[number].wait()
        (self.directory / "gone").mkdir(exist_ok=True)
        (self.directory / "gone" / f"split-{number}.a").touch()

    def let_leave(self, number: int) -> None:
        """Ask a split to leave in good order."""
        self.splits[number].send_signal(signal.SIGTERM)

    def readers(self) -> dict[str, set[str]]:
        """The splits from whose lanes rows of each partition came."""
        (replica, *_) = self.replicas.values()
        return replica.driver.readers

    def largest_share(self) -> int:
        """Bytes of the largest share of a chunk."""
        return max(replica.driver.largest for replica in self.replicas.values())

    def await_end(self) -> None:
        """Wait until every replica has run the final epoch."""
        for replica in self.replicas.values():
            wait_for(replica.has_final, PATIENCE)


def _written(table: Any) -> Any:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
