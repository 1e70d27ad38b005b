"""What a driver does with copies of state when something goes wrong. Spark itself is not needed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.services.test_node import SETTINGS, Around, Scripted, Sent

from tandem_runtime.protocol.effects import Effect, Ship
from tandem_runtime.protocol.messages import StateCopied, TakeLead
from tandem_runtime.services import driver as module
from tandem_runtime.services.driver import EMPTY, Driver
from tandem_runtime.services.node import Node
from tandem_runtime.volume.volume import Volume

JOINER = "pair-0-b.1"
BEGINNING = StateCopied("pair-0", 0, None, None, (), ())


class NoSpark:
    """An engine that is up at once and is asked nothing."""

    def __init__(self, *_: object) -> None: ...
    def boot(self, *, check: bool, warm_up: bool) -> None: ...


class Replica:
    """A driver that serves a node whose machine says what the test wants."""

    def __init__(self, volume: Volume) -> None:
        self.volume = volume
        self.sent = Sent()
        post: Any = self.sent
        self.machine = Scripted(lambda _: [], 10**6)
        self.node = Node(self.machine, volume, Around(), post, SETTINGS)
        self.driver = Driver(Around().pipeline, volume, post, check=False)
        self.driver.serve(self.node)

    def does(self, *effects: Effect) -> None:
        self.node.carry_out(list(effects))

    def ships(self, message: StateCopied = BEGINNING, to: str = JOINER) -> None:
        self.does(Ship(to, message, ()))

    def trees(self, direction: str) -> list[Path]:
        directory = self.volume.directory / direction
        return sorted(directory.iterdir()) if directory.exists() else []


@pytest.fixture
def replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    monkeypatch.setattr(module, "Engine", NoSpark)
    volume = Volume(tmp_path / "pair-0-a.0")
    volume.claim()
    yield Replica(volume)
    volume.release()


def test_a_copy_is_the_tree_with_the_outbox_beside_it(replica: Replica) -> None:
    replica.volume.write(("outbox", 4), b"result")
    replica.ships(BEGINNING._replace(outbox=((4, 6, 1),)))
    ((to, parcel),) = replica.sent.parcels
    assert to == JOINER
    assert parcel.parts is not None
    parts = [(part.number, part.name, bytes(part.data)) for part in parcel.parts()]
    assert parts == [(0, EMPTY, b""), (1, None, b"result")]


def test_the_tree_of_a_copy_goes_when_its_parcel_is_over_read_or_not(replica: Replica) -> None:
    replica.ships()
    ((_, parcel),) = replica.sent.parcels
    assert len(replica.trees("outgoing")) == 1
    parcel.over()
    assert replica.trees("outgoing") == []  # [12]


def test_other_messages_are_shipped_as_by_any_process(replica: Replica) -> None:
    replica.volume.write(("outbox", 4), b"result")
    replica.does(Ship("merge.a", TakeLead(1), (("outbox", 4),)))
    ((to, parcel),) = replica.sent.parcels
    assert (to, parcel.message) == ("merge.a", TakeLead(1))
    assert replica.trees("outgoing") == []
