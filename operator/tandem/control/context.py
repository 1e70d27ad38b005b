"""Inputs of one reconcile of a pipeline, and the state kept between reconciles."""

import math
from dataclasses import dataclass

from tandem.control.intent_store import Recorded
from tandem.control.observe import PipelineObjects
from tandem.control.publish import Publisher
from tandem.control.types import Instant
from tandem.manifests.config_objects import spec_digest
from tandem.manifests.desired_state import DesiredState
from tandem.policy.controller_state import ControllerState
from tandem.policy.snapshot import Complaint
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
    pipeline: Pipeline | None
    """None if the manifest as it is now cannot be run."""
    refused: Complaint | None
    """Why the manifest cannot be run."""

    def is_another(self, namespace: str) -> bool:
        """Whether the manifest differs from the one that the pipeline was started with."""
        order, began = self.order(namespace), self.recorded.spec
        return order is not None and began is not None and began != spec_digest(order)

    def order(self, namespace: str) -> DesiredState | None:
        """The desired state of the pipeline; None while its manifest is refused."""
        if self.pipeline is None:
            return None
        return self.recorded.order(self.pipeline, self.listing.uid, namespace)


@dataclass(slots=True)
class PipelineState:
    """The state of a pipeline that is kept between reconciles."""

    uid: str
    publisher: Publisher
    token: str | None = None
    memory: ControllerState | None = None
    """None until every member has been asked once."""
    hindered: Complaint | None = None
    """Why an object could not be applied when objects were last compared."""
    undone: Complaint | None = None
    """Why an action on a pod failed in the last reconcile."""
    compared: tuple[int, bool, bool] | None = None
    """When objects were last compared: the manifest's generation, whether all was delivered, and
    whether drivers could not begin."""
    compare_at: float = -math.inf
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
