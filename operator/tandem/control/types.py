"""Small types of the control loop: a pipeline's key, the metrics port, points in time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from tandem_core.model.states import Word
from tandem_core.model.status import Status


class Key(NamedTuple):
    """A pipeline's resource. Equal names in two namespaces are two pipelines."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Meter(Protocol):
    """Metrics that the loops report to, from any thread."""

    def event(self, key: Key, reason: Word) -> None:
        """An event was written."""

    def status(self, key: Key, status: Status) -> None:
        """The status of a pipeline is now this."""

    def gone(self, key: Key) -> None:
        """A pipeline no longer exists."""


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment on both clocks."""

    now: float
    """Seconds of the monotonic clock."""
    wall: datetime
    """The time in UTC."""

    def of(self, stamp: object) -> float | None:
        """Convert a timestamp of the API server to the monotonic clock; None if it is not one.

        Clocks of nodes differ; a time that seems to lie in the future counts as now.
        """
        try:
            at = datetime.fromisoformat(str(stamp))
        except ValueError:
            return None
        return self.now - max(0.0, (self.wall - at).total_seconds())


def stamp(wall: datetime) -> str:
    """A time for people, with milliseconds."""
    at = wall.astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def precise_stamp(wall: datetime) -> str:
    """A time as Kubernetes writes it where order counts, with microseconds."""
    return f"{wall.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def plain_stamp(wall: datetime) -> str:
    """A time as Kubernetes writes it elsewhere, with seconds."""
    return f"{wall.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
