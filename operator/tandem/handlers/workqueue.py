"""The queue of pipelines to reconcile, in which each pipeline is at most once.

All changes to a pipeline while it waits or is worked on lead to one more turn. Times are arguments,
in seconds of the monotonic clock.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tandem.control.types import Key

GAP = 0.5
"""Least seconds between two turns of one pipeline."""
FIRST_DELAY = 1.0
"""Seconds after a failed turn. Doubles with each failure in a row."""
MOST_DELAY = 15.0


class Turn(NamedTuple):
    """A pipeline whose turn it is."""

    key: Key
    news: bool
    """Whether it has changed since its last turn, or that one failed."""


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
        """`spread` adds jitter to waiting times, so that not all pipelines are due at once."""
        self._entries: dict[Key, _Entry] = {}
        self._spread = spread

    def ask(self, key: Key, now: float) -> None:
        """Queue a pipeline that has changed: it is due as soon as the gap allows."""
        entry = self._entries.setdefault(key, _Entry(now))
        entry.news = True
        entry.due = max(entry.not_before, min(entry.due, now))

    def take(self, now: float) -> Turn | None:
        """Take the pipeline that has been due for longest; it is busy until `done` or `failed`."""
        due = [(e.due, key) for key, e in self._entries.items() if not e.busy and e.due <= now]
        if not due:
            return None
        key = min(due)[1]
        entry = self._entries[key]
        turn = Turn(key, entry.news)
        entry.busy, entry.news = True, False
        return turn

    def done(self, key: Key, now: float, after: float | None) -> None:
        """End a turn; the next one is due `after` seconds, None if the pipeline is gone.

        A pipeline that has changed meanwhile is due after the gap in both cases.
        """
        entry = self._entries[key]
        if after is None and not entry.news:
            del self._entries[key]
            return
        wait = GAP if entry.news or after is None else max(GAP, self._spread(after))
        self._entries[key] = _Entry(now + wait, now + GAP, entry.news)

    def failed(self, key: Key, now: float) -> float:
        """End a failed turn; return the seconds until the next, which lists objects again."""
        entry = self._entries[key]
        failures = entry.failures + 1
        # The exponent is bounded so that a long row of failures does not overflow.
        delay = min(MOST_DELAY, self._spread(FIRST_DELAY * 2.0 ** min(failures - 1, 10)))
        self._entries[key] = _Entry(now + delay, now + delay, failures=failures)
        return delay

    def wait(self, now: float) -> float:
        """Seconds until a pipeline is due; infinite if none waits."""
        due = (entry.due for entry in self._entries.values() if not entry.busy)
        return max(0.0, min(due, default=math.inf) - now)

    def __len__(self) -> int:
        return len(self._entries)
