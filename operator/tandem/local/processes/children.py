"""Processes of members: starts them, and ends them with everything they started."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("launch.py")
_PROC = Path("/proc")
_MARK = "TANDEM_MEMBER_OF"
_YIELD = 10
"""Added to the niceness of a process at low CPU priority."""


def dying_with_us(command: Sequence[str]) -> list[str]:
    """Wrap a command, given by its absolute path, so that it dies with this process."""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command]


class Child:
    """A process and the group it leads: a Spark driver has a JVM beside its Python process.

    It is killed by the system when the supervisor dies, so it must be started from the thread that
    lives as long as the supervisor: the main one. It stays in the supervisor's session, since with
    automatic grouping the system weighs niceness only within a session.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start the command, which is given by its absolute path."""
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the commands are our own programs
                dying_with_us(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                process_group=0,
            )
        self.pid = self._process.pid
        self.started = time.monotonic()
        self.ended: float | None = None
        self._yields = False

    def poll(self) -> int | None:
        """The exit code if it has ended (minus the signal, if by one), else None.

        The rest of its group is killed first, while the dead leader still keeps the group's id from
        being reused.
        """
        if self._process.returncode is None and self._has_ended():
            self.signal_group(signal.SIGKILL)
            self._process.wait()
            self.ended = time.monotonic()
        return self._process.returncode

    def signal(self, number: int) -> None:
        """Send a signal to the leader, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def signal_group(self, number: int) -> None:
        """Send a signal to the whole group, if its leader has not been waited for."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def give_way(self, wanted: bool) -> None:
        """Lower the CPU priority of the group, or restore it."""
        if wanted != self._yields and self.poll() is None:
            own = os.getpriority(os.PRIO_PROCESS, 0)
            niceness = min(19, own + _YIELD) if wanted else own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.setpriority(os.PRIO_PGRP, self.pid, niceness)
                self._yields = wanted

    def _has_ended(self) -> bool:
        seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return seen is not None


def may_give_way() -> bool:
    """Whether a lowered CPU priority can be restored; else it must not be lowered."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    allowed, _ = resource.getrlimit(resource.RLIMIT_NICE)
    # The limit counts from 20 down: 20 - limit is the lowest niceness that may be asked for.
    return os.geteuid() == 0 or allowed == resource.RLIM_INFINITY or 20 - allowed <= own


def mark_of(uid: str, directory: Path) -> dict[str, str]:
    """Return the environment variable that marks all processes of a pipeline, and no others."""
    return {_MARK: f"{uid} {directory.resolve()}"}


def is_marked(pid: int, mark: Mapping[str, str]) -> bool:
    """Whether a process belongs to a pipeline. One whose environment is unreadable does not."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return all(f"{name}={value}".encode() in environment for name, value in mark.items())


def marked_processes(mark: Mapping[str, str]) -> Iterator[int]:
    """Yield all live processes of a pipeline, including those of earlier supervisors."""
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and is_marked(int(entry.name), mark):
            yield int(entry.name)


def end_leftovers(mark: Mapping[str, str], patience: float = 10.0) -> int:
    """Kill processes of an earlier supervisor and wait for their end; returns how many.

    Raises:
        TimeoutError: a process does not go away.
    """
    found: set[int] = set()
    deadline = time.monotonic() + patience
    while left := set(marked_processes(mark)):
        found |= left
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(left)} of an earlier run cannot be killed")
        time.sleep(0.05)
    return len(found)
