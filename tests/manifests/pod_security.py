"""The `restricted` Pod Security Standard, as far as it speaks of what these pods have."""

from collections.abc import Iterator
from typing import Any

_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


def violations(pod: dict[str, Any]) -> list[str]:
    """What the standard forbids in a pod's spec."""
    found = [
        *(name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)),
        *_of_volumes(pod.get("volumes", [])),
    ]
    context = pod.get("securityContext", {})
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        found += _of_container(container, {**context, **container.get("securityContext", {})})
    return found


def _of_volumes(volumes: list[dict[str, Any]]) -> Iterator[str]:
    for volume in volumes:
        for kind in set(volume) - {"name"} - _VOLUMES:
            yield f"volume {volume['name']}: {kind}"


def _of_container(container: dict[str, Any], context: dict[str, Any]) -> Iterator[str]:
    """`context` is the pod's, with what the container says instead."""
    if context.get("privileged"):
        yield "privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation"
    if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
        yield "runAsNonRoot"
    if context.get("seccompProfile", {}).get("type") not in {"RuntimeDefault", "Localhost"}:
        yield "seccompProfile"
    capabilities = context.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield "capabilities.drop"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "capabilities.add"
    if any("hostPort" in port for port in container.get("ports", [])):
        yield "hostPort"
