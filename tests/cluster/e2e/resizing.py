"""Changes of a running pipeline: asks for them, reads what `kubectl` tells, gets in their way."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq
from bench.streaming.deliveries import files_of
from cluster.programs import KUBECTL, built
from cluster.trial.pods import Object, TrialPod, replicas
from cluster.trial.release import Release
from cluster.trial.space import Space
from cluster.trial.status_checks import condition_of
from cluster.trial.waiting import until
from cluster.trial.watching import Watch
from tests.cluster.e2e.flow import Flow

from tandem.control.intent_store import read_intent
from tandem.control.types import Key
from tandem.kube.kinds import NODE, POD
from tandem.kube.objects import is_going, labels_of
from tandem.policy.change.generations import building_generation, numbered
from tandem_core.contract.intent import Intent
from tandem_core.model.kubernetes_names import KIND_LABEL, PIPELINE_LABEL, SLOT_LABEL
from tandem_core.model.states import ChangeStage, ConditionType, EventReason, MemberKind

Item = TypeVar("Item")

CHANGED_WITHIN = 900.0
"""Seconds for a change of pairs: twice as many drivers as usual share two cores, and some fail."""
STEP_WITHIN = 240.0
"""Seconds until a stage of a change is seen, or a workload that it needs."""
MADE = [
    EventReason.GENERATION_PLANNED,
    EventReason.GENERATION_CUT,
    EventReason.GENERATION_RETIRED,
]
"""The events of a change that is made."""
GIVEN_UP = [EventReason.GENERATION_PLANNED, EventReason.GENERATION_ABANDONED]
"""The events of a change that is given up once it is being built."""
STAGES = [stage for stage in ChangeStage if stage is not ChangeStage.ABANDONED]
"""The stages of a change that is made."""

BALLAST = "ballast"
_SLACK_MILLICORES = 50
"""What ballast leaves of a node: less than a driver requests."""
_WAIT_FOREVER = "import signal; signal.pause()"


# --- asking -------------------------------------------------------------------------------------


def scale(flow: Flow, pairs: int) -> None:
    """`kubectl scale`."""
    flow.space.kubectl("scale", f"stp/{flow.name}", f"--replicas={pairs}")


def patch(flow: Flow, spec: Object) -> None:
    """`kubectl patch` of the manifest."""
    document = json.dumps({"spec": spec})
    flow.space.kubectl("patch", "stp", flow.name, "--type=merge", f"--patch={document}")


# --- looking ------------------------------------------------------------------------------------


def change_of(flow: Flow) -> Object:
    """`status.change`; empty if there is none."""
    found: Object = flow.status().get("change") or {}
    return found


def progressing(flow: Flow) -> tuple[str, str]:
    """Status and reason of the condition `Progressing`."""
    found = flow.condition(ConditionType.PROGRESSING)
    return found.get("status", ""), found.get("reason", "")


def past_changes(flow: Flow) -> list[tuple[int, int, bool]]:
    """Pairs before and after each change in the history, the newest first; whether it was made."""
    return [
        (past["pairsBefore"], past["pairsAfter"], not past.get("abandoned"))
        for past in flow.status().get("history") or ()
    ]


def pairs_of(flow: Flow) -> set[str]:
    """The current pairs, by the status."""
    return {pair["name"] for pair in flow.status()["pairs"]}


def drivers(flow: Flow, *pairs: str) -> dict[str, TrialPod]:
    """The pods of these pairs that are not being deleted, by uid; of all pairs if none is named."""
    found = [pod for pod in replicas(flow.pods()) if not pod.going]
    return {pod.uid: pod for pod in found if not pairs or pod.pair in pairs}


def building(flow: Flow) -> dict[str, tuple[str, ...]]:
    """The pairs that are being built, each with the pairs that it replaces; empty if none is."""
    generation = building_generation(intent_of(flow))
    pairs = generation.pairs if generation is not None else ()
    return {pair.name: pair.parents for pair in pairs if pair.parents}


def intent_of(flow: Flow) -> Intent:
    """The intent, as the operator has written it."""
    uid = flow.resource()["metadata"]["uid"]
    recorded = read_intent(flow.space.api, Key(flow.space.name, flow.name), uid)
    assert recorded is not None
    return recorded.intent


def slots_of(flow: Flow) -> set[str]:
    """The merge slots that have pods which are not being deleted."""
    labels = {PIPELINE_LABEL: flow.name, KIND_LABEL: MemberKind.MERGE}
    pods = flow.space.api.list(POD, flow.space.name, labels)
    return {labels_of(pod)[SLOT_LABEL] for pod in pods if not is_going(pod)}


class Story:
    """What `kubectl get stp --watch` prints about a pipeline, and each version of its resource."""

    def __init__(self, flow: Flow) -> None:
        space = flow.space
        self._lines = space.records / "story.txt"
        watch = ["--namespace", space.name, "get", "stp", flow.name, "--watch"]
        with self._lines.open("wb") as output:
            self._kubectl = subprocess.Popen(
                [built(KUBECTL), *watch],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **space.cluster.env},
            )
        self._resources = Watch(space.cluster, space.name, "streampipelines", space.records)

    def stop(self) -> None:
        """End both watches."""
        self._resources.stop()
        self._kubectl.kill()
        self._kubectl.wait()

    def stages(self) -> list[ChangeStage]:
        """The stages in the column `Change` so far, each as often as it began."""
        return stages_in(self._lines.read_text())

    def mark(self) -> int:
        """The number of versions so far."""
        return len(self._resources.changes())

    def conditions(self, kind: ConditionType, mark: int = 0) -> list[tuple[str, str]]:
        """Status and reason of a condition in the versions after the first `mark` ones."""
        versions = (change.document for change in self._resources.changes()[mark:])
        found = (condition_of(version, kind) for version in versions)
        return without_repeats([(each["status"], each["reason"]) for each in found if each])


def stages_in(lines: str) -> list[ChangeStage]:
    """The stages in what `kubectl get stp --watch` has printed, each as often as it began."""
    known = set(ChangeStage)
    return without_repeats([ChangeStage(word) for word in lines.split() if word in known])


def without_repeats(items: list[Item]) -> list[Item]:
    """The items without those that equal the one before."""
    return [item for place, item in enumerate(items) if place == 0 or item != items[place - 1]]


@contextmanager
def watched(flow: Flow) -> Iterator[Story]:
    """Watch a pipeline until the end of the block."""
    story = Story(flow)
    try:
        yield story
    finally:
        story.stop()


def next_generation(flow: Flow) -> int:
    """The number of the generation that the next change builds first."""
    return numbered(intent_of(flow)).next_generation


def told_of(flow: Flow, generation: int) -> list[EventReason]:
    """The reasons of the events about a generation, in the order in which each first came.

    An operator that starts tells again what members still report.
    """
    about = f"generation {generation} "
    told = (each.reason for each in flow.events.all() if each.message.startswith(about))
    return [EventReason(reason) for reason in dict.fromkeys(told)]


def until_made(flow: Flow, generation: int) -> None:
    """Wait until events and status say that a change has ended."""
    until(lambda: is_made(flow, generation), CHANGED_WITHIN, f"generation {generation} is made")


def is_made(flow: Flow, generation: int) -> bool:
    """Whether the pairs that a generation replaces are retired, and the status says so."""
    return EventReason.GENERATION_RETIRED in told_of(flow, generation) and not change_of(flow)


def assert_counts_grow(output: Path) -> None:
    """The counts of each user grow from file to file, in the order in which the files appeared."""
    counts: dict[str, int] = {}
    for file in sorted(files_of(output), key=lambda file: file.stat().st_ctime_ns):
        for row in pq.read_table(file, columns=["user", "n"]).to_pylist():
            assert row["n"] > counts.get(row["user"], 0), (file.name, row)
            counts[row["user"]] = row["n"]


# --- disturbing ---------------------------------------------------------------------------------


class OperatorKiller:
    """Deletes the operator at each stage of a change, as soon as the watch shows it."""

    def __init__(self, release: Release, story: Story) -> None:
        self._release = release
        self._story = story
        self._mark = len(story.stages())
        self.killed_at: list[ChangeStage] = []

    def until(self, condition: Callable[[], Any], limit: float, what: str) -> None:
        """Wait, and kill meanwhile."""

        def holds() -> bool:
            self._look()
            return bool(condition())

        until(holds, limit, what)

    def _look(self) -> None:
        for stage in self._story.stages()[self._mark :]:
            if stage not in self.killed_at:
                kill_operator(self._release)
                self.killed_at.append(stage)


def kill_operator(release: Release) -> None:
    """Delete the operator's pod without grace; its Deployment creates another one."""
    for operator in release.operators():
        release.kill(operator)


@contextmanager
def full_nodes(space: Space, nodes: list[str], image: str) -> Iterator[None]:
    """Leave no node with room for a driver: pods that do nothing request the CPU that is free."""
    space.apply(*(_ballast(space, node, image) for node in nodes))
    try:
        until(lambda: _are_running(space, len(nodes)), 120, "the ballast is in place")
        yield
    finally:
        space.kubectl("delete", "pods", "--selector", BALLAST, "--grace-period=0", "--force")


def _are_running(space: Space, count: int) -> bool:
    found = space.api.list(POD, space.name, {BALLAST: "true"})
    return [pod["status"]["phase"] for pod in found] == ["Running"] * count


def _ballast(space: Space, node: str, image: str) -> Object:
    amount = f"{_free_millicores(space, node) - _SLACK_MILLICORES}m"
    container = {
        "name": BALLAST,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", _WAIT_FOREVER],
        "resources": {"requests": {"cpu": amount}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{BALLAST}-{node}", "labels": {BALLAST: "true"}},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def _free_millicores(space: Space, node: str) -> int:
    """The CPU of a node that its pods have not requested."""
    pods = (pod for pod in space.api.list(POD, None) if pod["spec"].get("nodeName") == node)
    requested = sum(
        millicores(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
        for pod in pods
        if pod["status"]["phase"] in {"Pending", "Running"}
        for container in pod["spec"]["containers"]
    )
    allocatable = space.api.get(NODE, None, node)["status"]["allocatable"]["cpu"]
    return millicores(allocatable) - requested


def millicores(amount: str) -> int:
    """An amount of CPU, in thousandths of a core."""
    return int(amount[:-1]) if amount.endswith("m") else 1000 * int(amount)


@contextmanager
def quota_of_pods(space: Space, more: int) -> Iterator[None]:
    """Allow so many more pods in the namespace than there are."""
    count = len(space.api.list(POD, space.name)) + more
    space.kubectl("create", "quota", "few", f"--hard=pods={count}")
    try:
        used = ["get", "quota", "few", "--output=jsonpath={.status.used.pods}"]
        until(lambda: space.kubectl(*used), 60, "the quota is counted")
        yield
    finally:
        space.kubectl("delete", "quota", "few")


@contextmanager
def broken_settings(space: Space, name: str) -> Iterator[None]:
    """Settings with which no new JVM starts; drivers that run have read them before."""
    variable = "--from-literal=JAVA_TOOL_OPTIONS=-javaagent:/nowhere/agent.jar"
    space.kubectl("create", "configmap", name, variable)
    try:
        yield
    finally:
        space.kubectl("delete", "configmap", name)
