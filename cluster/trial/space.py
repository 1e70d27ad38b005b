"""Creates a namespace for a test, with storage that pods and the test share."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from cluster.kind_cluster import KindCluster
from cluster.steps import StepFailed
from cluster.trial.pods import Object, TrialPod, read_pod
from cluster.trial.waiting import until_none
from cluster.trial.watching import Watch
from tandem.kube.kinds import POD
from tandem.kube.objects import labels_of, name_of
from tandem.kube.port import Kube
from tandem_core.model.kubernetes_names import PIPELINE_LABEL

CLAIM = "shared"
MOUNT = "/shared"
"""Path in pods that mount the claim of the directory `Space.shared`."""

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
OF_A_TEST = {"tandem-test": "e2e"}
"""Labels of the namespaces of tests."""

_MOST_NAME = 40
_OF_EVERY_NAMESPACE = frozenset({"configmap/kube-root-ca.crt", "serviceaccount/default"})
_TRANSIENT = frozenset({"events", "events.events.k8s.io", "pods.metrics.k8s.io"})
"""Objects that change by themselves, or that are views of others in the list."""


@dataclass(frozen=True, slots=True)
class Space:
    """A namespace with shared storage and running watches."""

    cluster: KindCluster
    api: Kube
    name: str
    shared: Path
    """The directory of this machine that pods see at `MOUNT`."""
    records: Path
    """The directory for the output of watches and the records of a failure."""
    events: Watch
    pods_watched: Watch

    @classmethod
    def make(cls, cluster: KindCluster, api: Kube, title: str, records: Path) -> Space:
        """Create a namespace that is named after a test, with a claim in it."""
        name = f"{slug(title)}-{uuid4().hex[:6]}"
        make_namespace(cluster, name, OF_A_TEST)
        shared = cluster.claim(name, CLAIM)
        directory = records / name
        directory.mkdir(parents=True)
        events = Watch(cluster, name, "events", directory)
        return cls(
            cluster, api, name, shared, directory, events, Watch(cluster, name, "pods", directory)
        )

    # --- observing ----------------------------------------------------------------------------

    def kubectl(self, *arguments: object, text: str | None = None) -> str:
        """Run kubectl in the namespace; return its output.

        Raises:
            StepFailed: it failed; the message has its error output.
        """
        return self.cluster.kubectl("--namespace", self.name, *arguments, text=text)

    def pods(self, pipeline: str) -> list[TrialPod]:
        """The pods of a pipeline."""
        found = self.api.list(POD, self.name, {PIPELINE_LABEL: pipeline})
        return [read_pod(document) for document in found]

    def inventory(self) -> frozenset[str]:
        """Everything in the namespace, by kind and name, except what all namespaces have."""
        asked = self.cluster.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name")
        kinds = ",".join(sorted(set(asked.split()) - _TRANSIENT))
        found = self.kubectl("get", kinds, "--ignore-not-found", "-o", "name").split()
        return frozenset(found) - _OF_EVERY_NAMESPACE

    # --- acting -------------------------------------------------------------------------------

    def apply(self, *documents: Object) -> str:
        """`kubectl apply`; return its output."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        return self.kubectl("apply", "-f", "-", text=text)

    def execute(self, pod: str, *command: str) -> str:
        """Run a command in the first container of a pod; return its output."""
        return self.kubectl("exec", pod, "--", *command)

    def remove(self, *, forget: bool) -> None:
        """Delete the namespace, once no pipeline has pods; delete the records if `forget`."""
        with contextlib.suppress(StepFailed):
            # Without the resource definition there are no pipelines.
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


def make_namespace(
    cluster: KindCluster, name: str, labels: Mapping[str, str] | None = None
) -> None:
    """Create or update a namespace that enforces the Pod Security Standard `restricted`."""
    metadata = {"name": name, "labels": {**RESTRICTED, **(labels or {})}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    cluster.kubectl("apply", "-f", "-", text=json.dumps(namespace))


def remove_namespace(cluster: KindCluster, name: str) -> None:
    """Delete a test's namespace and its storage, without waiting."""
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    volume = f"persistentvolume/{name}-{CLAIM}"
    cluster.kubectl("delete", volume, "--wait=false", "--ignore-not-found")
    shutil.rmtree(cluster.shared / name, ignore_errors=True)


def remove_leftovers(cluster: KindCluster) -> None:
    """Delete the namespaces of interrupted tests, whose pipelines would keep running."""
    selector = ",".join(f"{name}={value}" for name, value in OF_A_TEST.items())
    found = cluster.kubectl("get", "namespaces", "--selector", selector, "--output=name")
    for name in found.split():
        remove_namespace(cluster, name.rpartition("/")[2])


def slug(title: str) -> str:
    """A text as part of a Kubernetes name."""
    letters = "".join(each if each.isalnum() else "-" for each in title.lower())
    words = [word for word in letters.split("-") if word]
    return "-".join(words).removeprefix("test-")[:_MOST_NAME].rstrip("-")


def with_storage(template: Mapping[str, Any] | None = None, mount: str = MOUNT) -> Object:
    """A pod template that mounts the claim."""
    return {
        **(template or {}),
        "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
        "volumeMounts": [{"name": CLAIM, "mountPath": mount}],
    }
