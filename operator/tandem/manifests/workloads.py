"""The workloads that make pods, and the budgets for their disruption."""

from tandem.manifests.order import Manifest, Order, applied, metadata_of
from tandem.manifests.pods import pod_of
from tandem.manifests.records import spec_digest
from tandem.manifests.roles import Role, merges_of, pairs_of, spares_of, splits_of
from tandem.model.documents import Document
from tandem.model.pods import PodTemplate
from tandem.model.sparse import without_defaults

_OLD_REVISIONS = 2


def workloads_of(order: Order) -> tuple[Manifest, ...]:
    """Everything that makes pods. A completed pipeline needs none of it any more."""
    return (
        _deployment(order, splits_of(order)),
        *(_deployment(order, role) for role in merges_of(order)),
        *(_replica_set(order, role) for role in pairs_of(order)),
        *(_replica_set(order, role) for role in spares_of(order)),
    )


def budgets_of(order: Order) -> tuple[Manifest, ...]:
    """How much may be evicted at once: of twins never both."""
    twins = [role for role in pairs_of(order) if role.count > 1]
    return (
        _budget(order, splits_of(order), {"maxUnavailable": 1}),
        *(_budget(order, role, {"maxUnavailable": 1}) for role in merges_of(order)),
        *(_budget(order, role, {"minAvailable": 1}) for role in twins),
    )


def _deployment(order: Order, role: Role) -> Manifest:
    spec = {
        **_workload_spec(order, role),
        "revisionHistoryLimit": _OLD_REVISIONS,
        # A new one comes before an old one goes, so that there are never fewer copies.
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
    }
    return _workload("Deployment", order, role, spec)


def _replica_set(order: Order, role: Role) -> Manifest:
    return _workload("ReplicaSet", order, role, _workload_spec(order, role))


def _workload_spec(order: Order, role: Role) -> Manifest:
    return {
        "replicas": role.count,
        "selector": {"matchLabels": role.selector(order)},
        "template": pod_of(order, role),
    }


def _workload(kind: str, order: Order, role: Role, spec: Manifest) -> Manifest:
    manifest = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata_of(order, role.workload, role.selector(order)),
        "spec": spec,
    }
    return applied(manifest, ordered=_ordered(order, role))


def _ordered(order: Order, role: Role) -> Manifest:
    """What was ordered of a workload, in words that later versions do not change."""
    template = Document(PodTemplate)
    return {
        "count": role.count,
        "image": role.image,
        "selector": role.selector(order),
        "spec": spec_digest(order),
        "template": without_defaults(template, template.write(role.template)),
    }


def _budget(order: Order, role: Role, bound: Manifest) -> Manifest:
    return applied(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata_of(order, role.workload, role.selector(order)),
            "spec": {**bound, "selector": {"matchLabels": role.selector(order)}},
        }
    )
