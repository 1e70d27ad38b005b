"""What is kept of a failure, to be read afterwards."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster.kind_cluster import Cluster
from cluster.programs import KUBECTL, built

_LOG_LINES = 2000

_VIEWS = {
    "pods.txt": ("get", "pods", "--output=wide"),
    "objects.txt": ("get", "all,configmaps,leases,poddisruptionbudgets", "--output=wide"),
    "descriptions.txt": ("describe", "pods"),
    "events.txt": ("get", "events", "--sort-by=.metadata.creationTimestamp"),
    "pipelines.yaml": ("get", "streampipelines", "--output=yaml"),
    "leases.yaml": ("get", "leases", "--output=yaml"),
}


def keep(cluster: Cluster, namespace: str, directory: Path) -> None:
    """Write everything about a namespace to files; what cannot be had, why not."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, arguments in _VIEWS.items():
        (directory / name).write_text(_said(cluster, "--namespace", namespace, *arguments))
    listed = _said(cluster, "--namespace", namespace, "get", "pods", "--output=name")
    pods = [line for line in listed.split() if line.startswith("pod/")]
    for pod in pods:
        _keep_logs(cluster, namespace, pod, directory)
    (directory / "nodes.txt").write_text(_said(cluster, "describe", "nodes"))


def _keep_logs(cluster: Cluster, namespace: str, pod: str, directory: Path) -> None:
    logs = ("--namespace", namespace, "logs", pod, "--all-containers", f"--tail={_LOG_LINES}")
    name = pod.removeprefix("pod/")
    (directory / f"{name}.log").write_text(_said(cluster, *logs))
    (directory / f"{name}.previous.log").write_text(_said(cluster, *logs, "--previous"))


def _said(cluster: Cluster, *arguments: str) -> str:
    """What kubectl prints, whether it fails or not."""
    done = subprocess.run(  # noqa: S603 - commands are made in this package
        [built(KUBECTL), "--request-timeout=20s", *arguments],
        env={**os.environ, **cluster.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout
