"""A driver whose query runs takes over a copied checkpoint: on real Spark, without a restart."""

import queue
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.harness import PATIENCE, pipeline, stream

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import Effect, Finish, Install, Run
from tandem_runtime.protocol.messages.peers import (
    BatchCommitted,
    BatchResult,
    CopiedState,
    Installed,
    SparkUp,
)
from tandem_runtime.protocol.types import Header
from tandem_runtime.services import driver as module
from tandem_runtime.services.driver import Driver
from tandem_runtime.services.state.copies import checkpoint_of
from tandem_runtime.spark.epochs.engine import Engine
from tandem_runtime.spark.jvm.launch import SparkDriver
from tandem_runtime.spark.state.checkpoint import link_tree
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.frames import Tree

SUMS = pipeline(
    {"sql": "SELECT user, sum(amount) AS total FROM payments GROUP BY user"},
    stream("payments", "user STRING, amount BIGINT", "user"),
    mode="update",
)


class Replica:
    """A driver, and a loop that lets every result commit."""

    environment = SimpleNamespace(functions=tuple)

    def __init__(self, volume: Volume) -> None:
        self.volume = volume
        self.told: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.hands: dict[type, Callable[[Any], None]] = {}
        self.driver = Driver(SUMS, volume, post=SimpleNamespace())  # type: ignore[arg-type]
        self.driver.serve(self, lambda: Share("f", "pair-0"))  # type: ignore[arg-type]
        self.next(SparkUp)

    def lend(self, hands: Mapping[type, Callable[[Any], None]]) -> None:
        self.hands.update(hands)

    def tell(self, message: object) -> None:
        self.told.put(message)

    def fail(self, failure: object) -> None:
        self.told.put(failure)

    def does(self, effect: Effect) -> None:
        self.hands[type(effect)](effect)

    def next(self, kind: type) -> Any:
        message = self.told.get(timeout=PATIENCE)
        assert isinstance(message, kind), message
        return message

    def run(self, epoch: int) -> list[tuple[object, ...]]:
        """Run an epoch with one row until it is committed; its result."""
        self.does(Run(Header(epoch, 1, (), (), (), 0), ()))
        with pa.ipc.open_stream(self.next(BatchResult).payload) as reader:
            table = reader.read_all()
        self.does(Finish(epoch))
        assert self.next(BatchCommitted).epoch == epoch
        return list(zip(*table.to_pydict().values(), strict=True))


@pytest.fixture
def replica(
    driver: SparkDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Replica]]:
    row = pa.RecordBatch.from_pydict({"user": ["a"], "amount": pa.array([1], pa.int64())})
    monkeypatch.setattr(module, "Engine", partial(Engine, session=driver.session))
    monkeypatch.setattr(module, "epoch_rows", lambda *_: {"payments": [row]})
    made: list[Replica] = []

    def make(name: str) -> Replica:
        volume = Volume(tmp_path / name)
        volume.claim()
        made.append(Replica(volume))
        return made[-1]

    yield make
    for one in made:
        one.driver.stop()
        one.volume.release()


def test_running_query_continues_after_the_copied_epoch(
    replica: Callable[[str], Replica],
) -> None:
    ahead, behind = replica("pair-0-a.0"), replica("pair-0-b.0")
    for epoch in range(1, 6):
        ahead.run(epoch)
    assert behind.run(1) == [("a", 1)]
    copy = behind.volume.directory / "incoming"
    link_tree(checkpoint_of(ahead.volume), 5, 5, copy)
    behind.does(Install(5, (CopiedState(Tree(copy)),)))
    assert behind.next(Installed).epoch == 5
    assert [behind.run(epoch) for epoch in (6, 7)] == [[("a", 6)], [("a", 7)]]
    assert ahead.run(6) == [("a", 6)]
    assert behind.driver.failure is None
