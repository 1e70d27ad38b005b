"""Which pipelines are due: one queue, in which each pipeline stands at most once.

Whatever is told of a pipeline while it waits or is worked on comes to one more turn. Times are
arguments, in seconds of a clock that only moves forward.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tandem.control.types import Key

GAP = 0.5
"""Between two turns of one pipeline, at least."""
FIRST_DELAY = 1.0
"""After a turn that failed. Doubles with each failure in a row."""
MOST_DELAY = 15.0


class Turn(NamedTuple):
    """A pipeline whose turn it is."""

    key: Key
    news: bool
    """Whether something was told of it since its last turn."""


@dataclass(slots=True)
class _Entry:
    due: float
    not_before: float = -math.inf
    news: bool = True
    busy: bool = False
    failures: int = 0


class WorkQueue:
    """Not safe for threads by itself."""

    def __init__(self, spread: Callable[[float], float] = lambda seconds: seconds) -> None:
        """`spread` varies a time to wait a little, so that not all come at once."""
        self._entries: dict[Key, _Entry] = {}
        self._spread = spread

    def ask(self, key: Key, now: float) -> None:
        """Something has happened to a pipeline: it is due as soon as it may be."""
        entry = self._entries.setdefault(key, _Entry(now))
        entry.news = True
        entry.due = max(entry.not_before, min(entry.due, now))

    def take(self, now: float) -> Turn | None:
        """The pipeline that has been due for longest; it is busy until it is done or has failed."""
        due = [(e.due, key) for key, e in self._entries.items() if not e.busy and e.due <= now]
        if not due:
            return None
        key = min(due)[1]
        entry = self._entries[key]
        turn = Turn(key, entry.news)
        entry.busy, entry.news = True, False
        return turn

    def done(self, key: Key, now: float, after: float | None) -> None:
        """A turn is over; the next one is due after so many seconds, None if the pipeline is gone.

        One of which something was told meanwhile is due at once in both cases.
        """
        entry = self._entries[key]
        if after is None and not entry.news:
            del self._entries[key]
            return
        wait = GAP if entry.news or after is None else max(GAP, self._spread(after))
        self._entries[key] = _Entry(now + wait, now + GAP, entry.news)

    def failed(self, key: Key, now: float) -> float:
        """A turn has failed; after how many seconds the next one, with everything new, is due."""
        entry = self._entries[key]
        failures = entry.failures + 1
        # The exponent is bounded so that a long row of failures is no large number.
        delay = min(MOST_DELAY, self._spread(FIRST_DELAY * 2.0 ** min(failures - 1, 10)))
        self._entries[key] = _Entry(now + delay, now + delay, failures=failures)
        return delay

    def wait(self, now: float) -> float:
        """How many seconds until somebody is due; infinite if nobody is."""
        due = (entry.due for entry in self._entries.values() if not entry.busy)
        return max(0.0, min(due, default=math.inf) - now)

    def __len__(self) -> int:
        return len(self._entries)
