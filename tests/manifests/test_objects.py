import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from tests.manifests.api_fields import unknown_fields
from tests.manifests.orders import ORDERS, manifest, order, orders
from tests.manifests.pod_security import violations
from tests.repeatable import thorough

from tandem.manifests.config_objects import intent_of, register_of, token_of
from tandem.manifests.desired_state import DesiredState
from tandem.manifests.objects import objects_of
from tandem_core.model.kubernetes_names import KIND_LABEL, MOST_NAME, PAIR_LABEL

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def everything(order: DesiredState) -> list[dict[str, Any]]:
    once = (
        token_of(order, "secret"),
        register_of(order),
        intent_of(order, "intent", {"function.1": b"form"}),
    )
    return [*once, *objects_of(order)]


def workloads(order: DesiredState) -> list[dict[str, Any]]:
    return [found for found in objects_of(order) if found["kind"] in {"Deployment", "ReplicaSet"}]


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()


@thorough(60)
@given(order=orders())
def test_object_names_are_valid_and_unique(order: DesiredState) -> None:
    assert len(order.name) <= MOST_NAME
    found = [(made["kind"], made["metadata"]["name"]) for made in everything(order)]
    assert len(set(found)) == len(found)
    for _, name in found:
        assert DNS_LABEL.fullmatch(name)
        assert len(name) <= 57


@thorough(60)
@given(order=orders())
def test_all_objects_are_owned_by_pipeline(order: DesiredState) -> None:
    for made in everything(order):
        metadata = made["metadata"]
        assert metadata["namespace"] == order.namespace
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("StreamPipeline", order.name)
        assert (owner["uid"], owner["controller"]) == (order.uid, True)
        assert "finalizers" not in metadata


@thorough(60)
@given(order=orders())
def test_every_pod_meets_restricted_pod_security_standard(order: DesiredState) -> None:
    for made in workloads(order):
        pod = made["spec"]["template"]["spec"]
        assert violations(pod) == []
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert pod["automountServiceAccountToken"] is (container["name"] == "split")


def test_pod_security_checker_detects_violations() -> None:
    assert violations({"containers": [{"name": "bare"}]}) == [
        "allowPrivilegeEscalation",
        "runAsNonRoot",
        "seccompProfile",
        "capabilities.drop",
    ]
    pod: dict[str, Any] = {"hostPID": True, "volumes": [{"name": "a", "hostPath": {}}]}
    assert violations({**pod, "containers": []}) == ["hostPID", "volume a: hostPath"]


@thorough(60)
@given(order=orders())
def test_selectors_match_only_pods_of_own_workload(order: DesiredState) -> None:
    made = workloads(order)
    labels = [found["spec"]["template"]["metadata"]["labels"] for found in made]
    for position, found in enumerate(made):
        selector = found["spec"]["selector"]["matchLabels"]
        assert [n for n, pod in enumerate(labels) if selects(selector, pod)] == [position]
        (spread,) = found["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"] == selector
        assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "DoNotSchedule")


@thorough(60)
@given(order=orders())
def test_disruption_budget_keeps_one_replica_per_pair(order: DesiredState) -> None:
    budgets = {
        made["metadata"]["name"]: made["spec"]
        for made in objects_of(order)
        if made["kind"] == "PodDisruptionBudget"
    }
    for made in workloads(order):
        budget = budgets.pop(made["metadata"]["name"], None)
        labels = made["spec"]["template"]["metadata"]["labels"]
        if labels[KIND_LABEL] == "spare" or (
            made["spec"]["replicas"] == 1 and PAIR_LABEL in labels
        ):
            assert budget is None
            continue
        assert budget is not None
        assert budget["selector"] == made["spec"]["selector"]
        assert budget.get("minAvailable") == (1 if PAIR_LABEL in labels else None)
    assert not budgets


@thorough(60)
@given(order=orders())
def test_memory_request_equals_limit_and_cpu_has_no_default_limit(order: DesiredState) -> None:
    for made in workloads(order):
        (container,) = made["spec"]["template"]["spec"]["containers"]
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert requests["memory"] == limits["memory"]
        assert {"cpu", "ephemeral-storage"} <= {*requests, *limits}
        assert "cpu" not in limits or "512Mi" in limits.values(), "only the template limits it"


@pytest.mark.parametrize(
    ("buffer", "requested", "limited"),
    [("16Mi", "256Mi", "2Gi"), ("256Mi", "512Mi", "4Gi"), ("3Gi", "6Gi", "48Gi")],
)
def test_storage_of_splits_follows_their_buffer(buffer: str, requested: str, limited: str) -> None:
    splits, *others = workloads(order(manifest(splits={"buffer": buffer})))
    assert storage(splits) == (requested, limited)
    usual = workloads(order(manifest()))[1:]
    assert [storage(each) for each in others] == [storage(each) for each in usual]


def storage(workload: Mapping[str, Any]) -> tuple[str, str]:
    """What its pods request, and the bound of their volume."""
    pod = workload["spec"]["template"]["spec"]
    (bound,) = (each for each in pod["volumes"] if each["name"] == "tandem-volume")
    requests = pod["containers"][0]["resources"]["requests"]
    return requests["ephemeral-storage"], bound["emptyDir"]["sizeLimit"]


@pytest.mark.parametrize(
    ("amounts", "requested", "limited"),
    [
        ({}, "256Mi", "256Mi"),
        ({"requests": {"memory": "300Mi"}}, "300Mi", "300Mi"),
        ({"limits": {"memory": "400Mi"}}, "400Mi", "400Mi"),
        ({"requests": {"memory": "300Mi"}, "limits": {"memory": "400Mi"}}, "300Mi", "400Mi"),
    ],
)
def test_template_memory_sets_split_requests_and_limits(
    amounts: dict[str, dict[str, str]], requested: str, limited: str
) -> None:
    splits = workloads(order(manifest(splits={"template": {"resources": amounts}})))[0]
    (container,) = splits["spec"]["template"]["spec"]["containers"]
    resources = container["resources"]
    assert (resources["requests"]["memory"], resources["limits"]["memory"]) == (requested, limited)


@pytest.mark.parametrize("name", ORDERS)
def test_every_field_is_known_to_kubernetes(name: str) -> None:
    for made in everything(ORDERS[name]):
        assert unknown_fields(made) == []


@thorough(60)
@given(order=orders())
def test_objects_share_no_mutable_parts(order: DesiredState) -> None:
    seen: set[int] = set()

    def visit(part: object) -> None:
        if isinstance(part, dict | list) and part:
            assert id(part) not in seen
            seen.add(id(part))
            for inner in part.values() if isinstance(part, dict) else part:
                visit(inner)

    made = everything(order)
    visit(made)
