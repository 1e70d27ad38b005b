"""What processes cost: processor time and memory, by what they are, sampled while they run."""

import contextlib
import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from bench.streaming.feeder import now

_SERVICES = ("split", "merge", "replica")


@dataclass(frozen=True)
class Usage:
    """One process at one moment."""

    kind: str
    name: str
    """Name of the member, or of the kind where it has none."""
    cpu: float
    """Seconds of processor time since its start, in user and system mode."""
    rss: int
    pss: int
    """Resident bytes, where shared pages count for each process by its share; 0 if not asked."""


@dataclass(frozen=True)
class Sample:
    """All processes at one moment."""

    at: float
    usages: Mapping[int, Usage]


def look_at(root: int, *, with_pss: bool = False) -> dict[int, Usage]:
    """A process and all that it has started, directly or not."""
    try:
        top = psutil.Process(root)
        tree = [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return {}
    found = {}
    for process in tree:
        try:
            found[process.pid] = _usage(process, with_pss)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def _usage(process: psutil.Process, with_pss: bool) -> Usage:
    with process.oneshot():
        kind, name = _kind_of(process)
        times = process.cpu_times()
        rss = process.memory_info().rss
    pss = process.memory_full_info().pss if with_pss else 0
    return Usage(kind, name, times.user + times.system, rss, pss)


def _kind_of(process: psutil.Process) -> tuple[str, str]:
    """What a process is, by its command line; a JVM belongs to the driver that started it."""
    command = process.cmdline()
    for service in _SERVICES:
        if f"tandem_runtime.services.{service}" in command:
            return service, command[command.index("--name") + 1]
    if process.name() == "java":
        parent = process.parent()
        above = _kind_of(parent)[1] if parent is not None else ""
        return "JVM", f"{above} JVM".strip()
    if "run" in command and any(part.endswith("tandem") for part in command):
        return "supervisor", "supervisor"
    return "driver", "driver"


class Sampler:
    """Looks at a tree of processes every so often, in a thread of its own."""

    def __init__(self, root: int, period: float = 0.25, *, with_pss: bool = False) -> None:
        self.samples: list[Sample] = []
        self._root = root
        self._period = period
        self._with_pss = with_pss
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            usages = look_at(self._root, with_pss=self._with_pss)
            if usages:
                self.samples.append(Sample(now(), usages))
            self._stop.wait(self._period)

    def cpu_between(self, start: float, end: float) -> dict[str, float]:
        """Seconds of processor time by kind; between two samples it is taken to rise evenly.

        What a process used after its last sample is not counted.
        """
        used: dict[str, float] = defaultdict(float)
        for pid, kind in self._kinds().items():
            used[kind] += self._cpu_at(pid, end) - self._cpu_at(pid, start)
        return dict(used)

    def _kinds(self) -> dict[int, str]:
        return {pid: usage.kind for each in self.samples for pid, usage in each.usages.items()}

    def _cpu_at(self, pid: int, at: float) -> float:
        points = [(each.at, each.usages[pid].cpu) for each in self.samples if pid in each.usages]
        place = bisect_left(points, (at, 0.0))
        if place == 0:
            # A process that was not there yet had used nothing.
            return points[0][1] if points[0][0] == self.samples[0].at else 0.0
        if place == len(points):
            return points[-1][1]
        (earlier, before), (later, after) = points[place - 1], points[place]
        return before + (after - before) * (at - earlier) / (later - earlier)


def cpu_during(root: int, seconds: float) -> dict[str, float]:
    """Seconds of processor time by kind, of the processes that live through a stretch of time."""
    before = look_at(root)
    time.sleep(seconds)
    after = look_at(root)
    used: dict[str, float] = defaultdict(float)
    for pid in before.keys() & after.keys():
        used[after[pid].kind] += after[pid].cpu - before[pid].cpu
    return dict(used)


def directory_bytes(directory: Path) -> int:
    """Bytes of all files below a directory, while they come and go."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).stat().st_size
    return total
