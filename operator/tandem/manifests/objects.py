"""All objects of a pipeline that are applied, in the order in which they are needed."""

from tandem.manifests.access import account_of, policy_of, service_of
from tandem.manifests.config_objects import spec_of
from tandem.manifests.desired_state import DesiredState, Manifest
from tandem.manifests.workloads import budgets_of, workloads_of


def objects_of(order: DesiredState) -> tuple[Manifest, ...]:
    """Everything that is applied, each with the digest by which a change is seen.

    Token, intent and register are not among them: they are created once and then changed only by
    comparing and swapping (`tandem.manifests.config_objects`), and must be there before the
    workloads.
    """
    return (
        *account_of(order),
        spec_of(order),
        service_of(order),
        policy_of(order),
        *budgets_of(order),
        *workloads_of(order),
    )
