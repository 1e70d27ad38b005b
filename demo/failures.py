"""Failures while a pipeline runs, and when they were overcome. Times are seconds since 1970."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tandem_core.model.states import EventReason

_LOOK_SECONDS = 0.1


@dataclass(slots=True)
class Failure:
    """One failure and how it was overcome."""

    pair: str
    what: str
    at: float
    paired_at: float | None = None
    """When the pair was whole again; None if it was not before the end."""


class Told(NamedTuple):
    """An event, as it was written down."""

    at: float
    reason: str
    subject: str


def overcome(failures: Iterable[Failure], told: Sequence[Told], say: Callable[[str], None]) -> bool:
    """Note which pairs are whole again by the events, and say so; whether all are."""
    missing = [failure for failure in failures if failure.paired_at is None]
    for failure in missing:
        failure.paired_at = paired_after(failure.pair, failure.at, told)
        if failure.paired_at is not None:
            seconds = failure.paired_at - failure.at
            say(f"{failure.pair} is whole again after {seconds:.1f} s.")
    return all(failure.paired_at is not None for failure in missing)


def paired_after(pair: str, at: float, told: Iterable[Told]) -> float | None:
    """When a pair was first said to be whole after a moment."""
    times = [
        each.at
        for each in told
        if each.reason == EventReason.PAIRED and each.subject == pair and each.at > at
    ]
    return min(times, default=None)


def wait(condition: Callable[[], bool], limit: float | None = None) -> bool:
    """Wait for a condition, at most so many seconds; whether it came to hold."""
    began = time.monotonic()
    while not condition():
        if limit is not None and time.monotonic() - began > limit:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def now() -> float:
    """The clock that files and events have."""
    return time.time()  # noqa: TID251 - files and events have wall clock times
