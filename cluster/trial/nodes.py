"""Disturbs nodes, and the processes and connections of the pods on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product

from cluster.kind_cluster import KindCluster
from cluster.trial.pods import TrialPod
from cluster.trial.waiting import InVain, until
from tandem.kube.kinds import NODE
from tandem.kube.port import Kube

READY_WITHIN = 120.0
LOST_WITHIN = 90.0
"""Seconds until the cluster notices a lost node; about 16 as it is configured."""

_CUT = "tandem_test_cut"


class ClusterNodes:
    """The worker nodes, each a container on this machine."""

    def __init__(self, cluster: KindCluster, api: Kube) -> None:
        self._cluster = cluster
        self._api = api

    def names(self) -> list[str]:
        """All workers."""
        return self._cluster.workers()

    def others(self, name: str | None) -> list[str]:
        """All workers but one."""
        return [worker for worker in self.names() if worker != name]

    # --- processes ----------------------------------------------------------------------------

    @contextmanager
    def frozen(self, pod: TrialPod) -> Iterator[None]:
        """Pause all processes of a pod's container; resume them at the end of the block."""
        node, pids = str(pod.node), self._processes(pod)
        self._signal(node, "STOP", pids)
        try:
            yield
        finally:
            # `kill` fails for processes that have ended meanwhile, which is fine.
            self._signal(node, "CONT", pids)

    def _processes(self, pod: TrialPod) -> list[str]:
        listed = self._on(str(pod.node), "ctr", "-n", "k8s.io", "tasks", "ps", pod.container)
        pids = process_ids(listed)
        if not pids:
            raise InVain(f"no process in {pod.name}: {listed}")
        return pids

    def _signal(self, node: str, name: str, pids: Iterable[str]) -> None:
        each = "; ".join(f"kill -{name} {pid}" for pid in pids)
        self._on(node, "sh", "-c", f"{each}; true")

    # --- connections --------------------------------------------------------------------------

    @contextmanager
    def cut(self, some: Iterable[TrialPod], others: Iterable[TrialPod]) -> Iterator[None]:
        """Drop every packet between two groups of pods, in both directions."""
        rules = cut_rules([str(pod.address) for pod in some], [str(pod.address) for pod in others])
        try:
            for node in self.names():
                self._on(node, "nft", "-f", "-", text=rules)
            yield
        finally:
            self.heal()

    def dropped(self) -> int:
        """Packets that the cut has dropped so far, on all nodes."""
        listed = (
            self._on(node, "nft", "--json", "list", "table", "inet", _CUT) for node in self.names()
        )
        return sum(map(dropped_packets, listed))

    def heal(self) -> None:
        """Remove all cuts, including those of an earlier run."""
        for node in self.names():
            # Declared first, so that deleting it never fails.
            self._on(node, "nft", "-f", "-", text=f"table inet {_CUT}\ndelete table inet {_CUT}\n")

    # --- whole nodes --------------------------------------------------------------------------

    @contextmanager
    def cordoned(self, node: str) -> Iterator[None]:
        """Keep new pods off a node until the end of the block."""
        self._cluster.kubectl("cordon", node)
        try:
            yield
        finally:
            self._cluster.kubectl("uncordon", node)

    def drain(self, node: str, selector: str = "", limit: int = 240) -> None:
        """Evict the pods of a node that match a selector, or all, within their disruption budgets.

        Raises:
            StepFailed: some could not be evicted within `limit` seconds.
        """
        chosen = [f"--pod-selector={selector}"] if selector else []
        options = ["--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={limit}s"]
        self._cluster.kubectl("drain", node, *options, *chosen)

    @contextmanager
    def stopped(self, node: str) -> Iterator[None]:
        """Stop a node; at the end of the block, start it and wait until it is ready."""
        try:
            self._cluster.engine.ask("stop", node)
            until(lambda: not self.is_ready(node), LOST_WITHIN, f"{node} is missed")
            yield
        finally:
            self._cluster.engine.ask("start", node)
            until(lambda: self.is_ready(node), READY_WITHIN, f"{node} is ready again")

    def is_ready(self, node: str) -> bool:
        """Whether the API server reports a node as ready."""
        conditions = self._api.get(NODE, None, node)["status"]["conditions"]
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _on(self, node: str, *command: str, text: str | None = None) -> str:
        return self._cluster.engine.ask("exec", "--interactive", node, *command, text=text)


def process_ids(listed: str) -> list[str]:
    """The process ids in the output of `ctr tasks ps`."""
    first = [line.split()[0] for line in listed.splitlines() if line.strip()]
    return [word for word in first if word.isdecimal()]


def dropped_packets(listed: str) -> int:
    """The sum of all packet counters in the output of `nft --json list`."""
    rules = (part["rule"]["expr"] for part in json.loads(listed)["nftables"] if "rule" in part)
    counters = (each["counter"] for rule in rules for each in rule if "counter" in each)
    return sum(int(counter["packets"]) for counter in counters)


def cut_rules(some: Iterable[str], others: Iterable[str]) -> str:
    """Rules for nft that drop packets between two groups of addresses, replacing earlier rules."""
    there = list(product(some, others))
    both = [*there, *((b, a) for a, b in there)]
    drops = "\n".join(f"  ip saddr {a} ip daddr {b} counter drop" for a, b in both)
    return (
        f"table inet {_CUT}\ndelete table inet {_CUT}\n"
        f"table inet {_CUT} {{\n chain forward {{\n"
        f"  type filter hook forward priority -300; policy accept;\n{drops}\n }}\n}}\n"
    )
