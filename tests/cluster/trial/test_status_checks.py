"""What is missing in a pipeline, or said of it that is not so, is seen."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cluster.trial.pods import Object, TrialPod, read_pod
from cluster.trial.status_checks import co_located, missing_pods, shortcomings, unheld
from cluster.trial.watching import ObservedChange
from tests.cluster.trial.builders import (
    PRIMARY,
    SECONDARY,
    everybody,
    pod,
    replica,
    resource,
)

from tandem_core.model.kubernetes_names import KIND_LABEL, PAIR_LABEL, ROLE_LABEL
from tandem_core.model.states import MemberKind, Role


def test_whole_pipeline_has_no_shortcomings() -> None:
    leaving = replica("spending-g1-pair-0-old", Role.SECONDARY, going=True, ready=False)
    assert shortcomings(resource(), [*everybody(), leaving]) == []
    assert missing_pods(resource()["spec"], [*everybody(), leaving]) == []


def without(name: str) -> Callable[[list[TrialPod]], list[TrialPod]]:
    return lambda pods: [each for each in pods if each.name != name]


def changed(who: str, **fields: Any) -> Callable[[list[TrialPod]], list[TrialPod]]:
    return lambda pods: [replace(e, **fields) if e.name == who else e for e in pods]


@pytest.mark.parametrize(
    ("disturb", "words"),
    [
        (without("split-a"), "1 of 2 pods of kind split are ready"),
        (without("merge-b"), "1 of 2 pods of kind merge are ready"),
        (changed("split-b", ready=False), "split-b is not ready"),
        (changed(PRIMARY, name="new"), "pair-0 is said to be"),
        (changed(SECONDARY, going=True), "pair-0 is said to be"),
        (changed(PRIMARY, role=Role.SECONDARY), f"{PRIMARY} is primary and is labelled secondary"),
        (changed(SECONDARY, role=None), f"{SECONDARY} is secondary and is labelled None"),
    ],
)
def test_faulty_pods_are_detected(
    disturb: Callable[[list[TrialPod]], list[TrialPod]], words: str
) -> None:
    assert any(words in each for each in shortcomings(resource(), disturb(everybody())))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"phase": "Starting"}, "the phase is Starting"),
        ({"observedGeneration": 1}, "version 1"),
        ({"pairsReady": "0/1"}, "0/1 pairs are ready"),
        ({"conditions": []}, "Ready is None"),
        ({"pairs": [{"name": "pair-0", "state": "Alone", "primary": PRIMARY}]}, "pair-0 is Alone"),
    ],
)
def test_wrong_status_is_detected(changes: Object, words: str) -> None:
    told = resource()
    told["status"] |= changes
    assert any(words in each for each in shortcomings(told, everybody()))


def test_missing_status_is_a_shortcoming() -> None:
    told = resource()
    del told["status"]
    assert shortcomings(told, everybody())


# --- drains -------------------------------------------------------------------------------------


def of_a_pod(name: str, *, ready: bool, going: bool = False, pair: str = "pair-0") -> Object:
    metadata: Object = {
        "name": name,
        "uid": name,
        "labels": {KIND_LABEL: "replica", PAIR_LABEL: pair, ROLE_LABEL: "primary"},
    }
    if going:
        metadata["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    condition = {"type": "Ready", "status": str(ready)}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": [condition]}}


def came(name: str, **state: Any) -> ObservedChange:
    return ObservedChange("MODIFIED", of_a_pod(name, **state))


ONE_AFTER_THE_OTHER = [
    came("a", ready=False),
    came("a", ready=True),
    came("b", ready=True),
    came("a", ready=True, going=True),
    ObservedChange("DELETED", of_a_pod("a", ready=False, going=True)),
    came("c", ready=False),
    came("c", ready=True),
    came("b", ready=True, going=True),
]


def test_pair_with_one_replica_at_all_times_is_held() -> None:
    assert unheld(ONE_AFTER_THE_OTHER, "pair-0") == []


def test_simultaneous_loss_of_both_replicas_is_detected() -> None:
    both = [*ONE_AFTER_THE_OTHER[:4], came("b", ready=True, going=True)]
    assert len(unheld(both, "pair-0")) == 1
    assert unheld(both, "pair-1") == []
    lost = [*ONE_AFTER_THE_OTHER[:5], came("b", ready=False)]
    assert len(unheld(lost, "pair-0")) == 1


def test_colocated_twins_and_splits_are_detected() -> None:
    assert co_located(everybody()) == []
    together = [replace(each, node="worker") for each in everybody()]
    assert co_located(together) == ["pair-0", "splits"]
    leaving = [*everybody(), pod("old", MemberKind.SPLIT, going=True)]
    assert co_located(leaving) == []


# --- pods ---------------------------------------------------------------------------------------


def test_pod_document_is_parsed() -> None:
    document = of_a_pod("a", ready=True)
    document["spec"]["nodeName"] = "worker"
    document["status"] |= {
        "podIP": "10.0.0.7",
        "containerStatuses": [{"restartCount": 2, "containerID": "containerd://c0ffee"}],
    }
    found = read_pod(document)
    assert (found.address, found.node, found.restarts) == ("10.0.0.7", "worker", 2)
    assert (found.container, found.pair, found.role) == ("c0ffee", "pair-0", "primary")
    assert found.well


def test_unstarted_pod_is_parsed() -> None:
    found = read_pod({"metadata": {"name": "a", "uid": "1"}, "spec": {}})
    assert (found.ready, found.container, found.kind) == (False, "", "")
