"""Breaks and resizes the pipeline while it runs: a driver is killed, one frozen, a pair added."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from demo.changes import Resize, ask_for_pairs, follow
from demo.failures import Failure, Told, now, overcome, wait
from demo.payments import Payments
from tandem.local.store.directory import Directory, read_status
from tandem.local.store.lookup import signal_member
from tandem.output.member_table import Missing
from tandem_core.model.states import PairState
from tandem_core.model.status import Status

KILLED, FROZEN = "pair-0/primary", "pair-1/secondary"
WARM_EPOCHS = 4
"""Spark's first micro-batches are slow and say little about the pipeline."""
QUIET_EPOCHS = 12
"""Epochs delivered before the first failure."""
RECOVERY_SECONDS = 120.0
"""Longest wait for the pairs to recover."""
PAIRS, MORE_PAIRS = 2, 3
RESIZE_SECONDS = 240.0
"""Longest wait for a change of the number of pairs."""
LAST_SECONDS = 60.0
"""Longest wait for the delivery of everything taken in."""


@dataclass(slots=True)
class Story:
    """Acts in a thread of its own, reports what happens, and stops the pipeline at the end."""

    directory: Directory
    payments: Payments
    say: Callable[[str], None]
    failures: list[Failure] = field(default_factory=list)
    resizes: list[Resize] = field(default_factory=list)
    warm_at: float | None = None
    """When the pipeline had warmed up, in seconds since 1970."""
    over: bool = False
    """Whether the demonstration completed."""

    def begin(self) -> None:
        """Start; the thread ends with the program."""
        threading.Thread(target=self._run, name="story", daemon=True).start()

    def _run(self) -> None:
        wait(lambda: all_paired(self._status()))
        self.say("Four Spark drivers are ready, two for every key. Payments start.")
        self.payments.begin()
        wait(lambda: self._status().epoch.delivered >= WARM_EPOCHS)
        self.warm_at = now()
        wait(lambda: self._status().epoch.delivered >= WARM_EPOCHS + QUIET_EPOCHS)
        self._fail(KILLED, signal.SIGKILL, "killed with -9")
        self._fail(FROZEN, signal.SIGSTOP, "frozen")
        self.say("Watch the epochs: the twins deliver while replacements start.")
        if wait(self._all_whole_again, RECOVERY_SECONDS):
            self.say("Both pairs have both replicas again.")
        for pairs in (MORE_PAIRS, PAIRS):
            self._resize(pairs)
        self.payments.end()
        self.say("Payments stop. The remaining ones are delivered, then the pipeline stops.")
        wait(lambda: all_delivered(self._status(), self.payments.written), LAST_SECONDS)
        self.over = True
        os.kill(os.getpid(), signal.SIGINT)

    def _fail(self, target: str, number: int, what: str) -> None:
        done: list[tuple[str, int]] = []

        def hit() -> bool:
            try:
                done.append(signal_member(self.directory, target, number))
            except Missing:
                return False
            return True

        wait(hit)
        name, pid = done[0]
        pair, _, role = target.partition("/")
        self.failures.append(Failure(pair, f"{role} {what}", now()))
        self.say(f"{name}, the {role} of {pair} (process {pid}), is {what}.")

    def _resize(self, pairs: int) -> None:
        before = len(self._status().pairs)
        resize = Resize(before, pairs, now())
        self.resizes.append(resize)
        self.say(f"{before} pairs become {pairs}; payments go on: tandem scale pairs={pairs}")
        ask_for_pairs(self.directory, pairs)
        if not wait(lambda: self._is_cut(resize), RESIZE_SECONDS):
            return
        self.say("New pairs have the state of their keys, and take over.")
        if wait(lambda: self._is_done(resize), RESIZE_SECONDS) and resize.done_at is not None:
            seconds = resize.done_at - resize.asked_at
            self.say(f"{pairs} pairs run after {seconds:.1f} s; the replaced drivers have ended.")

    def _is_cut(self, resize: Resize) -> bool:
        follow(resize, events_in(self.directory))
        return resize.cut_at is not None

    def _is_done(self, resize: Resize) -> bool:
        follow(resize, events_in(self.directory))
        return resize.done_at is not None

    def _status(self) -> Status:
        return read_status(self.directory) or Status()

    def _all_whole_again(self) -> bool:
        return overcome(self.failures, events_in(self.directory), self.say)


def all_paired(status: Status) -> bool:
    """Whether every pair has both replicas in sync."""
    return bool(status.pairs) and all(pair.state is PairState.PAIRED for pair in status.pairs)


def all_delivered(status: Status, written: int) -> bool:
    """Whether all rows written are taken in and delivered."""
    return status.counters.rows_in == written and status.epoch.delivered == status.epoch.cut


def events_in(directory: Directory) -> list[Told]:
    """The events of a pipeline on this machine."""
    lines = directory.events.read_text().splitlines() if directory.events.exists() else ()
    documents = [json.loads(line) for line in lines]
    return [
        Told(datetime.fromisoformat(each["at"]).timestamp(), each["event"], each["subject"])
        for each in documents
    ]
