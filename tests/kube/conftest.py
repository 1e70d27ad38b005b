"""The port, over whatever is behind it."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from kubernetes.client.configuration import Configuration
from tests.kube.cluster import Cluster
from tests.kube.server import serving

from tandem.kube.client import Client, connect
from tandem.kube.kinds import Object
from tandem.kube.port import Kube, KubeError

KUBECONFIG = os.environ.get("TANDEM_TEST_KUBECONFIG")
"""Names a real cluster, which the tests of clusters provide, with the resource's definition."""
NAMESPACE = os.environ.get("TANDEM_TEST_NAMESPACE", "default")
BEHIND = ("memory", "client", *(("cluster",) if KUBECONFIG else ()))


@dataclass
class Server:
    """A server to try, and what is needed to leave it as it was."""

    kube: Kube
    let_it_work: Callable[[], object]
    test: str = field(default_factory=lambda: f"contract-{secrets.token_hex(4)}")
    """Names and labels of one test begin with it."""
    namespace: str = NAMESPACE
    made: list[Object] = field(default_factory=list)

    def create(self, document: Object) -> Object:
        made = self.kube.create(document)
        self.made.append(made)
        return made

    def wait_for(self, condition: Callable[[], object], seconds: float = 150.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            self.let_it_work()

    def clean(self) -> None:
        for document in reversed(self.made):
            try:
                self.kube.delete(document)
            except KubeError:
                continue


@pytest.fixture(params=BEHIND)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The same contract for the server in memory, for the client before it, and for a real one."""
    if request.param == "cluster":
        real = Server(connect(KUBECONFIG), lambda: time.sleep(0.2))
        yield real
        real.clean()
        return
    cluster = Cluster()
    cluster.add_node("node-0")
    if request.param == "memory":
        yield Server(cluster, cluster.settle)
        return
    with serving(cluster) as served:
        configuration = Configuration(host=served.url)

        def work() -> None:
            with served.lock:
                cluster.settle()

        yield Server(Client(configuration), work)
