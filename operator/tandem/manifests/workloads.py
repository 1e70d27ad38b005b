"""The workloads that make pods, and the budgets for their disruption."""

from tandem.manifests.config_objects import spec_digest
from tandem.manifests.desired_state import DesiredState, Manifest, applied, digest, metadata_of
from tandem.manifests.pods import pod_of
from tandem.manifests.roles import WorkloadRole, merges_of, pairs_of, spares_of, splits_of
from tandem_core.model.fields.declarations import Document
from tandem_core.model.fields.defaults import without_defaults
from tandem_core.model.kubernetes_names import APPLIED_ANNOTATION
from tandem_core.model.pods import PodTemplate

_OLD_REVISIONS = 2


def workloads_of(order: DesiredState) -> tuple[Manifest, ...]:
    """Everything that makes pods. A completed pipeline needs none of it any more."""
    return (
        _deployment(order, splits_of(order)),
        *(_deployment(order, role) for role in merges_of(order)),
        *(_replica_set(order, role) for role in pairs_of(order)),
        *(_replica_set(order, role) for role in spares_of(order)),
    )


def budgets_of(order: DesiredState) -> tuple[Manifest, ...]:
    """How much may be evicted at once: of twins never both.

    A driver is ready while it holds a verified copy of the state. One that is not ready may hold it
    all the same, because it hangs or is being started again, so its twin has to be ready before it
    goes. Drivers that refuse are never ready, and would keep a node from being drained for good;
    they hold nothing.
    """
    twins = [role for role in pairs_of(order) if role.count > 1]
    unready = {"unhealthyPodEvictionPolicy": "AlwaysAllow" if order.refused else "IfHealthyBudget"}
    return (
        _budget(order, splits_of(order), {"maxUnavailable": 1}),
        *(_budget(order, role, {"maxUnavailable": 1}) for role in merges_of(order)),
        *(_budget(order, role, {"minAvailable": 1, **unready}) for role in twins),
    )


def _deployment(order: DesiredState, role: WorkloadRole) -> Manifest:
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


def _replica_set(order: DesiredState, role: WorkloadRole) -> Manifest:
    """Its pods say what they were made for: unlike a Deployment it does not replace older ones."""
    spec = _workload_spec(order, role)
    metadata = spec["template"]["metadata"]
    marked = {**metadata.get("annotations", {}), APPLIED_ANNOTATION: replica_mark(order)}
    template = {**spec["template"], "metadata": {**metadata, "annotations": marked}}
    return _workload("ReplicaSet", order, role, {**spec, "template": template})


def replica_mark(order: DesiredState) -> str:
    """What tells drivers that are made now from those that were made for an older manifest.

    It follows from the order and not from the pods as they are written, so a newer operator finds
    the same.
    """
    pairs = order.pipeline.spec.pairs.template or PodTemplate()
    return digest(_pods_ordered(order, order.images.replica, pairs))


def _workload_spec(order: DesiredState, role: WorkloadRole) -> Manifest:
    return {
        "replicas": role.count,
        "selector": {"matchLabels": role.selector(order)},
        "template": pod_of(order, role),
    }


def _workload(kind: str, order: DesiredState, role: WorkloadRole, spec: Manifest) -> Manifest:
    manifest = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata_of(order, role.workload, role.selector(order)),
        "spec": spec,
    }
    return applied(manifest, ordered=_ordered(order, role))


def _ordered(order: DesiredState, role: WorkloadRole) -> Manifest:
    """What was ordered of a workload, in words that later versions do not change."""
    return {
        "count": role.count,
        "selector": role.selector(order),
        **_pods_ordered(order, role.image, role.template),
    }


def _pods_ordered(order: DesiredState, image: str, template: PodTemplate) -> Manifest:
    written = Document(PodTemplate)
    return {
        "image": image,
        "spec": spec_digest(order),
        "template": without_defaults(written, written.write(template)),
    }


def _budget(order: DesiredState, role: WorkloadRole, bound: Manifest) -> Manifest:
    return applied(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata_of(order, role.workload, role.selector(order)),
            "spec": {**bound, "selector": {"matchLabels": role.selector(order)}},
        }
    )
