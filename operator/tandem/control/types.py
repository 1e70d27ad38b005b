"""Times: one clock for waiting, one for people and for what the API server writes down."""

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on both clocks."""

    now: float
    """Seconds of a clock that only moves forward."""
    wall: datetime
    """The time in UTC."""

    def of(self, stamp: object) -> float | None:
        """A time that the API server wrote down, on the clock that only moves forward.

        Clocks of nodes differ; what seems to lie in the future was just now.
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
