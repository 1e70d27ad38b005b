"""What is shown of a running pipeline, in one value."""

from dataclasses import dataclass

from tandem.policy.snapshot import Snapshot
from tandem_core.model.states import EventReason
from tandem_core.model.status import Status


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, and when."""

    at: str
    """ISO 8601 in UTC."""
    reason: EventReason
    subject: str
    detail: str

    def as_json(self) -> dict[str, str]:
        """The event for programs."""
        return {
            "at": self.at,
            "event": self.reason.value,
            "subject": self.subject,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Picture:
    """One look at the pipeline, its status, and what has happened lately."""

    name: str
    status: Status
    snapshot: Snapshot
    lead: str | None
    """The split that leads."""
    rows_in_per_second: float
    rows_out_per_second: float
    events: tuple[Event, ...]
    """The last ones, the newest last."""
    running_for: float
    dead_letters: str
    """Where rows are that did not fit their schema."""
