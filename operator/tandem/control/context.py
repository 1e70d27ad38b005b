"""What one turn of a pipeline goes by, and what is kept from turn to turn."""

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
"""Seconds that pods of a completed pipeline are still listened to."""


@dataclass(frozen=True, slots=True)
class ReconcileContext:
    """What one turn goes by."""

    moment: Instant
    listing: PipelineObjects
    recorded: Recorded
    pipeline: Pipeline | None
    """None if the manifest as it is now cannot be run."""
    refused: Complaint | None
    """Why it cannot."""

    def is_another(self, namespace: str) -> bool:
        """Whether the manifest is another one than that which the pipeline began with."""
        order, began = self.order(namespace), self.recorded.spec
        return order is not None and began is not None and began != spec_digest(order)

    def order(self, namespace: str) -> DesiredState | None:
        """What the pipeline is to consist of; unknown while its manifest is refused."""
        if self.pipeline is None:
            return None
        return self.recorded.order(self.pipeline, self.listing.uid, namespace)


@dataclass(slots=True)
class PipelineState:
    """What is kept of a pipeline from turn to turn."""

    uid: str
    publisher: Publisher
    token: str | None = None
    memory: ControllerState | None = None
    """None until everybody has been asked once."""
    hindered: Complaint | None = None
    """What could not be applied when objects were last compared."""
    undone: Complaint | None = None
    """What could not be done to pods in the last turn."""
    compared: tuple[int, bool, bool] | None = None
    """The manifest's generation, whether all was delivered, and whether drivers could not begin,
    when objects were compared."""
    compare_at: float = -math.inf
    completed_at: float | None = None
    """When this operator saw that everything is delivered."""

    def is_over(self, now: float) -> bool:
        """Whether the status says that everything is delivered, and all else that there is to say.

        What was last counted is told a little later.
        """
        if self.publisher.written.phase is not Phase.COMPLETED:
            return False
        if self.completed_at is None:
            return True
        return now - self.completed_at >= LAST_WORDS and self.publisher.settled
