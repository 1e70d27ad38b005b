"""What the client makes of a server's answers."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes.client.configuration import Configuration
from tests.kube.cluster import Cluster
from tests.kube.server import Served, serving

from tandem.kube import client
from tandem.kube.client import Client, connect
from tandem.kube.kinds import CONFIG_MAP, NODE, POD
from tandem.kube.objects import name_of
from tandem.kube.port import Conflict, KubeError, NotFound, Refused, Unreachable


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Cluster()) as made:
        yield made


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, Refused),
        (401, Refused),
        (403, Refused),
        (404, NotFound),
        (409, Conflict),
        (422, Refused),
        (429, Unreachable),
        (500, Unreachable),
        (503, Unreachable),
    ],
)
def test_error_status_raises_matching_error_without_retry(
    served: Served, code: int, error: type[KubeError]
) -> None:
    served.failing = code
    with pytest.raises(error, match=f"{code} on purpose") as caught:
        Client(Configuration(host=served.url)).get(CONFIG_MAP, "default", "a")
    assert isinstance(caught.value, error)
    # Nothing is repeated behind the caller's back.
    assert served.asked == [("GET", "/api/v1/namespaces/default/configmaps/a")]


def test_eviction_respects_disruption_budget(served: Served) -> None:
    kube = Client(Configuration(host=served.url))
    labels = {"app": "a"}
    pods = [
        kube.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": labels},
                "spec": {},
            }
        )
        for name in ("one", "two")
    ]
    kube.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        }
    )
    another = {**pods[0], "metadata": {**pods[0]["metadata"], "uid": "another"}}
    with pytest.raises(Conflict):
        kube.evict(another)
    kube.evict(pods[0])
    with pytest.raises(NotFound):
        kube.evict(pods[0])
    with pytest.raises(Conflict, match="disruption budget"):
        kube.evict(pods[1])
    assert kube.get(POD, "default", "two")


def test_non_json_answer_raises_unreachable(served: Served) -> None:
    served.garbled = True
    with pytest.raises(Unreachable):
        Client(Configuration(host=served.url)).list(CONFIG_MAP, "default")


def test_refused_connection_raises_unreachable() -> None:
    with serving(Cluster()) as gone:
        pass
    with pytest.raises(Unreachable) as caught:
        Client(Configuration(host=gone.url)).get(NODE, None, "a")
    assert caught.value.cause == "Connection refused"
    assert str(caught.value) == "GET /api/v1/nodes/a: Connection refused"


def test_slow_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        kube = Client(Configuration(host=f"http://127.0.0.1:{mute.getsockname()[1]}"), patience=0.2)
        with pytest.raises(Unreachable) as caught:
            kube.get(NODE, None, "a")
    assert caught.value.cause == "timed out"


def test_long_lists_are_paginated(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    kube = Client(Configuration(host=served.url))
    for name in "edcba":
        kube.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "default"},
            }
        )
    assert [name_of(each) for each in kube.list(CONFIG_MAP, "default")] == list("abcde")
    assert kube.list(POD, None) == []


def test_a_kubeconfig_names_the_server(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    named = {
        "clusters": [{"name": "c", "cluster": {"server": served.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(named))
    assert connect(str(path)).list(NODE, None) == []
