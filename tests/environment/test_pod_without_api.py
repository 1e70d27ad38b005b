import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.environment.fake_api import PODS, FakeApi, pod
from tests.environment.pods_around import PIPELINE_TOKEN, furnish, mount, put_intent
from tests.local.harness import wait_for

from tandem_core.contract.intent import Function, Generation, Intent, Pair
from tandem_runtime.environment.kubernetes_api import Access
from tandem_runtime.environment.pod_base import PeersAnswer
from tandem_runtime.environment.pod_without_api import ThroughSplits, resolved
from tandem_runtime.environment.split_pod import ClusterSplit
from tandem_runtime.protocol.messages.peers import TakeLead
from tandem_runtime.protocol.types import Member, Peer
from tandem_runtime.wire.flight import FlightServer, Parcel, Post

Address = tuple[str, int]
Answer = Callable[[bytes], bytes]


class Split:
    """Something that answers where splits are expected."""

    def __init__(
        self,
        directory: Path,
        answer: Answer,
        token: str = PIPELINE_TOKEN,
        function: Answer = lambda digest: b"form of " + digest,
    ) -> None:
        self.asked = 0
        self.answer = answer
        self.received: list[object] = []
        self.server = FlightServer(
            ("127.0.0.1", 0),
            token,
            "b.1",
            directory,
            lambda _, message: self.received.append(message),
            {"around": self._around, "function": function},
        )

    def _around(self, body: bytes) -> bytes:
        self.asked += 1
        return self.answer(body)

    @property
    def address(self) -> Address:
        return "127.0.0.1", self.server.port


def saying(around: PeersAnswer) -> Answer:
    return lambda _: around.to_bytes()


def around(*splits: str, in_touch: bool = True, **pods: int) -> PeersAnswer:
    members = tuple(Member(f"split-{volume}", volume, "n") for volume in splits)
    addresses = {pod: ("127.0.0.1", port) for pod, port in pods.items()}
    return PeersAnswer(in_touch, members, addresses, None)


class World:
    """Splits, and a merge that asks them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.found: list[Address] = []
        self.splits: list[Split] = []
        self.merges: list[ThroughSplits] = []

    def split(self, answer: Answer, token: str = PIPELINE_TOKEN, known: bool = True) -> Split:
        made = Split(self.directory, answer, token)
        self.splits.append(made)
        if known:
            self.found.append(made.address)
        return made

    def merge(self) -> ThroughSplits:
        made = ThroughSplits(mount(self.directory, "m", "merge"), lambda _: list(self.found))
        self.merges.append(made)
        return made

    def end(self) -> None:
        for merge in self.merges:
            merge.close()
        for split in self.splits:
            split.server.shutdown()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.end()


def test_merge_learns_peers_and_intent_from_splits(
    api: FakeApi, access: Access, world: World, tmp_path: Path
) -> None:
    furnish(api, "a", "b", intent=Intent(4, (), 1, ()))
    api.put(PODS, pod("r", "replica", host="127.0.0.9"))
    split = ClusterSplit(access, mount(tmp_path, "a"), "a.0", 4711)
    split.await_known()
    world.split(split.actions()["around"])
    merge = world.merge()
    wait_for(lambda: merge.splits() == split.splits())
    assert merge.address_of("r.0") == ("127.0.0.9", 4711)
    assert merge.intent() == Intent(4, (), 1, ())
    api.put(PODS, pod("c"))
    put_intent(api, Intent(5, (), 1, ()))
    wait_for(lambda: len(merge.splits()) == 3)
    wait_for(lambda: (intent := merge.intent()) is not None and intent.version == 5)
    split.close()


def test_functions_that_intent_names_are_asked_for_and_others_forgotten(
    api: FakeApi, access: Access, world: World, tmp_path: Path
) -> None:
    first, second = Function("d1", b"one"), Function("d2", b"two")
    furnish(api, "a", intent=intent_of(1, "d1"))
    put_intent(api, intent_of(1, "d1"), first)
    split = ClusterSplit(access, mount(tmp_path, "a"), "a.0", 4711)
    split.await_known()
    actions = split.actions()
    told = Split(tmp_path, actions["around"], function=actions["function"])
    world.splits.append(told)
    world.found.append(told.address)
    merge = world.merge()
    wait_for(lambda: merge.functions() == (first,))
    put_intent(api, intent_of(2, "d1", "d2"), first, second)
    wait_for(lambda: set(merge.functions()) == {first, second})
    put_intent(api, intent_of(3, "d2"), second)
    wait_for(lambda: merge.functions() == (second,))
    with pytest.raises(LookupError):
        actions["function"](b"d1")
    split.close()


def intent_of(version: int, *functions: str) -> Intent:
    generations = tuple(
        Generation(number, digest, (Pair("pair-0", "a"),))
        for number, digest in enumerate(functions)
    )
    return Intent(version, generations, 1, ())


def test_nothing_is_known_before_first_answer(world: World) -> None:
    merge = world.merge()
    merge.await_known()
    assert (merge.splits(), merge.intent(), merge.address_of("a.0")) == ((), None, None)
    assert merge.admits("anybody.0")
    assert merge.gone(frozenset({"m.0"})) == frozenset()


def test_every_service_address_is_tried(world: World) -> None:
    world.found.append(("127.0.0.1", 1))
    refusing = world.split(saying(around("x.0")), token="another")  # noqa: S106 - a stranger's
    broken = world.split(lambda _: b"garbage")
    good = world.split(saying(around("a.0")))
    merge = world.merge()
    wait_for(lambda: [member.volume for member in merge.splits()] == ["a.0"])
    assert refusing.asked == 0
    calls = broken.asked
    wait_for(lambda: good.asked > 3)
    assert broken.asked == calls, "whoever answers well is asked first the next time"


def test_split_in_touch_with_server_is_preferred(world: World) -> None:
    world.split(saying(around("stale.0", in_touch=False)))
    world.split(saying(around("fresh.0")))
    merge = world.merge()
    wait_for(merge.splits)
    assert [member.volume for member in merge.splits()] == ["fresh.0"]


def test_stale_split_is_used_when_no_other_answers(world: World) -> None:
    world.split(saying(around("stale.0", in_touch=False)))
    merge = world.merge()
    wait_for(lambda: [member.volume for member in merge.splits()] == ["stale.0"])


def test_known_splits_are_queried_without_service(
    world: World,
) -> None:
    merge = world.merge()
    hidden = world.split(saying(around("b.0")), known=False)
    first = world.split(saying(around("b.0", b=hidden.server.port)))
    wait_for(merge.splits)
    world.found.clear()
    first.server.shutdown()
    wait_for(lambda: hidden.asked)
    assert [member.volume for member in merge.splits()] == ["b.0"]
    assert merge.address_of("b.0") == hidden.address


def test_unknown_address_triggers_immediate_query(world: World) -> None:
    split = world.split(saying(around("b.0")))
    merge = world.merge()
    wait_for(lambda: split.asked)
    before = split.asked

    def asked_often() -> bool:
        assert merge.address_of("unknown.0") is None
        return split.asked > before + 5

    wait_for(asked_often)


def test_frozen_split_delays_but_does_not_block_discovery(world: World) -> None:
    thawed = threading.Event()
    first, *_ = sorted(
        [world.split(saying(around("a.0"))) for _ in range(2)], key=lambda s: s.address
    )
    first.answer = lambda _: str(thawed.wait(30)).encode()
    merge = world.merge()
    wait_for(merge.splits)
    thawed.set()


def test_refused_message_reveals_newer_volume_of_pod(world: World) -> None:
    split = world.split(saying(around("b.0")))
    split.answer = saying(around("b.0", b=split.server.port))
    merge = world.merge()
    wait_for(lambda: merge.address_of("b.0") == split.address)
    post = Post(Peer("m.0", 1), PIPELINE_TOKEN, merge)

    def told() -> bool:
        (member,) = merge.splits()
        post.send(member.volume, Parcel(TakeLead(7)))
        return bool(split.received)

    wait_for(told)
    assert merge.splits()[0].volume == "b.1"
    assert merge.address_of("b.0") is None
    post.drain(5)


def test_service_name_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolved("localhost", 7) == [("127.0.0.1", 7)]

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert resolved("p-splits") == []
