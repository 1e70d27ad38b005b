import time
from collections.abc import Iterator

import pytest
from tests.environment.fake_api import NAMESPACE, PODS, FakeApi, pod
from tests.local.harness import wait_for

from tandem_runtime.environment.kubernetes_api import Access
from tandem_runtime.environment.pod_directory import PeerPod, PodDirectory, pod_of

LIST = f"GET {PODS}"


@pytest.fixture
def pods(api: FakeApi, access: Access) -> Iterator[PodDirectory]:
    for uid in ("a", "b"):
        api.put(PODS, pod(uid))
    made = PodDirectory(access, NAMESPACE, "p")
    made.await_known("a")
    yield made
    made.close()


def test_pod_document_maps_to_peer_pod() -> None:
    assert pod_of(pod("a", "merge", host="10.1.2.3")) == PeerPod(
        "a", "merge-a", "merge", "node-a", "10.1.2.3", going=False
    )
    waiting = pod_of({"metadata": {"uid": "a", "name": "x"}})
    assert waiting == PeerPod("a", "x", "", "", None, going=False)
    leaving = pod_of(pod("a", going=True))
    assert leaving is not None
    assert leaving.going


@pytest.mark.parametrize(
    ("phase", "there"), [("Pending", True), ("Failed", False), ("Succeeded", False)]
)
def test_finished_pod_is_not_listed(phase: str, there: bool) -> None:
    assert (pod_of(pod("a", phase=phase)) is not None) is there


def test_running_pods_are_listed(pods: PodDirectory) -> None:
    found = pods.get("a")
    assert found is not None
    assert found.name == "split-a"
    assert {each.uid for each in pods.all()} == {"a", "b"}
    assert pods.gone(["a", "b"]) == frozenset()


def test_pod_is_gone_once_its_deletion_is_watched(api: FakeApi, pods: PodDirectory) -> None:
    lists = api.count(LIST)
    terminating = pod("a")
    terminating["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    api.put(PODS, terminating)
    api.put(PODS, pod("b", phase="Failed"))
    wait_for(lambda: pods.gone(["a", "b"]) == {"b"})
    api.delete(PODS, "split-a")
    wait_for(lambda: pods.gone(["a", "b"]) == {"a", "b"})
    assert api.count(LIST) == lists


def test_deleted_pod_is_unlisted_before_it_counts_as_gone(
    api: FakeApi, pods: PodDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem_runtime.environment.pod_directory.QUIET_SECONDS", 0.5)
    lists = api.count(LIST)
    api.delete(PODS, "split-a")
    wait_for(lambda: pods.get("a") is None)
    unheard = time.monotonic()
    wait_for(lambda: pods.gone(["a"]) == {"a"})
    assert time.monotonic() - unheard > 0.3
    assert api.count(LIST) == lists


def test_unseen_pod_is_gone_when_server_lists_it_not(api: FakeApi, pods: PodDirectory) -> None:
    assert pods.gone(["before"]) == frozenset()
    wait_for(lambda: pods.gone(["before"]) == {"before"})
    assert api.count(LIST) == 2


def test_lagging_watch_cache_reports_no_pod_gone(api: FakeApi, pods: PodDirectory) -> None:
    api.change(held=True)
    api.put(PODS, pod("young"))

    def asked_often() -> bool:
        assert pods.gone(["young"]) == frozenset()
        return api.count(LIST) > 4

    wait_for(asked_often)
    api.change(held=False)
    wait_for(lambda: pods.get("young"))
    assert pods.gone(["young"]) == frozenset()


def test_silent_server_reports_no_pod_gone(api: FakeApi, pods: PodDirectory) -> None:
    api.change(silent=True)
    pods.gone(["before"])
    wait_for(lambda: api.count(LIST) > 2)
    assert pods.gone(["before"]) == frozenset()
    api.change(silent=False)
    wait_for(lambda: pods.gone(["before"]) == {"before"})


def test_pod_older_than_cache_and_not_in_it_is_gone(pods: PodDirectory) -> None:
    assert pods.missing(["a", "before"]) == {"before"}
    assert pods.gone(["before"]) == {"before"}
