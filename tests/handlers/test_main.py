"""The program itself, as processes before a server."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.control.world import KEY, resource
from tests.kube.cluster import Cluster
from tests.kube.server import Served, serving
from tests.local.harness import wait_for

from tandem.kube.kinds import KINDS, LEASE, REPLICA_SET, STREAM_PIPELINE
from tandem.kube.port import NotFound

MOST_BYTES = 150 * 2**20


class Program:
    """One operator."""

    def __init__(self, home: Path, kubeconfig: Path, name: str) -> None:
        self.log = home / f"{name}.log"
        self.port = _free_port()
        arguments = ["--kubeconfig", str(kubeconfig), "--identity", name]
        arguments += ["--runtime-image", "runtime:1", "--spark-image", "spark:1"]
        arguments += ["--own-namespace", "tandem-system", "--port", str(self.port)]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tandem.handlers", *arguments],
                stdout=output,
                stderr=output,
            )

    def get(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def leads(self) -> bool:
        return "tandem_operator_leads 1.0" in self.get("/metrics")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


Start = Callable[[str], Program]


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Cluster()) as made:
        yield made


@pytest.fixture
def start(served: Served, tmp_path: Path) -> Iterator[Start]:
    named = {
        "clusters": [{"name": "c", "cluster": {"server": served.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(named))
    programs: list[Program] = []

    def started(name: str) -> Program:
        programs.append(Program(tmp_path, kubeconfig, name))
        return programs[-1]

    yield started
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


def holder(served: Served) -> str | None:
    try:
        lease = served.api.get(LEASE, "tandem-system", "tandem-operator")
    except NotFound:
        return None
    return str(lease["spec"]["holderIdentity"])


def test_operator_waits_for_missing_definition(
    served: Served, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tuple(kind for kind in KINDS if kind is not STREAM_PIPELINE)
    monkeypatch.setattr("tests.kube.server.KINDS", others)
    operator = start("early")
    wait_for(lambda: "StreamPipelines cannot be listed" in operator.log.read_text())
    assert operator.leads()
    assert operator.get("/healthz") == "ok\n"
    monkeypatch.setattr("tests.kube.server.KINDS", KINDS)
    served.api.create(resource())
    wait_for(lambda: served.api.list(REPLICA_SET, KEY.namespace))
    assert operator.log.read_text().count("StreamPipelines cannot be listed") == 1
    assert operator.stop() == 0


def test_standby_operator_takes_over_when_leader_stops(served: Served, start: Start) -> None:
    served.api.create(resource())
    first = start("first")
    wait_for(lambda: served.api.list(REPLICA_SET, KEY.namespace))
    assert first.leads()
    assert first.get("/healthz") == "ok\n"
    assert holder(served) == "first"
    second, third = start("second"), start("third")
    wait_for(lambda: "another operator leads" in second.log.read_text())
    wait_for(lambda: "another operator leads" in third.log.read_text())
    assert not second.leads()
    assert third.stop() == 0
    assert psutil.Process(first.process.pid).memory_info().rss < MOST_BYTES
    assert first.stop() == 0
    wait_for(second.leads)
    assert holder(served) == "second"
    for line in first.log.read_text().splitlines():
        assert {"time", "level", "logger", "message"} <= json.loads(line).keys()
    served.failing = 500
    # Whoever cannot renew ends in time, and not in good order.
    assert second.process.wait(40) == 1
