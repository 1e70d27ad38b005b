import json
import threading
from pathlib import Path

import pytest

from tandem_core.contract.intent import Intent
from tandem_core.contract.intent_text import intent_text
from tandem_core.contract.reports import Card
from tandem_runtime.environment.interface import VolumeRevoked
from tandem_runtime.environment.laptop import Laptop
from tandem_runtime.environment.pipeline_document import PipelineUnreadable
from tandem_runtime.protocol.types import NOBODY, Member, RegisterState

MANIFEST = {
    "apiVersion": "tandem.dev/v1alpha1",
    "kind": "StreamPipeline",
    "metadata": {"name": "p"},
    "spec": {
        "streams": [
            {
                "name": "s",
                "schema": "k STRING",
                "key": ["k"],
                "source": {"generator": {"rowsPerSecond": 1, "keys": 1}},
            }
        ],
        "query": {"sql": "SELECT k FROM s"},
        "sinks": [{"name": "o", "console": {}}],
    },
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.json").write_text(json.dumps({"manifest": MANIFEST}))
    (tmp_path / "uid").write_text("u-1\n")
    (tmp_path / "token").write_text("t\n")
    return tmp_path


def card(name: str, kind: str, volume: str) -> Card:
    return Card(name, kind, None, volume, 1, "127.0.0.1", 4711, 4712, 1)


def test_register_starts_empty(directory: Path) -> None:
    assert Laptop(directory, "v").read_register() == NOBODY


def test_exactly_one_of_many_concurrent_swaps_succeeds(directory: Path) -> None:
    outcomes: list[bool] = []

    def contend(name: str) -> None:
        laptop = Laptop(directory, name)
        barrier.wait()
        outcomes.append(laptop.swap_register(0, RegisterState(0, 1, name, None))[0])

    barrier = threading.Barrier(8)
    threads = [threading.Thread(target=contend, args=(f"v{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True]
    assert Laptop(directory, "x").read_register().version == 1


def test_stale_swap_returns_current_register(directory: Path) -> None:
    laptop = Laptop(directory, "v")
    for version in range(12):
        swapped, _ = laptop.swap_register(version, RegisterState(0, version, "v", None))
        assert swapped
    assert laptop.swap_register(3, RegisterState(0, 99, "v", None)) == (
        False,
        RegisterState(12, 11, "v", None),
    )


def test_revoked_volume_cannot_swap(directory: Path) -> None:
    (directory / "gone").mkdir()
    (directory / "gone" / "v").touch()
    with pytest.raises(VolumeRevoked):
        Laptop(directory, "v").swap_register(0, RegisterState(0, 1, "v", None))


def test_gone_returns_revoked_volumes_asked_for(directory: Path) -> None:
    laptop = Laptop(directory, "v")
    assert laptop.gone(frozenset({"a", "b"})) == frozenset()
    (directory / "gone").mkdir()
    for volume in ("a", "c"):
        (directory / "gone" / volume).touch()
    assert laptop.gone(frozenset({"a", "b"})) == {"a"}


def test_splits_are_announced_and_not_revoked(directory: Path) -> None:
    laptop = Laptop(directory, "v")
    for made in (card("split-0", "split", "a"), card("split-1", "split", "b")):
        laptop.announce(made)
    laptop.announce(card("merge-0", "merge", "c"))
    # The card of a spare that became a replica, and of the replica whose place it took.
    laptop.announce(card("pair-0-a", "replica", "d"))
    laptop.announce(card("pair-0-a", "replica", "e").replace(pair="pair-0"))
    (directory / "gone").mkdir()
    (directory / "gone" / "a").touch()
    assert laptop.splits() == (Member("split-1", "b", "localhost"),)
    assert laptop.address_of("c") == ("127.0.0.1", 4711)
    assert laptop.address_of("f") is None


def test_moved_process_is_found_at_new_address(directory: Path) -> None:
    laptop = Laptop(directory, "v")
    laptop.announce(card("split-0", "split", "a"))
    laptop.address_of("a")
    laptop.announce(card("split-0", "split", "a").replace(port=4713))
    assert laptop.address_of("a") == ("127.0.0.1", 4713)


def test_replaced_intent_is_reread(directory: Path) -> None:
    laptop = Laptop(directory, "v")
    assert laptop.intent() is None
    for version in (1, 2):
        (directory / "new").write_text(intent_text(Intent(version, (), 1, ())))
        (directory / "new").replace(directory / "intent")
        found = laptop.intent()
        assert found is not None
        assert found.version == version


def test_foreign_directory_is_refused(directory: Path) -> None:
    (directory / "pipeline.json").write_text(json.dumps({"manifest": {"kind": "Other"}}))
    with pytest.raises(PipelineUnreadable):
        Laptop(directory, "v")
