"""Measures the memory of pods, as the kubelets of their nodes count it."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.kind_cluster import KindCluster

_LOOKS = 6
_PAUSE_SECONDS = 5.0


@dataclass(frozen=True)
class Footprint:
    """Bytes of all pods of a namespace at one moment."""

    working_set: int
    """Memory that cannot be reclaimed: without file pages that were not used lately."""
    rss: int
    pods: int


def footprint(summaries: Iterable[Mapping[str, Any]], namespace: str) -> Footprint:
    """Add up the summaries of nodes for the pods of a namespace."""
    pods = [
        pod
        for summary in summaries
        for pod in summary.get("pods") or ()
        if pod["podRef"]["namespace"] == namespace
    ]
    memory = [
        container.get("memory") or {} for pod in pods for container in pod.get("containers") or ()
    ]
    return Footprint(
        working_set=sum(int(each.get("workingSetBytes", 0)) for each in memory),
        rss=sum(int(each.get("rssBytes", 0)) for each in memory),
        pods=len(pods),
    )


def watch_memory(cluster: KindCluster, namespaces: Sequence[str]) -> dict[str, list[Footprint]]:
    """Sample the memory of namespaces several times, for half a minute."""
    found: dict[str, list[Footprint]] = {namespace: [] for namespace in namespaces}
    for _ in range(_LOOKS):
        time.sleep(_PAUSE_SECONDS)
        summaries = [_summary(cluster, node) for node in cluster.workers()]
        for namespace in namespaces:
            found[namespace].append(footprint(summaries, namespace))
    return found


def _summary(cluster: KindCluster, node: str) -> dict[str, Any]:
    path = f"/api/v1/nodes/{node}/proxy/stats/summary"
    found: dict[str, Any] = json.loads(cluster.kubectl("get", "--raw", path))
    return found
