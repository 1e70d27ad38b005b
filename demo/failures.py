"""Records failures of a running pipeline and its recoveries, in seconds since 1970."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tandem_core.model.states import EventReason

_LOOK_SECONDS = 0.1


@dataclass(slots=True)
class Failure:
    """One failure and its recovery."""

    pair: str
    what: str
    at: float
    paired_at: float | None = None
    """When the pair had both replicas again; None if it did not before the end."""


class Told(NamedTuple):
    """An event of the pipeline."""

    at: float
    reason: str
    subject: str


def overcome(failures: Iterable[Failure], told: Sequence[Told], say: Callable[[str], None]) -> bool:
    """Record and announce recovered pairs; return whether all have recovered."""
    missing = [failure for failure in failures if failure.paired_at is None]
    for failure in missing:
        failure.paired_at = paired_after(failure.pair, failure.at, told)
        if failure.paired_at is not None:
            seconds = failure.paired_at - failure.at
            say(f"{failure.pair} has both replicas again after {seconds:.1f} s.")
    return all(failure.paired_at is not None for failure in missing)


def paired_after(pair: str, at: float, told: Iterable[Told]) -> float | None:
    """When a pair was first reported as paired after a moment."""
    times = [
        each.at
        for each in told
        if each.reason == EventReason.PAIRED and each.subject == pair and each.at > at
    ]
    return min(times, default=None)


def wait(condition: Callable[[], bool], limit: float | None = None) -> bool:
    """Wait for a condition, at most `limit` seconds; return whether it holds."""
    began = time.monotonic()
    while not condition():
        if limit is not None and time.monotonic() - began > limit:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def now() -> float:
    """The current time, on the clock of files and events."""
    return time.time()  # noqa: TID251 - files and events have wall clock times
