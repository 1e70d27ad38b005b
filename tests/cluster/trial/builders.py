"""Pods and resources for tests of the harness."""

from __future__ import annotations

from typing import Any

from cluster.trial.pods import Object, TrialPod

from tandem_core.model.states import MemberKind, PairState, Phase, Role

PRIMARY, SECONDARY = "spending-g1-pair-0-aaaaa", "spending-g1-pair-0-bbbbb"


def pod(name: str, kind: str, **other: Any) -> TrialPod:
    """A pod that is well."""
    fields: dict[str, Any] = {
        "uid": f"uid of {name}",
        "pair": None,
        "role": None,
        "node": "worker",
        "address": "10.0.0.1",
        "ready": True,
        "going": False,
        "restarts": 0,
        "container": "c0ffee",
    }
    return TrialPod(name=name, kind=kind, **{**fields, **other})


def replica(name: str, role: str | None, **other: Any) -> TrialPod:
    """A replica of the first pair."""
    return pod(name, MemberKind.REPLICA, **{"pair": "pair-0", "role": role, **other})


def everybody() -> list[TrialPod]:
    """The pods of a whole pipeline of one pair."""
    return [
        pod("split-a", MemberKind.SPLIT),
        pod("split-b", MemberKind.SPLIT, node="worker2"),
        replica(PRIMARY, Role.PRIMARY),
        replica(SECONDARY, Role.SECONDARY, node="worker2"),
        pod("merge-a", MemberKind.MERGE),
        pod("merge-b", MemberKind.MERGE),
    ]


def resource() -> Object:
    """The resource of a whole pipeline of one pair, with a status that is true."""
    pair = {"name": "pair-0", "state": PairState.PAIRED}
    return {
        "metadata": {"generation": 2},
        "spec": {
            "splits": {"count": 2},
            "pairs": {"count": 1, "replicas": 2, "spares": 0},
            "merges": {"count": 1},
        },
        "status": {
            "observedGeneration": 2,
            "phase": Phase.RUNNING,
            "pairsReady": "1/1",
            "pairs": [{**pair, "primary": PRIMARY, "secondary": SECONDARY}],
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Paired", "status": "True"},
            ],
        },
    }
