"""The content of the display of a running pipeline, and rates of its totals."""

from collections import deque
from dataclasses import dataclass

from tandem.policy.snapshot import Snapshot
from tandem_core.model.states import EventReason
from tandem_core.model.status import Status


@dataclass(frozen=True, slots=True)
class Event:
    """An event and its time."""

    at: str
    """ISO 8601 in UTC."""
    reason: EventReason
    subject: str
    detail: str

    def as_json(self) -> dict[str, str]:
        """Return the event as plain data."""
        return {
            "at": self.at,
            "event": self.reason.value,
            "subject": self.subject,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class DisplaySnapshot:
    """A snapshot of the pipeline, its status, and its recent events."""

    name: str
    status: Status
    snapshot: Snapshot
    lead: str | None
    """The split that leads."""
    rows_in_per_second: float
    rows_out_per_second: float
    events: tuple[Event, ...]
    """Recent events, the newest last."""
    running_for: float
    dead_letters: str
    """The path of rows that did not fit their schema."""


_SPAN = 5.0


class Rate:
    """The growth of a total over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now: float, total: int) -> float:
        """Add a reading; returns the recent growth per second."""
        self._seen.append((now, total))
        while now - self._seen[0][0] > _SPAN:
            self._seen.popleft()
        since, before = self._seen[0]
        return max(0.0, (total - before) / (now - since)) if now > since else 0.0
