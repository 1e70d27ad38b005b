"""Builds the workloads of a pipeline and their PodDisruptionBudgets."""

from tandem.manifests.config_objects import spec_digest
from tandem.manifests.desired_state import (
    DesiredState,
    Manifest,
    PairWorkload,
    applied,
    digest,
    metadata_of,
)
from tandem.manifests.pods import pod_of
from tandem.manifests.roles import WorkloadRole, merges_of, pairs_of, spares_of, splits_of
from tandem_core.model.fields.declarations import Document
from tandem_core.model.fields.defaults import without_defaults
from tandem_core.model.kubernetes_names import APPLIED_ANNOTATION
from tandem_core.model.pods import PodTemplate

_OLD_REVISIONS = 2


def workloads_of(order: DesiredState) -> tuple[Manifest, ...]:
    """Return all workloads. A completed pipeline needs none of them."""
    return (
        _deployment(order, splits_of(order)),
        *(_deployment(order, role) for role in merges_of(order)),
        *(_replica_set(order, role) for role in pairs_of(order)),
        *(_replica_set(order, role) for role in spares_of(order)),
    )


def budgets_of(order: DesiredState) -> tuple[Manifest, ...]:
    """Return the disruption budgets, which never allow both twins to be evicted at once.

    A driver is ready while it holds a verified copy of the state. An unready driver may hold one,
    too, because it hangs or restarts, so it is evicted only while its twin is ready. Drivers that
    refuse are never ready and would block the drain of a node forever; they hold no state, so they
    may be evicted. So may those of a pair that is still built: its parents have the state.
    """
    pairs = zip(order.workloads.pairs, pairs_of(order), strict=True)
    return (
        _budget(order, splits_of(order), {"maxUnavailable": 1}),
        *(_budget(order, role, {"maxUnavailable": 1}) for role in merges_of(order)),
        *(
            _budget(order, role, _twins_bound(order, pair))
            for pair, role in pairs
            if role.count > 1
        ),
    )


def _twins_bound(order: DesiredState, pair: PairWorkload) -> Manifest:
    """Return the bound of a pair's budget, and when drivers that are not ready may be evicted."""
    expendable = order.refused or pair.shadow
    unready = "AlwaysAllow" if expendable else "IfHealthyBudget"
    return {"minAvailable": 1, "unhealthyPodEvictionPolicy": unready}


def _deployment(order: DesiredState, role: WorkloadRole) -> Manifest:
    spec = {
        **_workload_spec(order, role),
        "revisionHistoryLimit": _OLD_REVISIONS,
        # A new pod is ready before an old one stops, so that there are never fewer copies.
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
    }
    return _workload("Deployment", order, role, spec)


def _replica_set(order: DesiredState, role: WorkloadRole) -> Manifest:
    """Mark the pods with their manifest: unlike a Deployment, it does not replace older ones."""
    spec = _workload_spec(order, role)
    metadata = spec["template"]["metadata"]
    marked = {**metadata.get("annotations", {}), APPLIED_ANNOTATION: replica_mark(order)}
    template = {**spec["template"], "metadata": {**metadata, "annotations": marked}}
    return _workload("ReplicaSet", order, role, {**spec, "template": template})


def replica_mark(order: DesiredState) -> str:
    """Return the mark that distinguishes current drivers from those of an older manifest.

    It follows from the order, not from the pod template, so a newer operator computes the same.
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
    """Return what was ordered of a workload, in a form that later versions do not change."""
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
