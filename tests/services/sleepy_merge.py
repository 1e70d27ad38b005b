"""The real merge service, which a test can have fall asleep in the midst of a delivery.

A merge that is frozen at any moment rarely has something in hand, so what it does when it thaws
shows little. This one stops itself where its files sink is about to take an epoch, and tells what
the sink answered when it goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import signal
import threading
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from unittest.mock import patch

from tandem_runtime.sinks import factory, files
from tandem_runtime.sinks.base import Answer
from tandem_runtime.sinks.files import DirectorySink
from tandem_runtime.sinks.json_text import json_lines
from tandem_runtime.sinks.slot_positions import Position, move_position


class Moment(StrEnum):
    """Where in a delivery a merge falls asleep."""

    BEFORE_CHECK = "before-check"
    """It has an epoch's results, and the sink has not looked at its position yet."""
    BEFORE_MOVE = "before-move"
    """The sink has found the epoch to be the next one and has written its draft."""
    UNCHECKED = "unchecked"
    """As the first one, but its sink is then one that checks nothing."""


def request(home: Path, slot: int) -> Path:
    """Holds the moment at which a merge of this slot, whichever delivers, is to fall asleep."""
    return home / f"sleep-{slot}"


def diary(home: Path, slot: int) -> Path:
    """Has a line for each merge of this slot that fell asleep, and one for what it was answered."""
    return home / f"slept-{slot}"


class Sleeper:
    """Stops this process where a test asks for it."""

    def __init__(self, home: Path, slot: int) -> None:
        self._request, self._diary = request(home, slot), diary(home, slot)
        self._of_thread = threading.local()

    def sleep(self, moment: Moment, epoch: int) -> bool:
        """Whether this was the moment; then it has passed, and the process is awake again."""
        try:
            if self._request.read_text() != moment:
                return False
            # Only one of two sinks and of two merges succeeds here, so only one falls asleep.
            self._request.unlink()
        except FileNotFoundError:
            return False
        self._write(epoch=epoch, pid=os.getpid())
        self._of_thread.slept = True
        # Sent to the process it would reach another thread, and this one might go on meanwhile.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return True

    def answered(self, **found: object) -> None:
        """Tell how the delivery ended if this thread fell asleep in it."""
        if getattr(self._of_thread, "slept", False):
            self._of_thread.slept = False
            self._write(**found)

    def _write(self, **found: object) -> None:
        with self._diary.open("a") as file:
            file.write(f"{json.dumps(found)}\n")


class UncheckedSink(DirectorySink):
    """The planted bug: takes any epoch at any time."""

    def deliver(self, epoch: int, answers: Sequence[Answer], *, shared: bool = False) -> int:
        """Write the file of an epoch, whoever has done it before."""
        draft = self._directory / ".unchecked"
        with draft.open("wb") as file:
            for pair, table in answers:
                file.writelines(json_lines(table, {"_epoch": epoch, "_pair": pair}))
        ending = f"-{self._slot}" if shared else ""
        draft.replace(self._directory / f"{epoch:012}{ending}.{self._format}")
        return epoch


def sleepy(sleeper: Sleeper) -> type[DirectorySink]:
    """The real sink, in which its merge may fall asleep."""

    class SleepySink(DirectorySink):
        def deliver(self, epoch: int, answers: Sequence[Answer], *, shared: bool = False) -> int:
            take = super().deliver
            if any(table.num_rows for _, table in answers):
                sleeper.sleep(Moment.BEFORE_CHECK, epoch)
                if sleeper.sleep(Moment.UNCHECKED, epoch):
                    take = UncheckedSink.deliver.__get__(self)
            position = None
            try:
                position = take(epoch, answers, shared=shared)
            finally:
                sleeper.answered(sink=str(self._directory), position=position, sealed=self.sealed)
            return position

    return SleepySink


def main() -> None:
    """Run the merge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--slot", type=int, required=True)
    found, _ = parser.parse_known_args()
    sleeper = Sleeper(found.dir, found.slot)

    def move(beside: Path, old: Position, new: Position) -> None:
        if new.draft is not None and not new.sealed:
            sleeper.sleep(Moment.BEFORE_MOVE, new.epoch)
        move_position(beside, old, new)

    with (
        patch.object(factory, "DirectorySink", sleepy(sleeper)),
        patch.object(files, "move_position", move),
    ):
        runpy.run_module("tandem_runtime.services.merge", run_name="__main__")


if __name__ == "__main__":
    main()
