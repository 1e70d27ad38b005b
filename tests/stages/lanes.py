"""Two lanes of stages: one is seen live; what runs beside it is shown when a stage is through.

A stage is a command. After a failure no further stage begins, and those that run come to their end,
unless all are to be run whichever fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TextIO

FOLLOWED_EVERY = 0.2
"""Seconds between two looks at what runs beside, when nothing else runs."""


class Stage(NamedTuple):
    """A command, and what it is called."""

    name: str
    command: Sequence[str]


class Ended(NamedTuple):
    """How a stage ended."""

    name: str
    seconds: float
    code: int

    def __str__(self) -> str:
        verdict = "passed" if self.code == 0 else f"FAILED with exit code {self.code}"
        return f"== {self.name} {verdict} after {self.seconds:.0f} s"


def run_lanes(
    live: Sequence[Stage], beside: Sequence[Stage], out: TextIO, *, keep_going: bool = False
) -> list[Ended]:
    """Run both lanes, and print all that they print; how the stages ended, as they did.

    An exception, such as that of Ctrl-C, interrupts what runs and waits for its end.
    """
    with tempfile.TemporaryDirectory() as scratch:
        lanes = _Lanes(out, Path(scratch, "beside"), keep_going)
        with lanes.running_beside(beside) as thread:
            lanes.run_live(live)
            lanes.follow(thread)
    return lanes.ended


class _Lanes:
    def __init__(self, out: TextIO, log: Path, keep_going: bool) -> None:
        self.ended: list[Ended] = []
        self._out, self._log = out, log
        self._keep_going = keep_going
        self._log.touch()
        self._complete = 0
        """So many bytes of the log are of stages that have ended."""
        self._shown = 0
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def run_live(self, stages: Sequence[Stage]) -> None:
        """Run them on our own output, with what ended beside shown in between."""
        for stage in stages:
            ended = self._run(stage, None)
            if ended is None:
                return
            self._out.write(f"{ended}\n")
            self._show(self._complete)

    @contextmanager
    def running_beside(self, stages: Sequence[Stage]) -> Iterator[threading.Thread]:
        """Run them into the log until the end of the block; an exception there stops everything."""
        thread = threading.Thread(target=self._run_beside, args=(stages,))
        thread.start()
        try:
            yield thread
        except BaseException:
            self._stop()
            raise
        finally:
            thread.join()

    def follow(self, thread: threading.Thread) -> None:
        """Show what runs beside as it is written, until it ends."""
        alive = True
        while alive:
            thread.join(FOLLOWED_EVERY)
            # Asked before looking: what it wrote last is not missed.
            alive = thread.is_alive()
            self._show(self._log.stat().st_size)

    def _run_beside(self, stages: Sequence[Stage]) -> None:
        with self._log.open("ab", buffering=0) as log:
            for stage in stages:
                ended = self._run(stage, log.fileno())
                if ended is None:
                    return
                log.write(f"{ended}\n".encode())
                self._complete = self._log.stat().st_size

    def _run(self, stage: Stage, output: int | None) -> Ended | None:
        """Run it unless no further stage is to begin."""
        with self._lock:
            if self._stopped:
                return None
            # In a group of its own, so that it is interrupted with all that it has started.
            process = subprocess.Popen(
                stage.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                process_group=0,
            )
            self._running.add(process)
        begun = time.monotonic()
        code = process.wait()
        ended = Ended(stage.name, time.monotonic() - begun, code)
        with self._lock:
            self._running.discard(process)
            self.ended.append(ended)
            self._stopped |= code != 0 and not self._keep_going
        return ended

    def _show(self, end: int) -> None:
        with self._log.open("rb") as log:
            log.seek(self._shown)
            self._out.write(log.read(end - self._shown).decode(errors="replace"))
        self._out.flush()
        self._shown = end

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
        for process in running:
            process.wait()
