"""Collects logs and objects of a failed test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster.kind_cluster import KindCluster
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


def keep(cluster: KindCluster, namespace: str, directory: Path) -> None:
    """Write logs and objects of a namespace to files; where kubectl fails, its error message."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, arguments in _VIEWS.items():
        (directory / name).write_text(_said(cluster, "--namespace", namespace, *arguments))
    listed = _said(cluster, "--namespace", namespace, "get", "pods", "--output=name")
    pods = [line for line in listed.split() if line.startswith("pod/")]
    for pod in pods:
        _keep_logs(cluster, namespace, pod, directory)
    (directory / "nodes.txt").write_text(_said(cluster, "describe", "nodes"))


def _keep_logs(cluster: KindCluster, namespace: str, pod: str, directory: Path) -> None:
    logs = ("--namespace", namespace, "logs", pod, "--all-containers", f"--tail={_LOG_LINES}")
    name = pod.removeprefix("pod/")
    (directory / f"{name}.log").write_text(_said(cluster, *logs))
    (directory / f"{name}.previous.log").write_text(_said(cluster, *logs, "--previous"))


def _said(cluster: KindCluster, *arguments: str) -> str:
    """The output of kubectl, also if it fails."""
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
