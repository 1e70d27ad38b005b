import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environment.fake_api import MAPS, PODS, FakeApi, pod
from tests.environment.pods_around import PIPELINE_TOKEN, UID, furnish, mount, put_intent
from tests.local.harness import wait_for

from tandem_core.contract.intent import Intent
from tandem_core.contract.records import encode
from tandem_runtime.environment.kubernetes_api import Access
from tandem_runtime.environment.pod_base import PeersAnswer
from tandem_runtime.environment.split_pod import ClusterSplit
from tandem_runtime.protocol.types import Member, RegisterState

PORT = 4711


@pytest.fixture
def split(api: FakeApi, access: Access, tmp_path: Path) -> Iterator[ClusterSplit]:
    """Split `a` on its third volume; `b` is there too, and a replica."""
    furnish(api, "a", "b")
    api.put(PODS, pod("r", "replica", host="127.0.0.9"))
    made = ClusterSplit(access, mount(tmp_path, "a"), "a.2", PORT)
    made.await_known()
    yield made
    made.close()


def asked(split: ClusterSplit, *volumes: str) -> frozenset[str]:
    return split.gone(frozenset(volumes))


def test_pod_reads_pipeline_and_secrets_from_mounts(split: ClusterSplit) -> None:
    assert split.pipeline.metadata.name == "p"
    assert (split.uid, split.token, split.node) == (UID, PIPELINE_TOKEN, "node-a")
    assert split.dead_letters("s").parent.parent == split.pod.home
    assert split.shown() is None


def test_pipeline_is_abandoned_when_intent_is_gone_and_pods_terminate(
    api: FakeApi, split: ClusterSplit
) -> None:
    for uid in ("a", "b"):
        api.put(PODS, pod(uid, going=True))
    api.delete(MAPS, "p-intent")
    api.put(PODS, pod("new"))
    wait_for(lambda: split.address_of("new.0") is not None)
    assert not split.abandoned()
    api.delete(PODS, "split-new")
    api.put(PODS, pod("r", "replica", going=True))
    wait_for(split.abandoned)
    assert split.intent() is not None


def test_splits_are_addressable_pods_on_newest_volume(api: FakeApi, split: ClusterSplit) -> None:
    api.put(PODS, pod("c", host=None))
    api.put(PODS, pod("d"))
    wait_for(lambda: len(split.splits()) > 2)
    split.met("b.1")
    assert split.splits() == (
        Member("split-a", "a.2", "node-a"),
        Member("split-b", "b.1", "node-b"),
        Member("split-d", "d.0", "node-d"),
    )


def test_address_is_found_by_newest_volume_only(split: ClusterSplit) -> None:
    assert split.address_of("r.0") == ("127.0.0.9", PORT)
    split.met("r.1")
    assert split.address_of("r.0") is None
    assert split.address_of("r.1") == ("127.0.0.9", PORT)
    assert split.address_of("nobody.0") is None
    assert split.address_of("no volume of a pod") is None


def test_only_existing_pods_on_newest_volume_are_admitted(
    api: FakeApi, split: ClusterSplit
) -> None:
    assert split.admits("r.0")
    assert split.admits("r.1")
    assert not split.admits("r.0")
    assert not split.admits("stranger.0")
    assert not split.admits("garbage")
    api.delete(PODS, "replica-r")
    wait_for(lambda: not split.admits("r.1"))


def test_volume_is_gone_with_its_pod_or_once_superseded(api: FakeApi, split: ClusterSplit) -> None:
    # What is asked first stands on the own volume, so it is older than what the server said.
    assert asked(split, "a.2", "b.0", "r.0", "before.0") == {"before.0"}
    assert split.admits("r.2")
    assert asked(split, "b.0", "r.0", "r.1", "r.2") == {"r.0", "r.1"}
    api.delete(PODS, "split-b")
    wait_for(lambda: asked(split, "b.0") == {"b.0"})
    assert asked(split, "later.0") == frozenset()
    wait_for(lambda: asked(split, "later.0") == {"later.0"})


def test_own_volume_is_gone_with_own_pod(api: FakeApi, split: ClusterSplit) -> None:
    asked(split)
    assert asked(split, "a.2") == frozenset()
    api.delete(PODS, "split-a")
    wait_for(lambda: asked(split, "a.2") == {"a.2"})


def test_older_or_unreadable_intent_is_ignored(api: FakeApi, split: ClusterSplit) -> None:
    assert split.intent() == Intent(1, (), 1, ())
    newer = Intent(3, (), 1, (), suspended=True)
    for each in (newer, Intent(2, (), 1, ())):
        put_intent(api, each)
    garbage = api.get(MAPS, "p-intent")
    for content in ({}, {"intent": "!"}, {"intent": "AAAA"}):
        api.put(MAPS, {**garbage, "data": content})
    put_intent(api, newer.replace(version=4))
    seen: list[int] = []

    def caught_up() -> bool:
        found = split.intent()
        assert found is not None
        seen.append(found.version)
        return found.version == 4

    wait_for(caught_up)
    assert seen == sorted(seen)
    assert 2 not in seen


def test_register_is_backed_by_lease(split: ClusterSplit) -> None:
    swapped, place = split.swap_register(0, RegisterState(0, 1, "a.2", None))
    assert swapped
    assert split.read_register() == place == RegisterState(1, 1, "a.2", None)


def test_split_start_waits_for_api_server_and_own_pod(
    api: FakeApi, access: Access, tmp_path: Path
) -> None:
    api.change(silent=True)
    split = ClusterSplit(access, mount(tmp_path, "a"), "a.0", PORT)
    waiting = threading.Thread(target=split.await_known, daemon=True)
    waiting.start()
    with pytest.raises(RuntimeError):
        split.actions()["around"](encode(0))
    furnish(api, "b")
    api.change(silent=False)
    wait_for(lambda: len(split.splits()) == 1)
    assert waiting.is_alive()
    api.put(PODS, pod("a"))
    waiting.join(20)
    assert not waiting.is_alive()
    split.close()


def test_split_answers_peers_query(access: Access, split: ClusterSplit) -> None:
    told = PeersAnswer.from_bytes(split.actions()["around"](encode(0)))
    assert told.in_touch
    assert [member.volume for member in told.splits] == ["a.2", "b.0"]
    assert told.addresses == {
        "a": ("127.0.0.1", PORT),
        "b": ("127.0.0.1", PORT),
        "r": ("127.0.0.9", PORT),
    }
    assert told.intent == Intent(1, (), 1, ())
    assert PeersAnswer.from_bytes(split.actions()["around"](encode(1))).intent is None
    access.answered -= 1000
    assert not PeersAnswer.from_bytes(split.actions()["around"](encode(1))).in_touch
