"""A replica without Spark: real volume, real Flight, the real machine, and a toy for a query.

It numbers the rows of each key in the order in which they come. State is in memory, so it is not
to be killed.
"""

from __future__ import annotations

import argparse
import itertools
import zlib
from collections import Counter
from typing import Any, cast

import pyarrow as pa

from tandem_core.contract.reports import DriverState, ReplicaState
from tandem_runtime.protocol.effects import Finish, ForgetState, Install, KeepState, Run
from tandem_runtime.protocol.messages.peers import BatchCommitted, BatchResult, Installed, SparkUp
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.services.event_loop import EventLoop, milliseconds
from tandem_runtime.services.process import Process, main
from tandem_runtime.services.state.birth import join_pair
from tandem_runtime.volume.chunks import epoch_rows


class Toy:
    """Numbers the rows of each key."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._seen: Counter[str] = Counter()
        loop.lend(
            {
                Run: self._run,
                Finish: lambda effect: loop.tell(BatchCommitted(effect.epoch)),
                Install: lambda effect: loop.tell(Installed(effect.epoch)),
                ForgetState: lambda _: None,
                KeepState: lambda _: None,
            }
        )
        loop.tell(SparkUp())

    def _run(self, effect: Run) -> None:
        rows: list[dict[str, Any]] = []
        forms = itertools.chain.from_iterable(cast("Any", effect.rows))
        for batches in epoch_rows(forms, effect.header).values():
            rows += [row for batch in batches for row in batch.to_pylist()]
        for row in rows:
            self._seen[row["k"]] += 1
            row["n"] = self._seen[row["k"]]
        schema = pa.schema([("k", pa.string()), ("v", pa.int64()), ("n", pa.int64())])
        table = pa.Table.from_pylist(rows, schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(table)
        payload = sink.getvalue()
        digest = zlib.crc32(payload)
        self._loop.tell(BatchResult(effect.header.epoch, payload.size, digest, payload))


def run(process: Process[Any], arguments: argparse.Namespace) -> int:
    """Run a replica until it is done."""
    machine = ReplicaMachine(
        process.volume.id,
        process.volume.incarnation,
        arguments.pair,
        join_pair(arguments.pair, process.volume, process.environment, "").share,
        StoredReplica(process.volume.contents()),
        process.settings,
        milliseconds(),
        booting=True,
    )
    loop = EventLoop(machine, process.volume, process.environment, process.post, process.settings)
    Toy(loop)
    report = ReplicaState(DriverState.RUNNING, pair=arguments.pair)
    process.serve(lambda: report, process.is_running, arguments.pair)
    return process.run(loop)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pair", required=True)


if __name__ == "__main__":
    main("replica", _arguments, run)
