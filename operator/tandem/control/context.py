"""Inputs of one reconcile of a pipeline, and the state kept between reconciles."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from tandem.control.apply import Comparison
from tandem.control.intent_store import Recorded
from tandem.control.observe import PipelineObjects
from tandem.control.publish import Publisher, Troubles
from tandem.control.record import Revised
from tandem.control.resize.workloads import workloads_to_run
from tandem.control.types import Instant
from tandem.manifests.config_objects import spec_digest
from tandem.manifests.desired_state import DesiredState, Workloads
from tandem.policy.controller_state import ControllerState
from tandem.policy.decisions import Decision, Halt, Withhold
from tandem.policy.snapshot import Complaint
from tandem_core.contract.reports import LeadReport
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.states import Phase

LAST_WORDS = 3.0
"""Seconds for which pods of a completed pipeline are still polled, for their last counters."""


@dataclass(frozen=True, slots=True)
class ReconcileContext:
    """The inputs of one reconcile."""

    moment: Instant
    listing: PipelineObjects
    recorded: Recorded
    manifest: Pipeline | Complaint
    """The pipeline that the resource describes, or why it cannot be run as it is now."""
    operator_namespace: str
    hindered: Complaint | None = None
    """Why the next step of a change, or roles, could not be recorded."""
    stale: bool = False
    """Whether the roles in the records are not those that were decided."""

    @property
    def pipeline(self) -> Pipeline | None:
        """The pipeline; None if the manifest cannot be run."""
        return None if isinstance(self.manifest, Complaint) else self.manifest

    @property
    def refused(self) -> Complaint | None:
        """Why the manifest cannot be run."""
        return self.manifest if isinstance(self.manifest, Complaint) else None

    def is_another(self) -> bool:
        """Whether a fixed field differs from the manifest that the pipeline was started with."""
        order, began = self.order(), self.recorded.spec
        return order is not None and began is not None and began != spec_digest(order)

    def suspended(self) -> bool:
        """Whether sources are to be paused; while the manifest is refused, as recorded."""
        recorded = self.recorded.intent.suspended
        return self.pipeline.spec.suspend if self.pipeline is not None else recorded

    def workloads(self, lead: LeadReport | None = None) -> Workloads:
        """What has pods; without a fresh report of the lead, all that it may count on."""
        known = self.pipeline.spec.splits.count if self.pipeline is not None else None
        splits = known or self.listing.splits or 0
        return workloads_to_run(self.recorded.intent, splits, self.listing, lead)

    def order(self, lead: LeadReport | None = None) -> DesiredState | None:
        """The desired state of the pipeline; None while its manifest is refused."""
        if self.pipeline is None:
            return None
        return DesiredState(
            self.pipeline,
            self.listing.uid,
            self.recorded.images,
            self.workloads(lead),
            self.operator_namespace,
        )

    def with_recorded(self, revised: Revised) -> Self:
        """The context after the records were written."""
        recorded, stale = revised.recorded, revised.stale
        listing = replace(self.listing, recorded=recorded)
        written = replace(self, listing=listing, recorded=recorded)
        return replace(written, hindered=revised.hindered, stale=stale)

    def troubles(self, decisions: Sequence[Decision], *hindered: Complaint | None) -> Troubles:
        """What is wrong beside the reports of members; of what is hindered, the first counts."""
        roles = self.hindered if self.stale else None
        withheld = (each.complaint for each in decisions if isinstance(each, Withhold))
        found = (roles, *hindered, *withheld, self.hindered)
        return Troubles(
            halted=next((each.named for each in decisions if isinstance(each, Halt)), None),
            refused=self.refused,
            hindered=next(filter(None, found), None),
            suspended=self.recorded.intent.suspended,
        )


@dataclass(slots=True)
class PipelineState:
    """The state of a pipeline that is kept between reconciles."""

    uid: str
    publisher: Publisher
    token: str | None = None
    memory: ControllerState | None = None
    """None until every member has been asked once."""
    comparison: Comparison = field(default_factory=Comparison)
    """How objects were last compared with those that should exist."""
    completed_at: float | None = None
    """When this operator first saw that everything is delivered."""

    def is_over(self, now: float) -> bool:
        """Whether the written status is complete: all is delivered, and nothing is left to add.

        Members report their last counters a little later, so that is waited for.
        """
        if self.publisher.written.phase is not Phase.COMPLETED:
            return False
        if self.completed_at is None:
            return True
        return now - self.completed_at >= LAST_WORDS and self.publisher.settled


class Reconciled(NamedTuple):
    """How a turn ended."""

    again_after: float
    """Seconds until the next turn."""
    listing: PipelineObjects
    """The listing that it used, with the records that it wrote."""
    outdated: bool = False
    """Whether it may have changed listed objects: the next turn lists them again."""
