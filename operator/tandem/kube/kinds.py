"""The kinds of objects that the operator reads and writes, and where the API server has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem_core.model.kubernetes_names import GROUP, PLURAL, VERSION

Object = dict[str, Any]
"""A Kubernetes object as plain data."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """Where the objects of a namespace are, or of all if none is given, or one of them."""
        group = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        within = f"/namespaces/{namespace}" if self.namespaced and namespace is not None else ""
        return f"{group}{within}/{self.plural}" + (f"/{name}" if name is not None else "")


POD = Kind("v1", "Pod", "pods")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
EVENT = Kind("v1", "Event", "events")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SECRET = Kind("v1", "Secret", "secrets")
SERVICE = Kind("v1", "Service", "services")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
STREAM_PIPELINE = Kind(f"{GROUP}/{VERSION}", "StreamPipeline", PLURAL)

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


def kind_of(document: Mapping[str, Any]) -> Kind:
    """The kind of an object.

    Raises:
        KeyError: it is of a kind that the operator has nothing to do with.
    """
    return _BY_NAME[document["apiVersion"], document["kind"]]
