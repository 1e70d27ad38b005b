"""The operator as it runs: kopf and the client before a server, threads, and a Lease.

Only the pods' processes are stand-ins.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import kopf
import pytest
from kubernetes.client.configuration import Configuration
from prometheus_client import CollectorRegistry
from tests.control.plane import Plane
from tests.control.world import SETTINGS, resource
from tests.kube.cluster import Cluster
from tests.kube.server import Served, serving
from tests.local.harness import wait_for

from tandem.control.nodes import Nodes
from tandem.control.pods import Pod, Run
from tandem.control.reconcile import Reconciler, ReconcilerPorts
from tandem.control.types import Key
from tandem.handlers import watches
from tandem.handlers.metrics import Metrics
from tandem.handlers.watches import WatchEvents, registry_of, settings_of
from tandem.handlers.workers import Workers
from tandem.kube.client import Client
from tandem.kube.kinds import POD, STREAM_PIPELINE, Object
from tandem.kube.objects import labels_of
from tandem_core.contract.reports import MemberReport
from tandem_core.model.kubernetes_names import PAIR_LABEL, ROLE_LABEL
from tandem_core.network.member_client import Observation

SHOP, BANK = Key("shop", "spending"), Key("bank", "spending")


class Guarded:
    """The stand-ins, asked by threads."""

    def __init__(self, plane: Plane, lock: threading.RLock) -> None:
        self._plane = plane
        self._lock = lock

    def look(self, pods: Iterable[Pod], token: str) -> Mapping[Run, Observation]:
        with self._lock:
            return self._plane.look(pods, token)

    def ask(self, pod: Pod, token: str) -> MemberReport | None:
        with self._lock:
            return self._plane.ask(pod, token)

    def assign(self, pod: Pod, token: str, pair: str) -> None:
        with self._lock:
            self._plane.assign(pod, token, pair)


class Running:
    """A cluster that lives, and an operator that sees to it."""

    def __init__(self, served: Served, cluster: Cluster, namespaces: list[str]) -> None:
        self.served = served
        self.cluster = cluster
        self.plane = Plane(cluster)
        self.registry = CollectorRegistry()
        kube = Client(Configuration(host=served.url))
        metrics = Metrics(self.registry)

        members = Guarded(self.plane, served.lock)

        def make(key: Key) -> Reconciler:
            return Reconciler(
                key, ReconcilerPorts(kube, members, Nodes(kube).at, metrics), SETTINGS
            )

        self.workers = Workers(make, lambda: True, metrics)
        self.workers.start(2)
        self.ended = threading.Event()
        self._namespaces = namespaces
        self._threads = [threading.Thread(target=each) for each in (self._watch, self._live)]
        for thread in self._threads:
            thread.start()

    def _watch(self) -> None:
        async def login(**_: Any) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=self.served.url)

        asyncio.run(
            kopf.operator(
                registry=registry_of(self.workers.ask, login),
                settings=settings_of(),
                standalone=True,
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                stop_flag=self.ended,
            )
        )

    def _live(self) -> None:
        """Controllers, kubelets and processes work."""
        while not self.ended.wait(0.1):
            with self.served.lock:
                self.cluster.settle()
                self.plane.advance(time.monotonic())

    def stop(self) -> None:
        self.ended.set()
        self.served.stopped.set()
        for thread in self._threads:
            thread.join(30)
        self.workers.stop()

    # --- what is to be seen -------------------------------------------------------------------

    def get(self, key: Key) -> Object:
        with self.served.lock:
            return self.cluster.get(STREAM_PIPELINE, *key)

    def phase(self, key: Key) -> str | None:
        return (self.get(key).get("status") or {}).get("phase")

    def is_paired(self, key: Key) -> bool:
        pairs = (self.get(key).get("status") or {}).get("pairs") or []
        return bool(pairs) and all(pair["state"] == "Paired" for pair in pairs)

    def replicas(self, key: Key) -> dict[str, Object]:
        with self.served.lock:
            pods = self.cluster.list(POD, key.namespace, {PAIR_LABEL: "pair-0"})
        return {labels_of(pod).get(ROLE_LABEL, ""): pod for pod in pods}

    def reasons(self) -> list[str]:
        with self.served.lock:
            return [reason for reason, _ in self.cluster.events()]


Start = Callable[..., Running]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(watches, "_WATCH_SECONDS", 2)
    cluster = Cluster()
    for name in ("node-0", "node-1"):
        cluster.add_node(name)
    running: list[Running] = []
    with serving(cluster) as served:

        def started(*namespaces: str) -> Running:
            running.append(Running(served, cluster, list(namespaces)))
            return running[-1]

        yield started
        for each in running:
            each.stop()


def test_pipeline_runs_from_manifest_through_failover_to_deletion(start: Start) -> None:
    operator = start()
    with operator.served.lock:
        operator.cluster.create(resource(SHOP))
    wait_for(lambda: operator.is_paired(SHOP))
    wait_for(lambda: set(operator.replicas(SHOP)) == {"primary", "secondary"})
    before = operator.replicas(SHOP)
    with operator.served.lock:
        operator.cluster.remove(before["primary"])
    wait_for(lambda: operator.reasons()[-1:] == ["Paired"])
    assert operator.reasons() == ["Failover", "CatchUpStarted", "Paired"]
    wait_for(lambda: set(operator.replicas(SHOP)) == {"primary", "secondary"})
    after = operator.replicas(SHOP)
    assert after["primary"]["metadata"]["uid"] == before["secondary"]["metadata"]["uid"]
    shown = operator.get(SHOP)
    assert "finalizers" not in shown["metadata"]
    assert "annotations" not in shown["metadata"]
    assert set(shown["status"]) <= {
        "observedGeneration",
        "phase",
        "conditions",
        "generation",
        "epoch",
        "lag",
        "pairs",
        "pairsReady",
        "replicas",
        "selector",
        "history",
        "lost",
        "counters",
        "sinks",
    }
    labels = {"namespace": "shop", "pipeline": "spending", "reason": "Failover"}
    counted = operator.registry.get_sample_value("tandem_operator_events_total", labels)
    assert counted == 1.0
    with operator.served.lock:
        operator.cluster.delete(operator.cluster.get(STREAM_PIPELINE, *SHOP))
    wait_for(lambda: not operator.cluster.list(POD, "shop"))
    wait_for(lambda: operator.plane.watched == frozenset())
    gone = {"namespace": "shop", "pipeline": "spending"}
    name = "tandem_pipeline_epoch_delivered"
    wait_for(lambda: operator.registry.get_sample_value(name, gone) is None)


def test_only_named_namespaces_are_watched(start: Start) -> None:
    operator = start("bank")
    with operator.served.lock:
        for key in (SHOP, BANK):
            operator.cluster.create(resource(key))
    wait_for(lambda: operator.is_paired(BANK))
    assert operator.phase(SHOP) is None
    assert not any("/namespaces/shop/" in path for _, path in operator.served.asked)
    watched = [path for _, path in operator.served.asked if path.endswith(("pods", "pipelines"))]
    assert all("/namespaces/bank/" in path for path in watched)


def test_status_changes_trigger_no_reconcile() -> None:
    news = WatchEvents()
    meta = {"uid": "u", "generation": 1}
    assert news.is_news(None, SHOP, meta)
    assert not news.is_news("MODIFIED", SHOP, meta)
    assert news.is_news("MODIFIED", SHOP, {**meta, "generation": 2})
    assert news.is_news("MODIFIED", SHOP, {**meta, "generation": 2, "deletionTimestamp": "now"})
    assert news.is_news("DELETED", SHOP, meta)
    assert news.is_news("ADDED", SHOP, {"uid": "v", "generation": 1})
