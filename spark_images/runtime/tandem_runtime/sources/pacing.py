"""Limits the rate of a source partition, by a clock."""

import time
from typing import Protocol

_WORTH_A_BATCH = 0.05
"""Minimum batch, in seconds' worth of rows; avoids returning them one by one."""

_LONGEST_BURST = 0.25
"""Maximum seconds' worth of rows returned at once after a pause; the rest is not made up."""


_SHORTEST_WAIT = 0.001
"""Seconds; a wait too short for the clock to advance would repeat forever."""


class Clock(Protocol):
    """Monotonic time in seconds, and a way to wait."""

    def now(self) -> float:
        """Return the time."""

    def wait(self, seconds: float) -> None:
        """Return after this long."""


class MonotonicClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return seconds since an arbitrary moment."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class Pace:
    """Counts the rows that are due at a rate in rows per second; without a rate, no limit."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._due = 0.0
        self._looked_at: float | None = None

    def due(self, now: float, most: int) -> int:
        """Return the number of rows that are due: 0 until there are enough for a batch."""
        if self._rate is None:
            return most
        if self._looked_at is not None:
            self._due += (now - self._looked_at) * self._rate
        self._looked_at = now
        self._due = min(self._due, max(1.0, self._rate * _LONGEST_BURST))
        return min(int(self._due), most) if self._due >= self._batch else 0

    def wait(self) -> float:
        """Return the seconds until a batch is due, as of the last call of `due`; 0 if it is."""
        if self._rate is None or self._due >= self._batch:
            return 0.0
        return max(_SHORTEST_WAIT, (self._batch - self._due) / self._rate)

    def took(self, rows: int) -> None:
        """Record that rows were returned."""
        self._due -= rows

    @property
    def _batch(self) -> float:
        return max(1.0, (self._rate or 0.0) * _WORTH_A_BATCH)
