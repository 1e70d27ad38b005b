"""Checks that a pipeline has all its pods, and that status and labels agree with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from cluster.trial.pods import Object, TrialPod, replicas
from cluster.trial.watching import ObservedChange
from tandem_core.model.states import ConditionType, MemberKind, PairState, Phase, Role


def shortcomings(resource: Object, pods: Sequence[TrialPod]) -> list[str]:
    """What is missing until all pods are ready, every pair is paired, and the status says so.

    A status that is older than the pods shows by the pod names in it.
    """
    staying = [pod for pod in pods if not pod.going]
    status = resource.get("status") or {}
    return [
        *_of_pods(resource["spec"], staying),
        *_of_status(resource),
        *(each for pair in status.get("pairs", ()) for each in _of_pair(pair, staying)),
    ]


def missing_pods(spec: Object, pods: Sequence[TrialPod]) -> list[str]:
    """Which pods are missing, regardless of the status."""
    return list(_of_pods(spec, [pod for pod in pods if not pod.going]))


def _of_pods(spec: Object, pods: Sequence[TrialPod]) -> Iterator[str]:
    there = Counter(pod.kind for pod in pods if pod.ready)
    wanted = {
        MemberKind.SPLIT: spec["splits"]["count"],
        MemberKind.REPLICA: spec["pairs"]["count"] * spec["pairs"]["replicas"],
        MemberKind.MERGE: spec["merges"]["count"] * 2,
        MemberKind.SPARE: spec["pairs"]["spares"],
    }
    for kind, count in wanted.items():
        if there[kind] != count:
            yield f"{there[kind]} of {count} pods of kind {kind} are ready"
    for pod in pods:
        if not pod.ready:
            yield f"{pod.name} is not ready"


def _of_status(resource: Object) -> Iterator[str]:
    status, pairs = resource.get("status") or {}, resource["spec"]["pairs"]["count"]
    if status.get("observedGeneration") != resource["metadata"]["generation"]:
        yield f"the status is about version {status.get('observedGeneration')} of the manifest"
    if status.get("phase") != Phase.RUNNING:
        yield f"the phase is {status.get('phase')}"
    if status.get("pairsReady") != f"{pairs}/{pairs}":
        yield f"{status.get('pairsReady')} pairs are ready"
    for condition in (ConditionType.READY, ConditionType.PAIRED):
        found = condition_of(resource, condition)
        if found.get("status") != "True":
            yield f"{condition} is {found.get('status')}: {found.get('message', '')}"


def _of_pair(pair: Object, pods: Sequence[TrialPod]) -> Iterator[str]:
    name = pair["name"]
    there = replicas(list(pods), name)
    told = {pair.get("primary"), pair.get("secondary")}
    if pair["state"] != PairState.PAIRED:
        yield f"{name} is {pair['state']}"
    if told != {pod.name for pod in there}:
        yield f"{name} is said to be {told} and is {[pod.name for pod in there]}"
    for pod in there:
        role = Role.PRIMARY if pod.name == pair.get("primary") else Role.SECONDARY
        if pod.role != role:
            yield f"{pod.name} is {role} and is labelled {pod.role}"


def condition_of(resource: Object, kind: ConditionType) -> Object:
    """A condition of the status; empty if the status lacks it."""
    conditions: list[Object] = (resource.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


def unheld(changes: Iterable[ObservedChange], pair: str) -> list[str]:
    """The changes after which a pair had no replica that was ready and not being deleted.

    Counted from the first ready replica on. `changes` are those of pods, in their order.
    """
    pods: dict[str, TrialPod] = {}
    held, found = False, []
    for change in changes:
        pod = change.pod
        if pod.kind != MemberKind.REPLICA or pod.pair != pair:
            continue
        if change.type == "DELETED":
            pods.pop(pod.uid, None)
        else:
            pods[pod.uid] = pod
        holds = any(each.well for each in pods.values())
        if held and not holds:
            found.append(f"{pair} was not held after {change.type} of {pod.name}")
        held = held or holds
    return found


def co_located(pods: Iterable[TrialPod]) -> list[str]:
    """The pairs whose replicas share a node, and `splits` if splits do."""
    staying = [pod for pod in pods if not pod.going and pod.kind in _SPREAD]
    grouped = groupby(sorted(staying, key=_group), _group)
    nodes: dict[str, Any] = {name: [pod.node for pod in members] for name, members in grouped}
    return [name for name, used in nodes.items() if len(set(used)) < len(used)]


_SPREAD = frozenset({MemberKind.SPLIT, MemberKind.REPLICA})


def _group(pod: TrialPod) -> str:
    return pod.pair or "splits"
