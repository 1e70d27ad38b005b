"""What a driver does with copies of state, and when Spark fails. Spark itself is not needed."""

import errno
import os
import shutil
import signal
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.local.harness import wait_for
from tests.services.test_event_loop import SETTINGS, Around, Sent

from tandem_core.contract.exit_codes import FAILED, REFUSED
from tandem_core.contract.intent import Share
from tandem_core.contract.reports import MemberRefusal, decode_refusal
from tandem_runtime.protocol.effects import Effect, Install, Run, Ship, ShipState
from tandem_runtime.protocol.messages.peers import (
    CopiedState,
    Offer,
    StateCopied,
    TakeLead,
)
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.protocol.states import ReplicaLife
from tandem_runtime.protocol.types import Header, Peer
from tandem_runtime.services import driver as module
from tandem_runtime.services import replica as program
from tandem_runtime.services.driver import Driver
from tandem_runtime.services.event_loop import INBOX_MESSAGES, EventLoop, Failure
from tandem_runtime.services.state.copies import checkpoint_of
from tandem_runtime.spark.epochs.failure import EngineError, EngineFailure
from tandem_runtime.spark.jvm.java import NoJava
from tandem_runtime.spark.state.checkpoint import committed_epochs
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.frames import ROOT, Assembly, Tree, message_frame, part_frame, tree_parts

LIMIT = 120.0
JOINER = "pair-0-b.1"
TWIN = Peer("pair-0-b.0", 1)
BEGINNING = StateCopied("pair-0", 0, None, None, (), ())


def commit(checkpoint: Path, *epochs: int) -> None:
    """What Spark leaves of a query without state; batch n is of epoch n + 1."""
    for epoch in epochs:
        for log in ("offsets", "commits"):
            file = checkpoint / log / str(epoch - 1)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"epoch":{epoch}}}')
    (checkpoint / "metadata").write_text("{}")


class NoSpark:
    """An engine that is up at once, or fails as the test says."""

    boot_fails: Exception | None = None
    open_fails: Exception | None = None

    def __init__(self, *_: object) -> None:
        self.done: list[object] = []
        """Each opening with the epochs of its checkpoint, each epoch that was run, each end."""

    def boot(self, *, check: bool, warm_up: bool) -> None:
        if self.boot_fails is not None:
            raise self.boot_fails
        self.warmed_up = warm_up

    def open(self, checkpoint: Path) -> None:
        if self.open_fails is not None:
            raise self.open_fails
        self.done.append(committed_epochs(checkpoint))

    def run(self, epoch: int, *_: object) -> None:
        self.done.append(epoch)

    def close(self) -> None:
        self.done.append("closed")


class Replica:
    """A driver and a loop, whose effects the test makes up or its machine has."""

    def __init__(self, volume: Volume) -> None:
        self.volume = volume
        self.sent = Sent()
        post: Any = self.sent
        share, empty = Share("f", "pair-0"), StoredReplica({})
        self.machine = ReplicaMachine(volume.id, 1, "pair-0", share, empty, SETTINGS, 0)
        self.node = EventLoop(self.machine, volume, Around(), post, SETTINGS)
        self.driver = Driver(Around().pipeline, volume, post)
        self.driver.serve(self.node, lambda: share)

    def does(self, *effects: Effect) -> None:
        self.node.carry_out(list(effects))

    def ships(self, message: StateCopied = BEGINNING, to: str = JOINER) -> None:
        self.does(ShipState(to, message, None))

    def receives(self, *messages: StateCopied) -> int:
        """Take what a twin sends, after all that went before; the process's exit code."""
        if self.machine.life is ReplicaLife.WAITING:
            self.machine.joining.told(((TWIN.volume,),), None, 0)
            self.machine.life = ReplicaLife.COPYING
        for message in messages:
            self.node.receive(TWIN, message)
        self.node.stop()
        return self.node.run()

    def copy_at(self, epoch: int, *committed: int) -> StateCopied:
        """A copy of a twin's state, with so much in it, as it is when it has come."""
        tree = self.volume.directory / "of the twin"
        commit(tree, *committed)
        assembly = Assembly(self.volume.directory / "incoming")
        for part in tree_parts(0, tree):
            assembly.take(part_frame(part), part.data)
        shutil.rmtree(tree)
        message = assembly.take(message_frame(BEGINNING.replace(epoch=epoch)), None)
        return cast("StateCopied", message)

    def trees(self, direction: str) -> list[Path]:
        directory = self.volume.directory / direction
        return sorted(directory.iterdir()) if directory.exists() else []


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Volume]:
    monkeypatch.setattr(module, "Engine", NoSpark)
    claimed = Volume(tmp_path / "pair-0-a.0")
    claimed.claim()
    yield claimed
    claimed.release()


@pytest.fixture
def replica(volume: Volume) -> Replica:
    return Replica(volume)


def test_copy_contains_tree_and_outbox(replica: Replica) -> None:
    replica.volume.write(("outbox", 4), b"result")
    replica.ships(BEGINNING.replace(outbox=(Offer(epoch=4, size=6, digest=1),)))
    ((to, parcel),) = replica.sent.parcels
    assert to == JOINER
    assert parcel.parts is not None
    parts = [(part.number, part.name, bytes(part.data)) for part in parcel.parts()]
    assert parts == [(0, ROOT, b""), (1, None, b"result")]


def test_tree_of_copy_is_deleted_when_its_parcel_is_over(replica: Replica) -> None:
    replica.ships()
    ((_, parcel),) = replica.sent.parcels
    assert len(replica.trees("outgoing")) == 1
    parcel.over()
    assert replica.trees("outgoing") == []  # [12]


def test_repeated_request_of_joiner_sends_one_copy_at_a_time(replica: Replica) -> None:  # [12]
    for _ in range(5):
        replica.ships()
    replica.ships(to="another joiner")
    assert [to for to, _ in replica.sent.parcels] == [JOINER, "another joiner"]
    assert len(replica.trees("outgoing")) == 2


def test_lost_copy_is_made_again_on_request(replica: Replica) -> None:
    replica.ships()
    replica.sent.parcels.pop()[1].over()
    replica.ships()  # [11]
    ((_, again),) = replica.sent.parcels
    assert again.parts is not None
    assert [part.name for part in again.parts()] == [ROOT]


def test_missing_state_is_not_sent(replica: Replica) -> None:
    commit(checkpoint_of(replica.volume), 2, 3)
    replica.ships(BEGINNING.replace(epoch=9))
    assert replica.sent.parcels == []
    assert replica.trees("outgoing") == []
    replica.ships(BEGINNING.replace(epoch=3))
    ((_, parcel),) = replica.sent.parcels
    assert parcel.message == BEGINNING.replace(epoch=3)


def test_full_disk_fails_only_that_copy(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(checkpoint_of(replica.volume), 2, 3)
    link, room = os.link, [2]

    def link_while_there_is_room(source: Path, target: Path) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "no space left")
        link(source, target)

    monkeypatch.setattr(os, "link", link_while_there_is_room)
    replica.ships(BEGINNING.replace(epoch=3))
    assert replica.sent.parcels == []
    assert replica.trees("outgoing") == []
    room[0] = 1000
    replica.ships(BEGINNING.replace(epoch=3))
    assert len(replica.sent.parcels) == 1


def test_other_messages_are_shipped_without_tree(replica: Replica) -> None:
    replica.volume.write(("outbox", 4), b"result")
    replica.does(Ship("merge.a", TakeLead(1), (("outbox", 4),)))
    ((to, parcel),) = replica.sent.parcels
    assert (to, parcel.message) == ("merge.a", TakeLead(1))
    assert replica.trees("outgoing") == []


def test_parts_that_cannot_be_united_end_process(replica: Replica) -> None:
    (tree,) = cast("tuple[Tree]", replica.copy_at(9, 8, 9).payload)
    replica.does(Install(9, (CopiedState(tree),), share=Share("unknown", "pair-0")))
    wait_for(lambda: replica.driver.failure is not None)
    assert replica.receives() == FAILED
    assert not checkpoint_of(replica.volume).exists()


def test_received_copy_is_installed_and_others_deleted(replica: Replica) -> None:  # [12]
    replica.receives(replica.copy_at(3, 2, 3), replica.copy_at(4, 3, 4))
    assert replica.trees("incoming") == []
    replica.receives(replica.copy_at(5, 4, 5))
    assert replica.trees("incoming") == []
    assert (replica.machine.verified, replica.machine.committed) == (True, 3)
    assert committed_epochs(checkpoint_of(replica.volume)) == [2, 3]


def test_copy_refused_by_full_inbox_is_deleted(replica: Replica) -> None:
    for number in range(INBOX_MESSAGES):
        replica.node.receive(TWIN, TakeLead(number))
    replica.node.receive(TWIN, replica.copy_at(3, 2, 3))
    assert replica.trees("incoming") == []


def test_incomplete_copy_ends_process_for_restart(
    replica: Replica,
) -> None:
    replica.receives(replica.copy_at(3, 2))
    assert replica.receives() == FAILED
    assert not replica.machine.verified
    assert replica.driver.failure is not None
    assert replica.driver.failure.reason == "CopyIncomplete"
    assert not checkpoint_of(replica.volume).exists()


def test_empty_state_replaces_existing_checkpoint(replica: Replica) -> None:
    commit(checkpoint_of(replica.volume), 2, 3)
    replica.does(Install(0, ()))
    assert list(checkpoint_of(replica.volume).iterdir()) == []
    replica.machine.life = ReplicaLife.INSTALLING
    replica.receives()
    assert (replica.machine.verified, replica.machine.committed) == (True, 0)


def test_copy_replaces_own_state(replica: Replica) -> None:
    checkpoint = checkpoint_of(replica.volume)
    commit(checkpoint, 2, 3)
    (tree,) = cast("tuple[Tree]", replica.copy_at(9, 8, 9).payload)
    replica.does(Install(9, (CopiedState(tree),)))
    assert committed_epochs(checkpoint) == [8, 9]
    assert [path.name for path in checkpoint.parent.glob("spark*")] == ["spark"]  # [12]


def test_copy_for_running_query_replaces_state_under_a_closed_query(replica: Replica) -> None:
    checkpoint = checkpoint_of(replica.volume)
    commit(checkpoint, 2, 3)
    (tree,) = cast("tuple[Tree]", replica.copy_at(9, 8, 9).payload)
    replica.machine.life = ReplicaLife.REPLACING
    replica.does(Run(Header(4, 1, (), (), (), 0), ()), Install(9, (CopiedState(tree),)))
    wait_for(lambda: committed_epochs(checkpoint) == [8, 9])
    replica.does(Run(Header(10, 1, (), (), (), 0), ()))
    done = cast("Any", replica.driver._engine).done
    wait_for(lambda: len(done) == 5)
    assert done == [[2, 3], 4, "closed", [8, 9], 10]
    assert [path.name for path in checkpoint.parent.glob("spark*")] == ["spark"]  # [12]
    replica.receives()
    assert (replica.machine.committed, replica.driver.failure) == (9, None)


def test_copy_waits_for_a_query_that_is_about_to_open(
    volume: Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(checkpoint_of(volume), 2, 3)
    is_up = threading.Event()
    monkeypatch.setattr(NoSpark, "boot", lambda *_, **__: is_up.wait(LIMIT))
    replica = Replica(volume)
    (tree,) = cast("tuple[Tree]", replica.copy_at(9, 8, 9).payload)
    replica.machine.life = ReplicaLife.REPLACING
    replica.does(Run(Header(4, 1, (), (), (), 0), ()), Install(9, (CopiedState(tree),)))
    assert committed_epochs(checkpoint_of(volume)) == [2, 3]
    is_up.set()
    done = cast("Any", replica.driver._engine).done
    wait_for(lambda: committed_epochs(checkpoint_of(volume)) == [8, 9])
    assert done == [[2, 3], 4, "closed"]


@pytest.mark.parametrize("moved", [False, True])
def test_crash_during_replacement_leaves_old_or_new_state(
    volume: Volume, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:  # [8]
    commit(checkpoint_of(volume), 2, 3)
    replica = Replica(volume)
    (tree,) = cast("tuple[Tree]", replica.copy_at(9, 8, 9).payload)
    move = tree.move

    def crash(target: Path) -> None:
        if moved:
            move(target)
        raise KeyboardInterrupt

    monkeypatch.setattr(tree, "move", crash)
    with pytest.raises(KeyboardInterrupt):
        replica.does(Install(9, (CopiedState(tree),)))
    Replica(volume)
    left = [8, 9] if moved else [2, 3]
    assert committed_epochs(checkpoint_of(volume)) == left
    assert [path.name for path in volume.directory.glob("spark*")] == ["spark"]


@pytest.mark.parametrize(
    ("begun", "joins", "warmed_up"),
    [(False, False, True), (True, False, False), (True, True, True)],
)
def test_spark_is_warmed_up_unless_old_epochs_wait_for_this_replica_alone(
    volume: Volume, begun: bool, joins: bool, warmed_up: bool
) -> None:
    if begun:
        commit(checkpoint_of(volume), 2, 3)
    driver = Driver(Around().pipeline, volume, cast("Any", Sent()), joins=joins)
    assert driver.booted.wait(LIMIT)
    engine = cast("Any", driver._engine)
    assert engine.warmed_up is warmed_up


def test_machine_learns_that_spark_was_up_before_it(volume: Volume) -> None:
    replica = Replica(volume)
    assert replica.driver.booted.wait(LIMIT)
    share, empty = Share("f", "pair-0"), StoredReplica({})
    machine = ReplicaMachine(volume.id, 1, "pair-0", share, empty, SETTINGS, 0, booting=True)
    loop = EventLoop(machine, volume, Around(), cast("Any", Sent()), SETTINGS)
    replica.driver.serve(loop, lambda: share)
    loop.stop()
    loop.run()
    assert machine.spark_up


def test_machine_is_notified_when_spark_comes_up(
    volume: Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr(NoSpark, "boot", lambda *_, **__: goes_on.wait(LIMIT))
    replica = Replica(volume)
    replica.machine.spark_up = False
    goes_on.set()
    deadline = time.monotonic() + LIMIT
    while not replica.machine.spark_up and time.monotonic() < deadline:
        replica.node.stop()
        replica.node.run()
    assert replica.machine.spark_up


QUERYS = EngineFailure("UNRESOLVED_COLUMN", "no such column", "mend it", is_users=True)

FAILURES = [
    (EngineError(QUERYS), Failure("UNRESOLVED_COLUMN", "no such column", "mend it"), REFUSED),
    (NoJava("install one"), Failure("NoJava", "install one", ""), REFUSED),
    (ValueError("odd"), Failure("ValueError", "odd", "", final=False), FAILED),
]


@pytest.mark.parametrize(("raised", "failure", "code"), FAILURES)
def test_failed_spark_start_ends_process(
    volume: Volume,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    failure: Failure,
    code: int,
) -> None:
    monkeypatch.setattr(NoSpark, "boot_fails", raised)
    replica = Replica(volume)
    assert replica.driver.settled.wait(LIMIT)
    assert not replica.driver.booted.is_set()
    assert replica.driver.failure == failure
    assert replica.node.run() == code


@pytest.mark.parametrize(("raised", "failure", "code"), FAILURES)
def test_failed_query_start_ends_process(
    replica: Replica,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    failure: Failure,
    code: int,
) -> None:
    monkeypatch.setattr(NoSpark, "open_fails", raised)
    replica.does(Run(Header(1, 1, (), (), (), 0), ()))
    assert replica.node.run() == code
    assert replica.driver.failure == failure


@pytest.mark.parametrize(("raised", "failure", "code"), FAILURES)
def test_spare_with_failed_spark_start_leaves_reason_on_its_volume(
    volume: Volume,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    failure: Failure,
    code: int,
) -> None:
    monkeypatch.setattr(NoSpark, "boot_fails", raised)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    process: Any = SimpleNamespace(
        environment=Around(), volume=volume, post=Sent(), serve=lambda *_, **__: None
    )
    assert program.run(process, Namespace(pair=None, in_cluster=False)) == code
    left = decode_refusal((volume.directory / "refusal.json").read_bytes())
    assert left == MemberRefusal(reason=failure.reason, message=failure.message, hint=failure.hint)
