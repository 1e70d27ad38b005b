"""Builds the objects for access: the splits' account, their Service, the NetworkPolicy."""

from tandem.manifests.desired_state import DesiredState, Manifest, applied, metadata_of
from tandem_core.model.kubernetes_names import (
    APPLICATION,
    COMPONENT_LABEL,
    FLIGHT_PORT,
    FLIGHT_PORT_NAME,
    HTTP_PORT,
    HTTP_PORT_NAME,
    KIND_LABEL,
    NAME_LABEL,
    OPERATOR,
    PIPELINE_LABEL,
    intent_name,
    policy_name,
    register_name,
    split_account,
    splits_service,
)
from tandem_core.model.states import MemberKind

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def account_of(order: DesiredState) -> tuple[Manifest, ...]:
    """Return the splits' ServiceAccount, Role and RoleBinding. Other pods have no credentials."""
    name = split_account(order.name)
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata_of(order, name),
        "automountServiceAccountToken": False,
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata_of(order, name),
        "rules": [
            _rule("", "pods", ["get", "list", "watch"]),
            _rule("", "configmaps", ["get", "watch"], intent_name(order.name)),
            _rule("coordination.k8s.io", "leases", ["get", "update"], register_name(order.name)),
        ],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata_of(order, name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": order.namespace}],
    }
    return applied(account), applied(role), applied(binding)


def _rule(group: str, resource: str, verbs: list[str], name: str | None = None) -> Manifest:
    names = {} if name is None else {"resourceNames": [name]}
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs, **names}


def service_of(order: DesiredState) -> Manifest:
    """Return the headless Service by which pods without credentials find the splits.

    It includes splits that are not ready: starting splits must find each other.
    """
    return applied(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata_of(order, splits_service(order.name)),
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {PIPELINE_LABEL: order.name, KIND_LABEL: str(MemberKind.SPLIT)},
                "ports": [
                    _service_port(FLIGHT_PORT_NAME, FLIGHT_PORT),
                    _service_port(HTTP_PORT_NAME, HTTP_PORT),
                ],
            },
        }
    )


def _service_port(name: str, port: int) -> Manifest:
    return {"name": name, "port": port, "protocol": "TCP", "targetPort": name}


def policy_of(order: DesiredState) -> Manifest:
    """Return the NetworkPolicy: Flight only from the pipeline's pods and the operator, HTTP open.

    Probes and Prometheus use HTTP; confidential pages there require the token.
    """
    operator = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: order.operator_namespace}},
        "podSelector": {"matchLabels": {NAME_LABEL: APPLICATION, COMPONENT_LABEL: OPERATOR}},
    }
    return applied(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata_of(order, policy_name(order.name)),
            "spec": {
                **_own_pods(order),
                "policyTypes": ["Ingress"],
                "ingress": [
                    {"from": [_own_pods(order), operator], "ports": [_policy_port(FLIGHT_PORT)]},
                    {"ports": [_policy_port(HTTP_PORT)]},
                ],
            },
        }
    )


def _own_pods(order: DesiredState) -> Manifest:
    return {"podSelector": {"matchLabels": {PIPELINE_LABEL: order.name}}}


def _policy_port(port: int) -> Manifest:
    return {"port": port, "protocol": "TCP"}
