"""Runs many schedules and adds up their outcomes."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from tandem_simulator.engine.schedule import ScheduleOutcome, run_schedule
from tandem_simulator.oracle.violation import Violation

BATCH = 20
"""Schedules that a worker gets at once; garbage is collected after each batch."""


class Failed(NamedTuple):
    """A schedule that violated an invariant."""

    number: int
    violation: Violation


class Tally:
    """Totals of a run so far."""

    def __init__(self) -> None:
        self.schedules = 0
        self.messages = 0
        self.faults = 0
        self.simulated = 0
        self.longest_recovery = 0
        self.coverage: Counter[str] = Counter()
        self.failed: list[Failed] = []

    def add(self, outcome: ScheduleOutcome) -> None:
        """Count one schedule."""
        self.schedules += 1
        self.messages += outcome.messages
        self.faults += outcome.faults
        self.simulated += outcome.duration
        self.coverage.update(outcome.coverage)
        if outcome.violation is not None:
            self.failed.append(Failed(outcome.number, outcome.violation))
        else:
            self.longest_recovery = max(self.longest_recovery, outcome.after_faults)


def run_campaign(
    seed: int,
    numbers: range,
    plant: str | None = None,
    jobs: int = 1,
    watch: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Run schedules in order; with a seeded bug, stop at the first that finds it."""
    tally = Tally()
    for batch in _batches(seed, numbers, plant, jobs):
        for outcome in batch:
            tally.add(outcome)
            if plant and tally.failed:
                return tally
        watch(tally)
    return tally


def _batches(
    seed: int, numbers: range, plant: str | None, jobs: int
) -> Iterator[Iterable[ScheduleOutcome]]:
    work = partial(_run_batch, seed, plant)
    starts = range(numbers.start, numbers.stop, BATCH)
    batches = [range(first, min(first + BATCH, numbers.stop)) for first in starts]
    if jobs == 1:
        yield from map(work, batches)
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(work, batches)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _run_batch(seed: int, plant: str | None, numbers: range) -> list[ScheduleOutcome]:
    outcomes = []
    with _no_collection():
        for number in numbers:
            outcomes.append(run_schedule(seed, number, plant))
            if plant and outcomes[-1].violation:
                break
    return outcomes


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage once after many schedules: within one there is hardly any."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
