"""Changes of a running query, and what they do to its output."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from bench.streaming.deliveries import Delivery, Outlet, longest_gap, percentile, waits
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import Verdict
from bench.streaming.processes import cpu_during
from bench.streaming.report import median, say, seconds

QUIET_SECONDS = 5.0
"""Pause before each change; the normal latency is measured here."""
_SHOWN_BEFORE, _SHOWN_AFTER = 5.0, 90.0


@dataclass(frozen=True)
class Setting:
    """One size of state."""

    keys: int
    interval_ms: int
    memory_mib: int
    tries: int
    rate: int

    @property
    def interval(self) -> float:
        """The interval of epochs, in seconds."""
        return self.interval_ms / 1000


@dataclass(frozen=True)
class Moment:
    """When a change was asked for, and when its steps were reached, in seconds since 1970."""

    asked: float
    ended: float
    """When all replicas worked in step again, or a plain query had caught up."""
    cut: float | None = None
    retired: float | None = None
    state_bytes: int | None = None
    """Bytes of the state of all pairs before."""
    sent_bytes: int | None = None
    """Bytes of state sent to new replicas."""


@dataclass(frozen=True)
class Change:
    """One change."""

    gap: float
    """Longest time without a delivery from the request until the end."""
    delays: tuple[float, ...]
    """Extra latency of the first row of each epoch delivered meanwhile."""
    took: float
    """Seconds from the request until all replicas worked in step again."""
    to_cut: float | None
    to_retirement: float | None
    state_bytes: int | None
    sent_bytes: int | None
    deliveries: tuple[float, ...]
    """When epochs were delivered, in seconds after the request."""


@dataclass(frozen=True)
class Case:
    """One kind of change of one query, made several times."""

    name: str
    setting: Setting
    changes: tuple[Change, ...]
    load: float
    """Share of the machine's processor time that the query used before the first change."""
    verdict: Verdict

    @property
    def gaps(self) -> list[float]:
        """The longest gap of each change."""
        return [change.gap for change in self.changes]

    @property
    def delays(self) -> list[float]:
        """The delays of the epochs of all changes."""
        return [delay for change in self.changes for delay in change.delays]

    @property
    def late_epochs(self) -> int:
        """Epochs that were delayed by more than one interval."""
        return sum(delay > self.setting.interval for delay in self.delays)


class Recorder:
    """Makes changes at random phases of the epochs, and keeps when they were made."""

    def __init__(self, outlet: Outlet, interval: float, quiet: float = QUIET_SECONDS) -> None:
        """`quiet` is the pause before each change."""
        self.outlet = outlet
        self._interval = interval
        self._quiet = quiet
        self._phase = np.random.default_rng(1)
        self.moments: dict[str, list[Moment]] = {}

    def make(self, name: str, change: Callable[[], Moment]) -> None:
        """Pause, then make a change."""
        time.sleep(self._quiet + self._phase.uniform(0, self._interval))
        moment = change()
        self.moments.setdefault(name, []).append(moment)
        gap = longest_gap(self.outlet.look(), moment.asked, moment.ended).seconds
        cut = "" if moment.cut is None else f", cut after {seconds(moment.cut - moment.asked)}"
        took = seconds(moment.ended - moment.asked)
        say(f"  {name}, {len(self.moments[name])}: longest gap {seconds(gap)}{cut}, took {took}")

    def wait(self, name: str, length: float) -> None:
        """Change nothing for some seconds."""

        def nothing() -> Moment:
            asked = now()
            time.sleep(length)
            return Moment(asked, now())

        self.make(name, nothing)


def measured(moments: Sequence[Moment], outlet: Outlet, feeder: Feeder) -> tuple[Change, ...]:
    """What changes did to the output; call it once everything is delivered."""
    paced = [each for each in outlet.look() if each.last >= feeder.rows.keys]
    every = waits(paced, feeder.due)
    found = []
    for moment in moments:
        normal = median(
            [wait.latency for wait in every if 0 <= moment.asked - wait.until <= QUIET_SECONDS]
        )
        delays = [
            wait.latency - normal
            for wait in every
            if wait.until >= moment.asked and wait.since <= moment.ended
        ]
        found.append(
            Change(
                longest_gap(paced, moment.asked, moment.ended).seconds,
                tuple(round(delay, 4) for delay in delays),
                moment.ended - moment.asked,
                None if moment.cut is None else moment.cut - moment.asked,
                None if moment.retired is None else moment.retired - moment.asked,
                moment.state_bytes,
                moment.sent_bytes,
                _around(paced, moment),
            )
        )
    return tuple(found)


def machine_share(pid: int, length: float) -> float:
    """Share of the machine's processor time that a tree of processes uses for some seconds."""
    return sum(cpu_during(pid, length).values()) / length / len(os.sched_getaffinity(0))


def _around(deliveries: Sequence[Delivery], moment: Moment) -> tuple[float, ...]:
    end = min(moment.ended - moment.asked, _SHOWN_AFTER)
    return tuple(
        round(each.at - moment.asked, 4)
        for each in deliveries
        if -_SHOWN_BEFORE <= each.at - moment.asked <= end
    )


def p99(values: Sequence[float]) -> float:
    """The value that 99 % do not exceed."""
    return percentile(values, 0.99)
