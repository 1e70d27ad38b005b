"""Limits a starting driver to half of the cores.

For some seconds a starting driver uses every core it gets, just when the twin has to run the pair
alone. On one machine the supervisor lowers its priority. In pods priorities have no effect: each
pod has a CPU share by its requests, and those are equal.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_LOWEST = 19
"""The lowest priority, as `nice` has it."""


@contextlib.contextmanager
def on_half_the_cores() -> Iterator[None]:
    """Pin this thread, and the processes it starts, to the upper half of the cores.

    All starting drivers share this half; the other one is left to running processes. On exit this
    process and its children may use all cores again. With a single core nothing changes.
    """
    allowed = os.sched_getaffinity(0)
    half = sorted(allowed)[len(allowed) // 2 :]
    os.sched_setaffinity(0, half)
    try:
        yield
    finally:
        # A thread started meanwhile may have inherited the old affinity: look again.
        while sum(_let_go(task, allowed) for task in _tasks()):
            pass


def lower_thread(thread: int) -> None:
    """Give a thread of this process or of a child, by its id, what other threads leave of the CPU.

    Within one pod this has an effect: its threads share the pod's share. It cannot be undone.
    """
    with contextlib.suppress(OSError):  # the thread has ended
        os.setpriority(os.PRIO_PROCESS, thread, _LOWEST)


def _let_go(task: int, allowed: set[int]) -> bool:
    """Let a thread use these cores; false if it already may, or has ended."""
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
    """The parent of a process; the name before it may contain blanks and brackets."""
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])
