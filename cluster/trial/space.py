"""A namespace of its own for a test, with storage that pods and the test share."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from cluster.kind_cluster import Cluster
from cluster.steps import StepFailed
from cluster.trial.pods import Object, Pod, read_pod
from cluster.trial.waiting import until_none
from cluster.trial.watching import Watch
from tandem.kube.kinds import POD
from tandem.kube.objects import labels_of, name_of
from tandem.kube.port import Kube
from tandem_core.model.kubernetes_names import PIPELINE_LABEL

CLAIM = "shared"
MOUNT = "/shared"
"""Where pods that mount the claim see what the test sees as `Space.shared`."""

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
OF_A_TEST = {"tandem-test": "e2e"}
"""What namespaces of tests are labelled with."""

_MOST_NAME = 40
_OF_EVERY_NAMESPACE = frozenset({"configmap/kube-root-ca.crt", "serviceaccount/default"})
_TRANSIENT = frozenset({"events", "events.events.k8s.io", "pods.metrics.k8s.io"})
"""What comes and goes by itself, or is another view of something that is listed."""


@dataclass(frozen=True, slots=True)
class Space:
    """A namespace."""

    cluster: Cluster
    api: Kube
    name: str
    shared: Path
    """The directory of this machine that pods see at `MOUNT`."""
    records: Path
    """Where watches write, and what is kept of a failure."""
    events: Watch
    pods_watched: Watch

    @classmethod
    def make(cls, cluster: Cluster, api: Kube, title: str, records: Path) -> Space:
        """Make a namespace that is named after a test, with a claim in it."""
        name = f"{slug(title)}-{uuid4().hex[:6]}"
        make_namespace(cluster, name, OF_A_TEST)
        shared = cluster.claim(name, CLAIM)
        directory = records / name
        directory.mkdir(parents=True)
        events = Watch(cluster, name, "events", directory)
        return cls(
            cluster, api, name, shared, directory, events, Watch(cluster, name, "pods", directory)
        )

    # --- looking ------------------------------------------------------------------------------

    def kubectl(self, *arguments: object, text: str | None = None) -> str:
        """Run kubectl in the namespace; what it prints.

        Raises:
            StepFailed: it failed; the message has its error output.
        """
        return self.cluster.kubectl("--namespace", self.name, *arguments, text=text)

    def pods(self, pipeline: str) -> list[Pod]:
        """The pods of a pipeline."""
        found = self.api.list(POD, self.name, {PIPELINE_LABEL: pipeline})
        return [read_pod(document) for document in found]

    def inventory(self) -> frozenset[str]:
        """Everything that is in the namespace, by kind and name, but for what all have."""
        asked = self.cluster.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name")
        kinds = ",".join(sorted(set(asked.split()) - _TRANSIENT))
        found = self.kubectl("get", kinds, "--ignore-not-found", "-o", "name").split()
        return frozenset(found) - _OF_EVERY_NAMESPACE

    # --- doing --------------------------------------------------------------------------------

    def apply(self, *documents: Object) -> str:
        """`kubectl apply`; what it prints."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        return self.kubectl("apply", "-f", "-", text=text)

    def execute(self, pod: str, *command: str) -> str:
        """Run a command in the first container of a pod; what it prints."""
        return self.kubectl("exec", pod, "--", *command)

    def remove(self, *, forget: bool) -> None:
        """Take everything away, if wanted the records too; no pipeline has pods afterwards."""
        with contextlib.suppress(StepFailed):
            # Where there is no such kind there are no pipelines.
            self.kubectl("delete", "streampipelines", "--all", "--wait=false")
        try:
            until_none(self._left, 120, f"the pods in {self.name} are gone")
        finally:
            self.events.stop()
            self.pods_watched.stop()
            remove_namespace(self.cluster, self.name)
            if forget:
                shutil.rmtree(self.records)

    def _left(self) -> list[str]:
        found = self.api.list(POD, self.name)
        return [name_of(pod) for pod in found if PIPELINE_LABEL in labels_of(pod)]


MakeSpace = Callable[[], Space]


def make_namespace(cluster: Cluster, name: str, labels: Mapping[str, str] | None = None) -> None:
    """Make a namespace that takes only pods of the standard `restricted`; it may be there."""
    metadata = {"name": name, "labels": {**RESTRICTED, **(labels or {})}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    cluster.kubectl("apply", "-f", "-", text=json.dumps(namespace))


def remove_namespace(cluster: Cluster, name: str) -> None:
    """Have a test's namespace removed, with its storage; does not wait for the end of it."""
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    volume = f"persistentvolume/{name}-{CLAIM}"
    cluster.kubectl("delete", volume, "--wait=false", "--ignore-not-found")
    shutil.rmtree(cluster.shared / name, ignore_errors=True)


def remove_leftovers(cluster: Cluster) -> None:
    """Remove the namespaces of tests that were broken off: their pipelines would go on."""
    selector = ",".join(f"{name}={value}" for name, value in OF_A_TEST.items())
    found = cluster.kubectl("get", "namespaces", "--selector", selector, "--output=name")
    for name in found.split():
        remove_namespace(cluster, name.rpartition("/")[2])


def slug(title: str) -> str:
    """A text as a part of names in Kubernetes."""
    letters = "".join(each if each.isalnum() else "-" for each in title.lower())
    words = [word for word in letters.split("-") if word]
    return "-".join(words).removeprefix("test-")[:_MOST_NAME].rstrip("-")


def with_storage(template: Mapping[str, Any] | None = None, mount: str = MOUNT) -> Object:
    """A pod template in which the claim is mounted."""
    return {
        **(template or {}),
        "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
        "volumeMounts": [{"name": CLAIM, "mountPath": mount}],
    }
