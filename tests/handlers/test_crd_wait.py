"""Waiting for the resource's definition."""

import logging
import threading
from collections.abc import Mapping

import pytest
from tests.kube.cluster import Cluster

from tandem.handlers import crd_wait
from tandem.handlers.crd_wait import wait_for_pipelines
from tandem.kube.kinds import Object, ObjectKind
from tandem.kube.port import KubeError, NotFound, Refused


class Young(Cluster):
    """A server that lists nothing until it has been asked so often, and never in some places."""

    def __init__(self, *problems: KubeError, closed: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.problems = list(problems)
        self.closed = closed
        self.asked = 0

    def list(
        self, kind: ObjectKind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        self.asked += 1
        if namespace in self.closed:
            raise Refused(f"not in {namespace}")
        if self.problems:
            raise self.problems.pop(0)
        return super().list(kind, namespace, labels)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crd_wait, "EVERY", 0.001)
    monkeypatch.setattr(crd_wait, "SETTLING", 0.001)


def test_each_wait_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    absent, forbidden = NotFound("the server could not find it"), Refused("forbidden")
    kube = Young(absent, absent, absent, forbidden)
    with caplog.at_level(logging.WARNING):
        assert wait_for_pipelines(kube, [], threading.Event())
    assert kube.asked == 5
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].endswith("the server could not find it")


def test_existing_definition_needs_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crd_wait, "SETTLING", 3600.0)
    assert wait_for_pipelines(Young(), [], threading.Event())


def test_one_listable_namespace_ends_the_wait() -> None:
    kube = Young(closed=frozenset({"bank"}))
    assert wait_for_pipelines(kube, ["bank", "shop"], threading.Event())


def test_stop_ends_the_wait() -> None:
    stopped = threading.Event()
    kube = Young(closed=frozenset({"bank"}))
    threading.Timer(0.05, stopped.set).start()
    assert not wait_for_pipelines(kube, ["bank"], stopped)
