"""Builds the pod template of a role: one hardened container, with the user's additions."""

from collections.abc import Iterable
from typing import Any

from tandem.manifests.config_objects import spec_digest
from tandem.manifests.desired_state import DesiredState, Manifest, labels_of
from tandem.manifests.roles import WorkloadRole
from tandem_core.model.fields.spec_kinds import Json
from tandem_core.model.kubernetes_names import (
    COMPONENT_LABEL,
    FLIGHT_PORT,
    FLIGHT_PORT_NAME,
    HTTP_PORT,
    HTTP_PORT_NAME,
    NAMESPACE_VARIABLE,
    NODE_VARIABLE,
    PIPELINE_MOUNT,
    POD_IP_VARIABLE,
    POD_NAME_VARIABLE,
    POD_UID_VARIABLE,
    SECRET_MOUNT,
    TEMPORARY_MOUNT,
    VOLUME_MOUNT,
    VOLUME_PREFIX,
    spec_name,
    split_account,
    token_name,
)
from tandem_core.model.pods import PodTemplate, Resources
from tandem_core.model.states import MemberKind

_USER = 10001
_GRACE_SECONDS = 30
_LOST_NODE_SECONDS = 15
_TEMPORARY_SIZE = "1Gi"

_PIPELINE_VOLUME = f"{VOLUME_PREFIX}pipeline"
_SECRET_VOLUME = f"{VOLUME_PREFIX}secret"
_OWN_VOLUME = f"{VOLUME_PREFIX}volume"
_TEMPORARY_VOLUME = f"{VOLUME_PREFIX}tmp"

_DOWNWARD = {
    POD_NAME_VARIABLE: "metadata.name",
    POD_UID_VARIABLE: "metadata.uid",
    POD_IP_VARIABLE: "status.podIP",
    NODE_VARIABLE: "spec.nodeName",
    NAMESPACE_VARIABLE: "metadata.namespace",
}


def pod_of(order: DesiredState, role: WorkloadRole) -> Manifest:
    """Return the pod template of a workload."""
    template = role.template
    labels = {**labels_of(order), COMPONENT_LABEL: str(role.kind), **role.selector(order)}
    metadata: Manifest = {"labels": {**dict(template.labels), **labels}}
    if template.annotations:
        metadata["annotations"] = dict(template.annotations)
    return {"metadata": metadata, "spec": _pod_spec(order, role)}


def _pod_spec(order: DesiredState, role: WorkloadRole) -> Manifest:
    template = role.template
    asks_the_server = role.kind is MemberKind.SPLIT
    spec: Manifest = {
        "automountServiceAccountToken": asks_the_server,
        "containers": [_container(role)],
        "enableServiceLinks": False,
        "securityContext": {
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "runAsGroup": _USER,
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # The program is then not process 1: it can be stopped and killed from inside the pod, and
        # its orphaned children are reaped.
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "tolerations": _tolerations(template),
        "topologySpreadConstraints": [_spread(role.selector(order))],
        "volumes": [*_volumes(order, role), *_data(template.volumes)],
    }
    if asks_the_server:
        spec["serviceAccountName"] = split_account(order.name)
    given = {
        "affinity": template.affinity.data if template.affinity is not None else None,
        "imagePullSecrets": _data(template.image_pull_secrets),
        "nodeSelector": dict(template.node_selector),
        "priorityClassName": template.priority_class_name,
        "runtimeClassName": template.runtime_class_name,
    }
    return {**spec, **{name: value for name, value in given.items() if value}}


def _container(role: WorkloadRole) -> Manifest:
    template = role.template
    module = f"tandem_runtime.services.{role.program}"
    container: Manifest = {
        "name": role.program,
        "image": role.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", module, "--in-cluster", *role.arguments],
        # Base of relative paths in a manifest: what no template mounts there is read-only.
        "workingDir": "/",
        "env": [*_downward(), *_data(template.env)],
        "ports": [
            {"name": FLIGHT_PORT_NAME, "containerPort": FLIGHT_PORT, "protocol": "TCP"},
            {"name": HTTP_PORT_NAME, "containerPort": HTTP_PORT, "protocol": "TCP"},
        ],
        "resources": _resources(role),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        # A JVM starts slowly on a busy node; a process that hangs is restarted after a minute.
        "startupProbe": _probe("/healthz", period=2, failures=150),
        "livenessProbe": _probe("/healthz", period=10, failures=6),
        "readinessProbe": _readiness(role),
        "volumeMounts": [*_mounts(), *_data(template.volume_mounts)],
    }
    if template.env_from:
        container["envFrom"] = _data(template.env_from)
    return container


def _readiness(role: WorkloadRole) -> Manifest:
    """Probe a spare often: once it joins a pair, it is labelled as replica when no longer ready."""
    if role.kind is MemberKind.SPARE:
        return _probe("/readyz", period=1, failures=1)
    return _probe("/readyz", period=2, failures=3)


def _downward() -> list[Manifest]:
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in _DOWNWARD.items()
    ]


def _probe(path: str, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": HTTP_PORT_NAME},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _resources(role: WorkloadRole) -> Manifest:
    """Merge resources; the user's win. Memory's request equals its limit unless both are given."""
    given = role.template.resources or Resources()
    requests, limits = dict(given.requests), dict(given.limits)
    memory = limits.get("memory") or requests.get("memory") or role.sizes.memory
    usual = {"cpu": role.sizes.cpu, "ephemeral-storage": role.sizes.storage}
    # Kubernetes requests the limit of a resource that has no request.
    unlimited = {name: amount for name, amount in usual.items() if name not in limits}
    return {
        "requests": {**unlimited, "memory": memory, **requests},
        "limits": {"memory": memory, **limits},
    }


def _tolerations(template: PodTemplate) -> list[Manifest]:
    """Evict the pods of a lost node soon, unless the template tolerates its taints."""
    given = _data(template.tolerations)
    keys = {toleration.get("key") for toleration in given}
    lost = [f"node.kubernetes.io/{state}" for state in ("not-ready", "unreachable")]
    return [
        *(
            {
                "key": key,
                "operator": "Exists",
                # Only this effect, so that pods are not spread over lost nodes.
                "effect": "NoExecute",
                "tolerationSeconds": _LOST_NODE_SECONDS,
            }
            for key in lost
            if key not in keys
        ),
        *given,
    ]


def _spread(selector: dict[str, str]) -> Manifest:
    """Spread pods over the nodes that accept them; on a single node they share it."""
    return {
        "labelSelector": {"matchLabels": selector},
        # A rollout spreads its new pods; those that it replaces do not count.
        "matchLabelKeys": ["pod-template-hash"],
        "maxSkew": 1,
        "nodeTaintsPolicy": "Honor",
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
    }


def _volumes(order: DesiredState, role: WorkloadRole) -> list[Manifest]:
    return [
        {
            "name": _PIPELINE_VOLUME,
            "configMap": {"name": spec_name(order.name, spec_digest(order)), "defaultMode": 0o444},
        },
        {
            "name": _SECRET_VOLUME,
            "secret": {"secretName": token_name(order.name), "defaultMode": 0o440},
        },
        {"name": _OWN_VOLUME, "emptyDir": {"sizeLimit": role.sizes.volume}},
        {"name": _TEMPORARY_VOLUME, "emptyDir": {"sizeLimit": _TEMPORARY_SIZE}},
    ]


def _mounts() -> list[Manifest]:
    return [
        {"name": _PIPELINE_VOLUME, "mountPath": f"/{PIPELINE_MOUNT}", "readOnly": True},
        {"name": _SECRET_VOLUME, "mountPath": f"/{SECRET_MOUNT}", "readOnly": True},
        {"name": _OWN_VOLUME, "mountPath": f"/{VOLUME_MOUNT}"},
        {"name": _TEMPORARY_VOLUME, "mountPath": f"/{TEMPORARY_MOUNT}"},
    ]


def _data(entries: Iterable[Json]) -> list[dict[str, Any]]:
    return [entry.data for entry in entries]
