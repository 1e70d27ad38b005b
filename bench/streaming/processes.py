"""Samples processor time and memory of processes, by kind."""

import contextlib
import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from bench.streaming.feeder import now

_SERVICES = ("split", "merge", "replica")
_CPU_CLOCK = 2
"""Number of a process's CPU clock: nanoseconds of all its threads, including ended ones."""
_SPARSE_SECONDS = 2.0


@dataclass(frozen=True)
class Usage:
    """One process at one moment."""

    kind: str
    name: str
    """Name of the member, or of the kind if it has none."""
    parent: int
    cpu: float
    """Seconds of processor time since its start, in user and system mode."""
    reaped: float
    """Seconds used by children that ended and were waited for."""
    rss: int = 0
    pss: int = 0
    """Resident bytes, with shared pages divided among their processes; 0 if not measured."""


@dataclass(frozen=True)
class Sample:
    """All processes at one moment."""

    at: float
    usages: Mapping[int, Usage]


def look_at(root: int, *, with_pss: bool = False) -> dict[int, Usage]:
    """The usage of a process and all its descendants."""
    try:
        top = psutil.Process(root)
        tree = [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return {}
    found: dict[int, Usage] = {}
    for process in tree:
        # Gone meanwhile, or a zombie: the parent that waits for it gets its processor time.
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
            above = found.get(process.ppid())
            found[process.pid] = _usage(process, above, with_pss)
    return found


def _usage(process: psutil.Process, above: Usage | None, with_pss: bool) -> Usage:
    with process.oneshot():
        kind, name = _kind_of(process, above)
        times = process.cpu_times()
        parent = process.ppid()
        rss = process.memory_info().rss
    pss = process.memory_full_info().pss if with_pss else 0
    reaped = times.children_user + times.children_system
    return Usage(kind, name, parent, _cpu_of(process.pid), reaped, rss, pss)


def _cpu_of(pid: int) -> float:
    """Processor time as in /proc/PID/stat, but not in steps of 10 ms.

    Raises:
        ProcessLookupError: there is no such process.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
    except OSError as problem:
        raise ProcessLookupError(pid) from problem


def _kind_of(process: psutil.Process, above: Usage | None) -> tuple[str, str]:
    """Classify a process by its command line; an unknown one belongs to its parent."""
    command = process.cmdline()
    service = _service_of(command)
    if service is not None:
        return service, command[command.index("--name") + 1]
    if process.name() == "java":
        return "JVM", f"{above.name if above else ''} JVM".strip()
    if "run" in command and any(part.endswith("tandem") for part in command):
        return "supervisor", "supervisor"
    return (above.kind, above.name) if above else ("driver", "driver")


def _service_of(command: Sequence[str]) -> str | None:
    """The service that `python -m` runs, from any package."""
    modules = (module for option, module in pairwise(command) if option == "-m")
    names = (module.rpartition(".")[2] for module in modules)
    return next((name for name in names if name in _SERVICES), None)


class Sampler:
    """Samples a tree of processes periodically, in a thread of its own."""

    def __init__(self, root: int, period: float = 0.25, *, with_pss: bool = False) -> None:
        self.samples: list[Sample] = []
        self._root = root
        self._period = period
        self._with_pss = with_pss
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> "Sampler":
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            self._look()

    def _look(self) -> None:
        usages = look_at(self._root, with_pss=self._with_pss)
        if usages:
            self.samples.append(Sample(now(), usages))

    def cpu_between(self, start: float, end: float) -> dict[str, float]:
        """Seconds of processor time by kind, interpolated between samples.

        Time used after a process's last sample counts too, once its parent has waited for it.
        """
        used: dict[str, float] = defaultdict(float)
        for pid, kind in self._kinds().items():
            used[kind] += self._rise(pid, _cpu, start, end)
            for of_kind, unseen in self._unseen_of_children(pid, kind, start, end):
                used[of_kind] += unseen
        return dict(used)

    def cpu(self) -> dict[str, float]:
        """Seconds of processor time by kind, from the first sample to the last."""
        if not self.samples:
            return {}
        return self.cpu_between(self.samples[0].at, self.samples[-1].at)

    def _unseen_of_children(
        self, pid: int, kind: str, start: float, end: float
    ) -> Iterator[tuple[str, float]]:
        """Processor time of children after their last samples, and of children without a sample.

        A parent knows only the sum, which is divided evenly among the children that ended. Children
        without a sample belong to their parent.
        """
        ended = [each for each in self._ended_between(start, end) if each.parent == pid]
        seen = sum(each.cpu + each.reaped for each in ended)
        unseen = max(0.0, self._rise(pid, _reaped, start, end) - seen)
        kinds = [each.kind for each in ended] or [kind]
        for each in kinds:
            yield each, unseen / len(kinds)

    def _ended_between(self, start: float, end: float) -> Iterator[Usage]:
        """The last samples of processes that were gone by the end."""
        last = {pid: each for each in self.samples for pid in each.usages}
        until = max((each.at for each in self.samples if each.at <= end), default=start)
        for pid, sample in last.items():
            if start <= sample.at < until:
                yield sample.usages[pid]

    def _kinds(self) -> dict[int, str]:
        return {pid: usage.kind for each in self.samples for pid, usage in each.usages.items()}

    def _rise(self, pid: int, of: Callable[[Usage], float], start: float, end: float) -> float:
        return self._at(pid, of, end) - self._at(pid, of, start)

    def _at(self, pid: int, of: Callable[[Usage], float], at: float) -> float:
        points = [(each.at, of(each.usages[pid])) for each in self.samples if pid in each.usages]
        place = bisect_left(points, (at, 0.0))
        if place == 0:
            # A process that did not exist yet had used nothing.
            return points[0][1] if points[0][0] == self.samples[0].at else 0.0
        if place == len(points):
            return points[-1][1]
        (earlier, before), (later, after) = points[place - 1], points[place]
        return before + (after - before) * (at - earlier) / (later - earlier)


def _cpu(usage: Usage) -> float:
    return usage.cpu


def _reaped(usage: Usage) -> float:
    return usage.reaped


def cpu_during(root: int, seconds: float) -> dict[str, float]:
    """Seconds of processor time by kind, during the next `seconds`.

    Samples are few, so that sampling takes no time from the sampled processes.
    """
    with Sampler(root, period=_SPARSE_SECONDS) as sampler:
        time.sleep(seconds)
    return sampler.cpu()


def directory_bytes(directory: Path) -> int:
    """Bytes of all files below a directory, which may change meanwhile."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).stat().st_size
    return total
