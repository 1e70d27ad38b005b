"""`python toy_replica.py`: a replica without Spark. Everything else of it is the real one.

The query counts: for each key of an epoch the rows and the sum of `v` in it, and the rows so far.
The state of each epoch is a file of JSON on the volume; copies of it travel as one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import zlib
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from tandem_core.contract.intent import Share
from tandem_core.contract.reports import DriverState, ReplicaState
from tandem_runtime.environment.interface import Environment
from tandem_runtime.protocol.effects import Finish, ForgetState, Install, KeepState, Run, ShipState
from tandem_runtime.protocol.messages.peers import BatchCommitted, BatchResult, Installed, SparkUp
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.services.event_loop import EventLoop, milliseconds
from tandem_runtime.services.process import Process, main
from tandem_runtime.volume.chunks import epoch_rows
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Parcel
from tandem_runtime.wire.frames import FramePart

Counts = dict[str, int]


def after(before: Counts, rows: list[dict[str, Any]]) -> tuple[Counts, Any]:
    """One micro-batch: the state after it, and its result."""
    counts = dict(before)
    touched: dict[str, list[int]] = {}
    for row in rows:
        counts[row["k"]] = counts.get(row["k"], 0) + 1
        touched.setdefault(row["k"], []).append(row["v"])
    keys = sorted(touched)
    result = {
        "k": pa.array(keys, pa.string()),
        "rows": pa.array([len(touched[key]) for key in keys], pa.int64()),
        "sum": pa.array([sum(touched[key]) for key in keys], pa.int64()),
        "total": pa.array([counts[key] for key in keys], pa.int64()),
    }
    return counts, pa.table(result)


class ToyDriver:
    """What a replica's effects do instead of working Spark. At once: nothing here takes long."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        self._states = volume.directory / "states"
        self._states.mkdir(exist_ok=True)
        self._loop: EventLoop | None = None
        self._computed: tuple[int, Counts] = (0, {})
        """The epoch that was run last and is not committed, with the state after it."""

    def stored(self) -> StoredReplica:
        """What the machine is restarted from."""
        found = self._volume.contents()
        return StoredReplica(found, self._epochs() if ("verified",) in found else ())

    def _epochs(self) -> list[int]:
        return [int(path.name) for path in self._states.iterdir() if path.name.isdecimal()]

    def serve(self, loop: EventLoop) -> None:
        """Carry the node's effects out from now on."""
        self._loop = loop
        loop.lend(
            {
                Run: self._run,
                Finish: self._finish,
                Install: self._install,
                ShipState: self._ship_state,
                ForgetState: self._forget_state,
                KeepState: lambda _: None,
            }
        )
        loop.tell(SparkUp())

    def _run(self, effect: Run) -> None:
        epoch = effect.header.epoch
        forms = itertools.chain.from_iterable(cast("Any", effect.rows))
        found = epoch_rows(forms, effect.header).values()
        batches = [batch for each in found for batch in each]
        rows = [row for batch in batches for row in batch.to_pylist()]
        counts, table = after(json.loads(self._path(epoch - 1).read_bytes()), rows)
        self._computed = epoch, counts
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        payload = sink.getvalue()
        self._tell(BatchResult(epoch, payload.size, zlib.crc32(payload), payload))

    def _finish(self, effect: Finish) -> None:
        epoch, counts = self._computed
        assert epoch == effect.epoch
        self._put(epoch, json.dumps(counts, sort_keys=True).encode())
        self._tell(BatchCommitted(epoch))

    def _install(self, effect: Install) -> None:
        copied = json.loads(bytes(cast("Any", effect.parts[0].state))) if effect.parts else {}
        for epoch in self._epochs():
            self._path(epoch).unlink()
        for epoch in (effect.epoch, *effect.older):
            self._put(epoch, json.dumps(copied.get(str(epoch), {})).encode())
        self._tell(Installed(effect.epoch))

    def _ship_state(self, effect: ShipState) -> None:
        assert self._loop is not None
        message = effect.message
        epochs = (message.epoch, *message.older)
        states = {epoch: json.loads(self._path(epoch).read_bytes()) for epoch in epochs}
        results = [self._volume.buffer(("outbox", offer.epoch)) for offer in message.outbox]
        values = [json.dumps(states).encode(), *results]
        parts = [FramePart(number, None, value) for number, value in enumerate(values)]
        self._loop.post.send(effect.to, Parcel(message, lambda: iter(parts)))

    def _forget_state(self, effect: ForgetState) -> None:
        for epoch in self._epochs():
            if epoch < effect.before:
                self._path(epoch).unlink()

    def _put(self, epoch: int, state: Any) -> None:
        path = self._path(epoch)
        draft = path.with_name(".draft")
        draft.write_bytes(state)
        draft.replace(path)

    def _path(self, epoch: int) -> Path:
        return self._states / str(epoch)

    def _tell(self, message: object) -> None:
        assert self._loop is not None
        self._loop.tell(message)


def _share(pair: str, environment: Environment) -> Share:
    """What the pair owns, once the intent says it."""
    while (intent := environment.intent()) is None:
        time.sleep(0.05)
    return intent.generations[-1].share_of(pair)


def run(process: Process[Environment], arguments: argparse.Namespace) -> int:
    """Run a replica until it is done."""
    volume = process.volume
    driver = ToyDriver(volume)
    machine = ReplicaMachine(
        volume.id,
        volume.incarnation,
        arguments.pair,
        _share(arguments.pair, process.environment),
        driver.stored(),
        process.settings,
        milliseconds(),
        booting=True,
    )
    loop = EventLoop(machine, volume, process.environment, process.post, process.settings)
    driver.serve(loop)

    def report() -> ReplicaState:
        return ReplicaState(
            DriverState.RUNNING, committed=machine.committed, verified=machine.verified
        )

    process.serve(report, lambda: machine.verified, arguments.pair)
    return process.run(loop)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pair", required=True)


if __name__ == "__main__":
    main("replica", _arguments, run)
