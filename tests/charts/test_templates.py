"""What is installed: the operator hardened, its rights, what may be switched on and off."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.charts.conftest import CHART, NAMESPACE, ROOT, Objects, Render
from tests.manifests.orders import EVERYTHING, order

from tandem.control.reconcile import CLUSTER_LIMITS
from tandem.handlers.__main__ import _parser
from tandem.handlers.election import EVERY
from tandem.handlers.timeout_flags import timeouts_of
from tandem.handlers.workers import LAST_TURNS
from tandem.kube.kinds import DEPLOYMENT as DEPLOYMENT_KIND
from tandem.kube.kinds import DISRUPTION_BUDGET, POD, REPLICA_SET, ObjectKind, kind_of
from tandem.manifests.config_objects import intent_of, register_of, token_of
from tandem.manifests.objects import objects_of
from tandem_core.model.kubernetes_names import APPLICATION, COMPONENT_LABEL, NAME_LABEL, OPERATOR

CRD = ("CustomResourceDefinition", "streampipelines.tandem.dev")
DEPLOYMENT = ("Deployment", "tandem-operator")
CLUSTER_ROLE = ("ClusterRole", "tandem-operator")

ORDER = order(EVERYTHING)

Rules = list[dict[str, Any]]


def test_chart_passes_helm_lint(helm: Path) -> None:
    done = subprocess.run([str(helm), "lint", "--strict", str(CHART)], check=False)
    assert done.returncode == 0


def test_all_objects_are_labelled_and_in_release_namespace(render: Render) -> None:
    objects = render(
        podMonitor={"enabled": True}, podDisruptionBudget={"enabled": True}, crds={"install": False}
    )
    for (kind, _), each in objects.items():
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "tandem"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        if not kind.startswith("Cluster"):
            assert each["metadata"]["namespace"] == NAMESPACE


def test_crd_matches_project_and_is_kept_on_uninstall(render: Render) -> None:
    wanted = yaml.safe_load((ROOT / "crds/streampipelines.yaml").read_text())
    installed = render()[CRD]
    assert installed["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert installed == wanted
    assert CRD not in render(crds={"install": False})


@pytest.mark.parametrize("where", [DEPLOYMENT, ("Pod", "tandem-operator-test")])
def test_pods_are_hardened(render: Render, where: tuple[str, str]) -> None:
    pod = pod_of(render()[where])
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]


def test_deployment_strategy_is_recreate(render: Render) -> None:
    assert render()[DEPLOYMENT]["spec"]["strategy"] == {"type": "Recreate"}


def test_grace_period_covers_last_turns_and_lease_release(render: Render) -> None:
    pod = pod_of(render()[DEPLOYMENT])
    assert pod["terminationGracePeriodSeconds"] > LAST_TURNS + EVERY


def test_operators_spread_over_nodes(render: Render) -> None:
    deployment = render()[DEPLOYMENT]
    (spread,) = pod_of(deployment)["topologySpreadConstraints"]
    assert spread["labelSelector"] == deployment["spec"]["selector"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == (
        "kubernetes.io/hostname",
        "ScheduleAnyway",
    )


def test_chart_labels_cannot_be_overridden(render: Render) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    labels = schema["properties"]["operator"]["properties"]["podLabels"]
    taken = labels["propertyNames"]["not"]["enum"]
    assert set(taken) == set(render()[DEPLOYMENT]["metadata"]["labels"])


def test_operator_pods_match_pipeline_network_policies(render: Render) -> None:
    labels = render()[DEPLOYMENT]["spec"]["template"]["metadata"]["labels"]
    assert labels[NAME_LABEL] == APPLICATION
    assert labels[COMPONENT_LABEL] == OPERATOR


def test_images_come_from_one_registry_with_one_tag(render: Render) -> None:
    objects = render(images={"registry": "registry.example/team", "tag": "abc"})
    container = pod_of(objects[DEPLOYMENT])["containers"][0]
    assert container["image"] == "registry.example/team/tandem-operator:abc"
    asked = arguments(container)
    assert asked.runtime_image == "registry.example/team/tandem-runtime:abc"
    assert asked.spark_image == "registry.example/team/tandem-spark:abc"


def test_chart_values_set_operator_timeouts(render: Render) -> None:
    asked = arguments(pod_of(render()[DEPLOYMENT])["containers"][0])
    assert (timeouts_of(asked), asked.workers) == (CLUSTER_LIMITS, 4)
    values = {"workers": 2, "timeouts": {"failover": "4s", "replacement": "2m"}}
    asked = arguments(pod_of(render(operator=values)[DEPLOYMENT])["containers"][0])
    assert (asked.failover_timeout, asked.replacement_timeout, asked.workers) == (4.0, 120.0, 2)


def test_default_image_tag_is_app_version(render: Render) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    image = pod_of(render()[DEPLOYMENT])["containers"][0]["image"]
    assert image.endswith(f":{chart['appVersion']}")


def test_ports_probes_service_and_policy_agree(render: Render) -> None:
    objects = render()
    container = pod_of(objects[DEPLOYMENT])["containers"][0]
    names = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in names
    service = objects["Service", "tandem-operator"]["spec"]
    assert [port["targetPort"] for port in service["ports"]] == list(names)
    policy = objects["NetworkPolicy", "tandem-operator"]["spec"]
    assert [port["port"] for port in policy["ingress"][0]["ports"]] == list(names)
    labels = objects[DEPLOYMENT]["spec"]["template"]["metadata"]["labels"]
    for selector in (service["selector"], policy["podSelector"]["matchLabels"]):
        assert selector.items() <= labels.items()


def test_watching_all_namespaces_uses_cluster_role(render: Render) -> None:
    objects = render()
    assert allows(objects[CLUSTER_ROLE]["rules"], "", "pods", "delete")
    assert arguments(pod_of(objects[DEPLOYMENT])["containers"][0]).namespace == []
    assert roles_in(objects) == {"tandem-operator-lease"}


def test_rights_are_limited_to_watched_namespaces(render: Render) -> None:
    objects = render(watch={"namespaces": ["a", "b"]})
    cluster_wide = objects[CLUSTER_ROLE]["rules"]
    assert cluster_wide == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    assert roles_in(objects) == {"tandem-operator-lease", "a/tandem-operator", "b/tandem-operator"}
    for name in ("a/tandem-operator", "b/tandem-operator"):
        binding = objects["RoleBinding", name]
        assert binding["subjects"][0]["namespace"] == NAMESPACE
    assert arguments(pod_of(objects[DEPLOYMENT])["containers"][0]).namespace == ["a", "b"]


@pytest.mark.parametrize("namespaces", [[], ["a"]], ids=["all", "one"])
def test_operator_may_manage_all_pipeline_objects(render: Render, namespaces: list[str]) -> None:
    rules = rules_where_pipelines_are(render(watch={"namespaces": namespaces}), namespaces)
    for made in objects_of(ORDER):
        kind = kind_of(made)
        for verb in ("get", "list", "create", "patch"):
            assert allows(rules, group(kind), kind.plural, verb), (kind, verb)
    for created in (token_of(ORDER, "secret"), register_of(ORDER), intent_of(ORDER, "intent", {})):
        kind = kind_of(created)
        for verb in ("get", "create"):
            assert allows(rules, group(kind), kind.plural, verb), (kind, verb)


@pytest.mark.parametrize("namespaces", [[], ["a"]], ids=["all", "one"])
def test_operator_may_delete_workloads_and_pods(render: Render, namespaces: list[str]) -> None:
    rules = rules_where_pipelines_are(render(watch={"namespaces": namespaces}), namespaces)
    for kind in (DEPLOYMENT_KIND, REPLICA_SET, DISRUPTION_BUDGET, POD):
        assert allows(rules, group(kind), kind.plural, "delete"), kind


@pytest.mark.parametrize("namespaces", [[], ["a"]], ids=["all", "one"])
def test_operator_holds_rights_it_grants(render: Render, namespaces: list[str]) -> None:
    rules = rules_where_pipelines_are(render(watch={"namespaces": namespaces}), namespaces)
    granted = [rule for made in objects_of(ORDER) for rule in made.get("rules", ())]
    assert granted
    for rule in granted:
        for verb in rule["verbs"]:
            assert allows(rules, rule["apiGroups"][0], rule["resources"][0], verb), (rule, verb)


@pytest.mark.parametrize("namespaces", [[], ["a"]], ids=["all", "one"])
def test_no_rule_has_wildcards(render: Render, namespaces: list[str]) -> None:
    rules = rules_where_pipelines_are(render(watch={"namespaces": namespaces}), namespaces)
    for rule in rules:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
    assert not allows(rules, "", "secrets", "list")
    assert not allows(rules, "rbac.authorization.k8s.io", "roles", "escalate")


def test_rbac_and_service_account_can_be_external(render: Render) -> None:
    objects = render(rbac={"create": False}, serviceAccount={"create": False, "name": "mine"})
    kinds = {kind for kind, _ in objects}
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
    assert "ServiceAccount" not in kinds
    assert pod_of(objects[DEPLOYMENT])["serviceAccountName"] == "mine"


def test_optional_objects_are_off_by_default(render: Render) -> None:
    usual = render()
    everything = render(
        podMonitor={"enabled": True, "labels": {"release": "prometheus"}},
        podDisruptionBudget={"enabled": True},
    )
    added = {kind for kind, _ in everything.keys() - usual.keys()}
    assert added == {"PodMonitor", "PodDisruptionBudget"}
    monitor = everything["PodMonitor", "tandem-operator"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    without = render(networkPolicy={"enabled": False})
    assert {kind for kind, _ in usual.keys() - without.keys()} == {"NetworkPolicy"}


def test_pod_settings_are_passed_to_deployment(render: Render) -> None:
    settings = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
    }
    extra = [{"name": "HTTPS_PROXY", "value": "http://proxy"}]
    more = {"podLabels": {"team": "a"}, "podAnnotations": {"note": "b"}, "env": extra}
    objects = render(operator=settings | more, images={"pullSecrets": ["s"]})
    pod = pod_of(objects[DEPLOYMENT])
    assert {name: pod[name] for name in settings} == settings
    assert pod["imagePullSecrets"] == [{"name": "s"}]
    assert environment(pod["containers"][0])["HTTPS_PROXY"] == "http://proxy"
    metadata = objects[DEPLOYMENT]["spec"]["template"]["metadata"]
    assert metadata["labels"]["team"] == "a"
    assert metadata["annotations"] == {"note": "b"}


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = document["spec"]
    return spec["template"]["spec"] if "template" in spec else spec


def arguments(container: dict[str, Any]) -> argparse.Namespace:
    """What the operator makes of its arguments."""
    return _parser().parse_args(container["args"])


def environment(container: dict[str, Any]) -> dict[str, str | None]:
    return {each["name"]: each.get("value") for each in container["env"]}


def roles_in(objects: Objects) -> set[str]:
    return {name for kind, name in objects if kind == "Role"}


def rules_where_pipelines_are(objects: Objects, namespaces: list[str]) -> Rules:
    where = ("Role", f"{namespaces[0]}/tandem-operator") if namespaces else CLUSTER_ROLE
    rules: Rules = objects[where]["rules"]
    return rules


def group(kind: ObjectKind) -> str:
    return kind.api_version.rpartition("/")[0]


def allows(rules: Rules, group: str, resource: str, verb: str) -> bool:
    return any(
        group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
        for rule in rules
    )
