"""Finds fields that Kubernetes does not know, by the declarations of its Python client."""

import re
from collections.abc import Iterator
from typing import Any

from kubernetes import client

_API_KINDS = {
    "ConfigMap": "V1ConfigMap",
    "CustomResourceDefinition": "V1CustomResourceDefinition",
    "Deployment": "V1Deployment",
    "Lease": "V1Lease",
    "NetworkPolicy": "V1NetworkPolicy",
    "PodDisruptionBudget": "V1PodDisruptionBudget",
    "ReplicaSet": "V1ReplicaSet",
    "Role": "V1Role",
    "RoleBinding": "V1RoleBinding",
    "Secret": "V1Secret",
    "Service": "V1Service",
    "ServiceAccount": "V1ServiceAccount",
}


def unknown_fields(manifest: dict[str, Any]) -> list[str]:
    """The paths of all fields of a manifest that its kind does not have."""
    return list(_unknown(manifest, _API_KINDS[manifest["kind"]], manifest["kind"]))


def _unknown(value: Any, declared: str, path: str) -> Iterator[str]:
    parts = re.fullmatch(r"list\[(.+)]|dict\(str, (.+)\)", declared)
    if parts is not None and parts[1]:
        assert isinstance(value, list), path
        for position, item in enumerate(value):
            yield from _unknown(item, parts[1], f"{path}[{position}]")
    elif parts is not None:
        assert isinstance(value, dict), path
        for name, item in value.items():
            yield from _unknown(item, parts[2], f"{path}.{name}")
    elif declared.startswith(("V1", "V2")):
        model = getattr(client, declared)
        types = {wire: model.openapi_types[name] for name, wire in model.attribute_map.items()}
        for name, item in value.items():
            if name in types:
                yield from _unknown(item, types[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
