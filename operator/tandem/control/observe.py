"""Observes a pipeline: its objects on the API server, and the reports of its members."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import NamedTuple

from tandem.control.intent_store import IntentUnreadable, NameConflict, Recorded, read_intent
from tandem.control.nodes import Node, hosts_of
from tandem.control.pods import Pod, Run, member_of, read_pod, template_of
from tandem.control.types import Instant, Key
from tandem.kube.kinds import DEPLOYMENT, POD, REPLICA_SET, STREAM_PIPELINE, Object
from tandem.kube.objects import is_going, is_owned_by, labels_of, uid_of
from tandem.kube.port import Kube, NotFound
from tandem.manifests.desired_state import Workloads
from tandem.policy.snapshot import Complaint, Life, MemberPlace, MemberSnapshot, Snapshot
from tandem_core.contract.intent import Intent
from tandem_core.model.kubernetes_names import (
    GENERATION_LABEL,
    KIND_LABEL,
    PAIR_LABEL,
    PIPELINE_LABEL,
    SLOT_LABEL,
)
from tandem_core.model.states import MERGES_PER_SLOT, MemberKind
from tandem_core.network.member_client import Observation

TAKEN = "NameTaken"
"""Reason of a complaint: another object has a name that the pipeline needs."""

_ORDER = {kind: number for number, kind in enumerate(MemberKind)}


class Group(NamedTuple):
    """Pods that can replace each other."""

    kind: MemberKind
    pair: str | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class PipelineObjects:
    """The pipeline's objects as last listed from the API server."""

    at: float
    resource: Object
    recorded: Recorded | Complaint | None
    """The intent; None before the pipeline begins, a complaint if it cannot be used."""
    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    shortages: Mapping[Group, str] = field(default_factory=dict)
    """Why missing pods could not be created."""
    templates: Mapping[str, Object] = field(default_factory=dict)
    """The current pod template of each pair's replicas."""
    births: Mapping[str, int] = field(default_factory=dict)
    """The pairs that have a ReplicaSet, with the generation that each was born in."""
    splits: int | None = None
    """The number of splits that was ordered last."""
    slots: tuple[int, ...] = ()
    """The merge slots that have a Deployment."""

    @property
    def uid(self) -> str:
        """The pipeline's identity."""
        return uid_of(self.resource)

    @property
    def generation(self) -> int:
        """The generation of the manifest."""
        return int(self.resource["metadata"].get("generation", 0))

    def template_of(self, pod: Pod) -> Object:
        """The template that a pod's replacement is made from; if unknown, the pod itself."""
        return self.templates.get(pod.place.pair or "", pod.document)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A snapshot, and the pods behind its members by their names."""

    snapshot: Snapshot
    pods: Mapping[str, Pod]
    complete: bool
    """Whether every process has been asked at least once."""


def list_pipeline(
    kube: Kube, key: Key, nodes: tuple[Node, ...], at: float
) -> PipelineObjects | None:
    """Read all objects of a pipeline; None if it is gone or being deleted."""
    try:
        resource = kube.get(STREAM_PIPELINE, key.namespace, key.name)
    except NotFound:
        return None
    if is_going(resource):
        return None
    labels = {PIPELINE_LABEL: key.name}
    found = [read_pod(document) for document in kube.list(POD, key.namespace, labels)]
    replica_sets = kube.list(REPLICA_SET, key.namespace, labels)
    deployments = kube.list(DEPLOYMENT, key.namespace, labels)
    return PipelineObjects(
        at=at,
        resource=resource,
        recorded=_intent_of(kube, key, uid_of(resource)),
        pods=tuple(pod for pod in found if pod is not None),
        nodes=nodes,
        shortages=shortages(replica_sets),
        templates={
            labels_of(document)[PAIR_LABEL]: document["spec"]["template"]
            for document in replica_sets
            if PAIR_LABEL in labels_of(document)
        },
        births=_births(each for each in replica_sets if is_owned_by(each, uid_of(resource))),
        splits=_ordered_splits(deployments),
        slots=_slots(deployments),
    )


def _births(replica_sets: Iterable[Object]) -> dict[str, int]:
    return {
        labels[PAIR_LABEL]: int(labels[GENERATION_LABEL])
        for labels in map(labels_of, filterfalse(is_going, replica_sets))
        if PAIR_LABEL in labels and labels.get(GENERATION_LABEL, "").isdecimal()
    }


def _ordered_splits(deployments: Iterable[Object]) -> int | None:
    ordered = (
        int(document["spec"].get("replicas", 1))
        for document in filterfalse(is_going, deployments)
        if labels_of(document).get(KIND_LABEL) == MemberKind.SPLIT
    )
    return next(ordered, None)


def _slots(deployments: Iterable[Object]) -> tuple[int, ...]:
    found = (labels_of(each).get(SLOT_LABEL, "") for each in filterfalse(is_going, deployments))
    return tuple(sorted(int(slot) for slot in found if slot.isdecimal()))


def _intent_of(kube: Kube, key: Key, uid: str) -> Recorded | Complaint | None:
    try:
        return read_intent(kube, key, uid)
    except NameConflict as problem:
        return Complaint(TAKEN, str(problem))
    except IntentUnreadable as problem:
        return Complaint("IntentUnreadable", str(problem))


def shortages(replica_sets: Iterable[Object]) -> dict[Group, str]:
    """The messages of ReplicaSets that cannot create their pods."""
    said: dict[Group, str] = {}
    for document in replica_sets:
        group = _group(labels_of(document))
        for condition in (document.get("status") or {}).get("conditions") or ():
            failing = condition.get("type") == "ReplicaFailure"
            if failing and condition.get("status") == "True" and group is not None:
                said[group] = str(condition.get("message", ""))
    return said


def _group(labels: Mapping[str, str]) -> Group | None:
    kind, slot = labels.get(KIND_LABEL), labels.get(SLOT_LABEL)
    if kind not in {each.value for each in MemberKind}:
        return None
    number = int(slot) if slot is not None and slot.isdecimal() else None
    return Group(MemberKind(kind), labels.get(PAIR_LABEL), number)


def observe_pods(
    listing: PipelineObjects,
    intent: Intent,
    looks: Mapping[Run, Observation],
    moment: Instant,
    *,
    workloads: Workloads,
    mark: str | None,
    fresh: float,
) -> ClusterView:
    """Combine pods, reports and empty places into a snapshot of all members.

    Terminating pods are left out: others take their places, which stay empty until then. A lead's
    report is valid for `fresh` seconds. `mark` is the mark of drivers for the current manifest: a
    driver with an older one is outdated once its pair's template has the new mark. Places without
    a member are those of `workloads`, with the intent's number of replicas.
    """
    volumes = _volumes(intent, looks.values())
    pods = {pod.name: pod for pod in listing.pods if not pod.going}
    members = [
        member_of(
            pod,
            looks.get(pod.run, Observation()),
            moment,
            volumes=volumes,
            hosts=hosts_of(listing.template_of(pod), listing.nodes),
            template=mark if template_of(listing.template_of(pod)) == mark else None,
        )
        for pod in pods.values()
    ]
    members += _empty_places(members, _roster(workloads, intent.replicas), listing.shortages)
    members.sort(key=lambda m: (_ORDER[m.kind], m.name))
    heard = {run for run, look in looks.items() if look.is_fresh(moment.now, fresh)}
    names = {pod.name for pod in pods.values() if pod.run in heard}
    return ClusterView(
        snapshot=Snapshot.taken(moment.now, tuple(members), names, intent),
        pods=pods,
        complete=all(map(_was_asked, looks.values())),
    )


def _was_asked(look: Observation) -> bool:
    return look.heard is not None or look.silent_since is not None


def _volumes(intent: Intent, looks: Iterable[Observation]) -> frozenset[str]:
    """All volumes that the intent or a lead names."""
    leads = (look.report.lead for look in looks if look.report is not None)
    seats = (seat for lead in leads if lead for pair in lead.pairs for seat in pair.seats)
    return frozenset({volume for _, volume in intent.primaries} | {s.volume for s in seats})


def _roster(workloads: Workloads, replicas: int) -> Mapping[Group, int]:
    """The desired number of pods of each group."""
    return {
        Group(MemberKind.SPLIT): workloads.splits,
        **{Group(MemberKind.REPLICA, pair=pair.name): replicas for pair in workloads.pairs},
        **{Group(MemberKind.MERGE, slot=slot): MERGES_PER_SLOT for slot in workloads.slots},
    }


def _empty_places(
    members: Iterable[MemberSnapshot], roster: Mapping[Group, int], notes: Mapping[Group, str]
) -> Iterator[MemberSnapshot]:
    there = [Group(m.kind, m.place.pair, m.place.slot) for m in members if m.volume_there]
    for group, count in roster.items():
        for number in range(there.count(group), count):
            what = group.pair or (group.kind if group.slot is None else f"merge-{group.slot}")
            place = MemberPlace(f"{what}/missing-{number}", group.kind, group.pair, group.slot)
            yield MemberSnapshot(place, life=Life.ABSENT, note=notes.get(group, ""))
