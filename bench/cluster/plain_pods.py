"""Runs plain Structured Streaming in one driver pod, with its checkpoint on a claim."""

import time
from pathlib import Path
from typing import Any

from bench.cluster.sides import FROZEN_SECONDS, IN_PODS, RECOVERY_SECONDS, Ends, Fault, Load
from bench.streaming.feeder import now
from bench.streaming.plain_run import PROGRAM, Launch, PlainSettings, Tools, environment_of

from cluster.trial.pods import TrialPod, read_pod
from cluster.trial.space import Space, with_storage
from cluster.trial.stage import Stage
from cluster.trial.waiting import until
from tandem.kube.kinds import POD
from tandem_core.model.kubernetes_names import TEMPORARY_MOUNT

AFTERWARDS = 5
"""Batches after a failure by which a plain query has recovered."""

_NAME = "plain"
_LABELS = {"app": _NAME}
_PACKAGES = Path("/opt/spark/lib/python3.11/site-packages")
_IN_IMAGE = Tools(
    python=Path("/opt/spark/bin/python"),
    submit=_PACKAGES / "pyspark" / "bin" / "spark-submit",
    program=Path("/program") / PROGRAM.name,
)
_SCRATCH = f"/{TEMPORARY_MOUNT}"
_USER = 10001
_LOST_NODE_SECONDS = 15
"""Eviction delay, as for the pods of a pipeline; Kubernetes' default is five minutes."""


def documents(image: str, launch: Launch, load: Load) -> list[dict[str, Any]]:
    """The program, and a Deployment of one driver."""
    settings = PlainSettings(launch, load.interval_ms, memory=load.memory_mib * 2**20)
    command = settings.command(IN_PODS, IN_PODS / "in", _IN_IMAGE)
    program = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _NAME},
        "data": {PROGRAM.name: PROGRAM.read_text()},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _NAME},
        "spec": {
            "replicas": 1,
            # Two drivers must never share a checkpoint.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(image, command, load)},
        },
    }
    return [program, deployment]


def _pod(image: str, command: list[str], load: Load) -> dict[str, Any]:
    storage = with_storage()
    lost = [f"node.kubernetes.io/{state}" for state in ("not-ready", "unreachable")]
    return {
        "automountServiceAccountToken": False,
        # Not as the container's first process, which would ignore the signal to end.
        "shareProcessNamespace": True,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _LOST_NODE_SECONDS,
            }
            for key in lost
        ],
        "volumes": [
            *storage["volumes"],
            {"name": "program", "configMap": {"name": _NAME}},
            {"name": "tmp", "emptyDir": {}},
        ],
        "containers": [_container(image, command, load)],
    }


def _container(image: str, command: list[str], load: Load) -> dict[str, Any]:
    environment = {**environment_of(_IN_IMAGE), "HOME": _SCRATCH}
    memory = f"{load.memory_mib}Mi"
    return {
        "name": _NAME,
        "image": image,
        "command": command,
        "workingDir": _SCRATCH,
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": {
            "requests": {"cpu": "100m", "memory": memory},
            "limits": {"memory": memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            *with_storage()["volumeMounts"],
            {"name": "program", "mountPath": str(_IN_IMAGE.program.parent)},
            {"name": "tmp", "mountPath": _SCRATCH},
        ],
    }


class PlainPods:
    """One driver pod; see `bench.cluster.sides.Side`."""

    def __init__(self, stage: Stage, space: Space, load: Load, launch: Launch) -> None:
        self.ends = Ends(space, load)
        self._stage = stage
        self._space = space
        self._documents = documents(stage.release.images["spark"], launch, load)

    def apply(self) -> None:
        """Apply the manifests."""
        self._space.apply(*self._documents)

    def await_whole(self) -> None:
        """Return: the driver has already delivered, and there are no other pods."""

    def fail(self, fault: Fault) -> tuple[float, float]:
        """Fail the driver, or its worker."""
        victim = self._driver()
        nodes, node = self._stage.nodes, str(victim.node)
        began = now()
        match fault:
            case Fault.KILL:
                force = ("--force", "--grace-period=0", "--wait=false")
                self._space.kubectl("delete", "pod", victim.name, *force)
                return began, self._back_at_work(victim)
            case Fault.FREEZE:
                with nodes.frozen(victim):
                    time.sleep(FROZEN_SECONDS)
                return began, self._works()
            case Fault.DRAIN | Fault.LEAD_DRAIN:
                with nodes.cordoned(node):
                    nodes.drain(node)
                    return began, self._back_at_work(victim)
            case Fault.NODE | Fault.LEAD_NODE:
                with nodes.stopped(node):
                    return began, self._back_at_work(victim)

    def _driver(self) -> TrialPod:
        found = self._space.api.list(POD, self._space.name, _LABELS)
        (driver,) = [pod for pod in map(read_pod, found) if not pod.going]
        return driver

    def _back_at_work(self, victim: TrialPod) -> float:
        """Wait until a new driver delivers; return when it did."""
        another = "another driver has started"
        until(lambda: self._is_another(victim), RECOVERY_SECONDS, another)
        return self._works()

    def _is_another(self, victim: TrialPod) -> bool:
        found = self._space.api.list(POD, self._space.name, _LABELS)
        return any(pod.ready and pod.uid != victim.uid for pod in map(read_pod, found))

    def _works(self) -> float:
        outlet = self.ends.outlet
        before = len(outlet.look())
        until(lambda: len(outlet.look()) >= before + AFTERWARDS, RECOVERY_SECONDS, "at work again")
        return now()
