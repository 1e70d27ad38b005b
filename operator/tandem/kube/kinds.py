"""The kinds of objects that the operator reads and writes, and where the API server has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem_core.model.kubernetes_names import GROUP, PLURAL, VERSION

Object = dict[str, Any]
"""A Kubernetes object as plain data."""


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of objects."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """The URL path of one object, or of all in a namespace, or in all if none is given."""
        group = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        within = f"/namespaces/{namespace}" if self.namespaced and namespace is not None else ""
        return f"{group}{within}/{self.plural}" + (f"/{name}" if name is not None else "")


POD = ObjectKind("v1", "Pod", "pods")
NODE = ObjectKind("v1", "Node", "nodes", namespaced=False)
EVENT = ObjectKind("v1", "Event", "events")
CONFIG_MAP = ObjectKind("v1", "ConfigMap", "configmaps")
SECRET = ObjectKind("v1", "Secret", "secrets")
SERVICE = ObjectKind("v1", "Service", "services")
SERVICE_ACCOUNT = ObjectKind("v1", "ServiceAccount", "serviceaccounts")
ROLE = ObjectKind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = ObjectKind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
LEASE = ObjectKind("coordination.k8s.io/v1", "Lease", "leases")
DEPLOYMENT = ObjectKind("apps/v1", "Deployment", "deployments")
REPLICA_SET = ObjectKind("apps/v1", "ReplicaSet", "replicasets")
DISRUPTION_BUDGET = ObjectKind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY = ObjectKind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
STREAM_PIPELINE = ObjectKind(f"{GROUP}/{VERSION}", "StreamPipeline", PLURAL)

KINDS = (
    POD,
    NODE,
    EVENT,
    CONFIG_MAP,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    LEASE,
    DEPLOYMENT,
    REPLICA_SET,
    DISRUPTION_BUDGET,
    NETWORK_POLICY,
    STREAM_PIPELINE,
)

_BY_NAME = {(kind.api_version, kind.name): kind for kind in KINDS}


def kind_of(document: Mapping[str, Any]) -> ObjectKind:
    """The kind of an object.

    Raises:
        KeyError: it is of a kind that the operator does not use.
    """
    return _BY_NAME[document["apiVersion"], document["kind"]]
