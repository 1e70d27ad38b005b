"""Leaving processors to others while Spark starts.

A driver that starts takes all the processors it gets for some seconds, just when the twin has to
carry its pair alone. On one machine the supervisor lowers its priority. In pods that says nothing:
each pod has a share of its own by its requests, and those are equal.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def on_half_the_cores() -> Iterator[None]:
    """Keep this thread, and the processes it starts, to the upper half of the cores.

    So all who give way share one half, and the other one is left to those who do not. At the end
    this process and its children may use all cores again. Where there is one core nothing changes.
    """
    allowed = os.sched_getaffinity(0)
    half = sorted(allowed)[len(allowed) // 2 :]
    os.sched_setaffinity(0, half)
    try:
        yield
    finally:
        # A thread that is started meanwhile may still be of the old ones' kind: look again.
        while sum(_let_go(task, allowed) for task in _tasks()):
            pass


def _let_go(task: int, allowed: set[int]) -> bool:
    """Let a thread use these cores; false if it did, or has ended."""
    try:
        if os.sched_getaffinity(task) == allowed:
            return False
        os.sched_setaffinity(task, allowed)
    except OSError:
        return False
    return True


def _tasks() -> Iterator[int]:
    """The threads of this process and of its children."""
    own = os.getpid()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if own in {int(process.name), _parent(process)}:
                yield from (int(task.name) for task in (process / "task").iterdir())


def _parent(process: Path) -> int:
    """The parent of a process; its own name, which comes before, may have blanks and brackets."""
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])
