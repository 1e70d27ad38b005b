"""What happens to the pipeline while it runs: a driver is killed, another one frozen."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from demo.payments import Payments
from tandem.local.directory import Directory, read_status
from tandem.local.find import NotFound, signal_member
from tandem.model.states import EventReason, PairState
from tandem.model.status import Status

KILLED, FROZEN = "pair-0/primary", "pair-1/secondary"
WARM_EPOCHS = 4
"""Spark's first micro-batches are slow and say little about the pipeline."""
QUIET_EPOCHS = 12
"""Epochs delivered before anything happens."""
RECOVERY_SECONDS = 120.0
"""The pairs are waited for at most so long."""
AFTERWARDS_SECONDS = 6.0
LAST_SECONDS = 60.0
"""What has been taken in is waited for at most so long."""
_LOOK_SECONDS = 0.1


@dataclass(slots=True)
class Failure:
    """One failure and how it was overcome; times are seconds since 1970."""

    pair: str
    what: str
    at: float
    paired_at: float | None = None
    """When the pair was whole again; None if it was not before the end."""


@dataclass(slots=True)
class Story:
    """Goes on in a thread of its own, tells what it does, and stops the pipeline at its end."""

    directory: Directory
    payments: Payments
    say: Callable[[str], None]
    failures: list[Failure] = field(default_factory=list)
    warm_at: float | None = None
    """When the pipeline had settled, in seconds since 1970."""
    over: bool = False
    """Whether the story came to its end."""

    def begin(self) -> None:
        """Wait for the pipeline, then do it; the thread ends with the program."""
        threading.Thread(target=self._run, name="story", daemon=True).start()

    def _run(self) -> None:
        _wait(self._all_paired)
        self.say("Four Spark drivers are up, two for every key. Payments begin to come.")
        self.payments.begin()
        _wait(lambda: self._status().epoch.delivered >= WARM_EPOCHS)
        self.warm_at = _now()
        _wait(lambda: self._status().epoch.delivered >= WARM_EPOCHS + QUIET_EPOCHS)
        self._fail(KILLED, signal.SIGKILL, "killed with -9")
        self._fail(FROZEN, signal.SIGSTOP, "frozen")
        self.say("Watch the epochs: their twins deliver, and replacements start.")
        if _wait(self._all_whole_again, RECOVERY_SECONDS):
            self.say("Both pairs are whole again.")
            _wait(lambda: False, AFTERWARDS_SECONDS)
        self.payments.end()
        self.say("No more payments come. What has come is delivered, then everybody stops.")
        _wait(self._all_delivered, LAST_SECONDS)
        self.over = True
        os.kill(os.getpid(), signal.SIGINT)

    def _fail(self, target: str, number: int, what: str) -> None:
        done: list[tuple[str, int]] = []

        def hit() -> bool:
            try:
                done.append(signal_member(self.directory, target, number))
            except NotFound:
                return False
            return True

        _wait(hit)
        name, pid = done[0]
        pair, _, role = target.partition("/")
        self.failures.append(Failure(pair, f"{role} {what}", _now()))
        self.say(f"{name}, the {role} of {pair} (process {pid}), is {what}.")

    def _status(self) -> Status:
        return read_status(self.directory) or Status()

    def _all_paired(self) -> bool:
        pairs = self._status().pairs
        return bool(pairs) and all(pair.state is PairState.PAIRED for pair in pairs)

    def _all_whole_again(self) -> bool:
        for failure in self.failures:
            if failure.paired_at is None:
                failure.paired_at = _paired_after(self.directory, failure)
                if failure.paired_at is not None:
                    seconds = failure.paired_at - failure.at
                    self.say(f"{failure.pair} is whole again after {seconds:.1f} s.")
        return all(failure.paired_at is not None for failure in self.failures)

    def _all_delivered(self) -> bool:
        status = self._status()
        everything = status.counters.rows_in == self.payments.written
        return everything and status.epoch.delivered == status.epoch.cut


def _paired_after(directory: Directory, failure: Failure) -> float | None:
    """When the pair of a failure was reported whole after it."""
    for line in directory.events.read_text().splitlines() if directory.events.exists() else ():
        event = json.loads(line)
        at = datetime.fromisoformat(event["at"]).timestamp()
        is_it = event["event"] == EventReason.PAIRED and event["subject"] == failure.pair
        if is_it and at > failure.at:
            return at
    return None


def _wait(condition: Callable[[], bool], limit: float | None = None) -> bool:
    """Wait for a condition, at most so many seconds; whether it came to hold."""
    began = time.monotonic()
    while not condition():
        if limit is not None and time.monotonic() - began > limit:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _now() -> float:
    return time.time()  # noqa: TID251 - files and events have wall clock times
