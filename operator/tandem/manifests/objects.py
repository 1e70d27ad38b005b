"""All applied objects of a pipeline, in the order in which they are needed."""

from tandem.manifests.access import account_of, policy_of, service_of
from tandem.manifests.config_objects import spec_of
from tandem.manifests.desired_state import DesiredState, Manifest
from tandem.manifests.workloads import budgets_of, workloads_of


def objects_of(order: DesiredState) -> tuple[Manifest, ...]:
    """Return all applied objects, each with the digest that shows a change.

    Token, intent and register are not among them: they are created once, before the workloads, and
    changed only by compare-and-swap (`tandem.manifests.config_objects`).
    """
    return (
        *account_of(order),
        spec_of(order),
        service_of(order),
        policy_of(order),
        *budgets_of(order),
        *workloads_of(order),
    )
