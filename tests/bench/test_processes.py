"""Processor time of a tree of processes, also of those that end while they are looked at."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.streaming.processes import Sample, Sampler, Usage, look_at

STEP = 0.02
"""The system counts what ended children used in steps of 10 ms, user and system time each."""

# Starts the command that it is given, and waits for it when it has ended.
PARENT = """
import json, subprocess, sys
command = [sys.executable, *json.loads(sys.argv[1])]
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.stdout.readline().decode(), end="", flush=True)
sys.stdin.readline()
child.stdin.close()
print(child.stdout.read().decode(), end="", flush=True)
child.wait()
print("waited for", flush=True)
sys.stdin.readline()
"""
WORK = """
import sys, time
print("here", flush=True)
sys.stdin.readline()
begun = time.process_time()
while time.process_time() < begun + 0.3:
    pass
print(time.process_time(), flush=True)
"""
HELPED = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {WORK!r}], check=True)
"""
HELPED_LATER = f"""
import subprocess, sys
print("here", flush=True)
sys.stdin.readline()
subprocess.run([sys.executable, "-c", {WORK!r}], check=True)
"""


class Family:
    """A parent whose only child is at work when it is told so, and then ends."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        self._process = process

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def let_child_work(self) -> list[str]:
        """What it says until it has ended and was waited for."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return list(iter(self.hear, "waited for"))


@contextmanager
def family(code: str, module: str) -> Iterator[Family]:
    """Code runs with the command line of a member."""
    command = ["-c", code, "-m", module, "--name", "member-0"]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, json.dumps(command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            found = Family(process)
            assert found.hear() == "here"
            yield found
        finally:
            process.kill()


def looked_at_twice(root: int) -> Sampler:
    """Samples at the beginning and at the end only."""
    return Sampler(root, period=1000)


@pytest.mark.parametrize("module", ["tandem_runtime.services.split", "elsewhere.split"])
def test_ended_process_is_counted_until_its_end(module: str) -> None:
    with family(WORK, module) as found, looked_at_twice(found.pid) as sampler:
        (used,) = map(float, found.let_child_work())
    (before,) = [each.cpu for each in sampler.samples[0].usages.values() if each.kind == "split"]
    assert sampler.cpu()["split"] >= used - before - STEP


def test_unsampled_child_is_charged_to_its_parent() -> None:
    with (
        family(HELPED_LATER, "tandem_runtime.services.merge") as found,
        looked_at_twice(found.pid) as sampler,
    ):
        told = found.let_child_work()
    assert sampler.cpu()["merge"] >= float(told[-1]) - STEP


def test_child_process_belongs_to_its_member() -> None:
    with family(HELPED, "tandem_runtime.services.replica") as found:
        usages = look_at(found.pid).values()
        found.let_child_work()
    kinds = sorted((each.kind, each.name) for each in usages)
    assert kinds == [("driver", "driver"), *2 * [("replica", "member-0")]]


def test_cpu_time_is_finer_than_clock_ticks() -> None:
    before = time.process_time()
    found = look_at(os.getpid())[os.getpid()]
    assert before <= found.cpu <= time.process_time()


def samples(*moments: dict[int, Usage]) -> Sampler:
    sampler = Sampler(0)
    sampler.samples += [Sample(float(at), usages) for at, usages in enumerate(moments)]
    return sampler


def usage(kind: str, cpu: float, reaped: float = 0.0, parent: int = 1) -> Usage:
    return Usage(kind, kind, parent, cpu, reaped)


def test_ended_jvm_is_counted_as_jvm() -> None:
    sampler = samples(
        {2: usage("replica", 1.0), 3: usage("JVM", 10.0, parent=2)},
        {2: usage("replica", 1.5), 3: usage("JVM", 14.0, parent=2)},
        {2: usage("replica", 2.0, reaped=15.0)},
    )
    assert sampler.cpu() == {"replica": 1.0, "JVM": 5.0}


def test_new_processes_count_from_zero() -> None:
    sampler = samples(
        {1: usage("supervisor", 1.0, parent=0)},
        {1: usage("supervisor", 1.0, parent=0), 2: usage("split", 3.0)},
        {1: usage("supervisor", 1.0, parent=0), 2: usage("split", 4.0)},
    )
    assert sampler.cpu() == {"supervisor": 0.0, "split": 4.0}


def test_unsampled_time_of_two_ended_processes_is_divided() -> None:
    sampler = samples(
        {
            1: usage("supervisor", 0.0, parent=0),
            2: usage("split", 5.0),
            3: usage("merge", 1.0),
        },
        {1: usage("supervisor", 0.0, reaped=6.5, parent=0)},
    )
    assert sampler.cpu() == {"supervisor": 0.0, "split": 0.25, "merge": 0.25}
