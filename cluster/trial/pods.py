"""Reads the pods of a pipeline, with the fields that tests use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tandem_core.model.kubernetes_names import KIND_LABEL, PAIR_LABEL, ROLE_LABEL
from tandem_core.model.states import MemberKind, Role

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrialPod:
    """A pod, as the API server reports it."""

    name: str
    uid: str
    kind: str
    pair: str | None
    role: str | None
    node: str | None
    address: str | None
    ready: bool
    going: bool
    """Whether it is being deleted."""
    restarts: int
    container: str
    """The container's id on its node; empty while there is none."""

    @property
    def well(self) -> bool:
        """Whether it is ready and not being deleted."""
        return self.ready and not self.going


def read_pod(document: Object) -> TrialPod:
    """Read a pod from its document."""
    metadata, status = document["metadata"], document.get("status") or {}
    labels = metadata.get("labels") or {}
    containers = status.get("containerStatuses") or [{}]
    return TrialPod(
        name=metadata["name"],
        uid=metadata["uid"],
        kind=labels.get(KIND_LABEL, ""),
        pair=labels.get(PAIR_LABEL),
        role=labels.get(ROLE_LABEL),
        node=document["spec"].get("nodeName"),
        address=status.get("podIP"),
        ready=any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in status.get("conditions") or ()
        ),
        going=metadata.get("deletionTimestamp") is not None,
        restarts=int(containers[0].get("restartCount", 0)),
        container=str(containers[0].get("containerID", "")).rpartition("/")[2],
    )


def replicas(
    pods: list[TrialPod], pair: str | None = None, role: Role | None = None
) -> list[TrialPod]:
    """The replicas among pods, optionally of one pair or role."""
    return [
        pod
        for pod in pods
        if pod.kind == MemberKind.REPLICA
        if pair in {None, pod.pair}
        if role in {None, pod.role}
    ]
