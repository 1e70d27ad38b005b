"""Programs that run in pods, here among processes of this machine that carry a pod's mark."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.remote.stage import Stage

from tandem.kube.kinds import Object
from tandem.kube.port import Ran
from tandem.output.member_table import Missing
from tandem.remote.commands import SIGNAL_PROGRAM, signal_pod
from tandem_core.model.kubernetes_names import POD_UID_VARIABLE

SLEEPER = "import sys, time; print('up', flush=True); time.sleep(600)"


def sleeper(uid: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", SLEEPER]
    environment = {**os.environ, POD_UID_VARIABLE: uid}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def start() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def make(uid: str) -> subprocess.Popen[bytes]:
        started.append(sleeper(uid))
        return started[-1]

    yield make
    for process in started:
        process.kill()
        process.communicate()


def send(uid: str, number: int) -> list[int]:
    command = [sys.executable, "-I", "-S", "-c", SIGNAL_PROGRAM]
    mark = f"{POD_UID_VARIABLE}={uid}"
    environment = {**os.environ, POD_UID_VARIABLE: uid}
    done = subprocess.run(
        [*command, mark, str(number)], env=environment, capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def await_state(pid: int, wanted: Callable[[str], bool]) -> None:
    deadline = monotonic() + 120
    while not wanted(state(pid)):
        assert monotonic() < deadline
        sleep(0.01)


Start = Callable[[str], subprocess.Popen[bytes]]


def test_only_marked_processes_are_signalled(start: Start) -> None:
    uid, other = uuid.uuid4().hex, uuid.uuid4().hex
    marked, unmarked = [start(uid), start(uid)], start(other)
    pids = sorted(process.pid for process in marked)
    assert send(uid, signal.SIGSTOP) == pids
    for pid in pids:
        await_state(pid, lambda found: found == "T")
    assert state(unmarked.pid) != "T"
    assert send(uid, signal.SIGCONT) == pids
    for pid in pids:
        await_state(pid, lambda found: found != "T")
    assert send(uid, signal.SIGKILL) == pids
    assert [process.wait(30) for process in marked] == [-signal.SIGKILL] * 2
    assert unmarked.poll() is None


def test_mark_must_match_completely(start: Start) -> None:
    uid = uuid.uuid4().hex
    longer = start(f"{uid}0")
    assert send(uid, signal.SIGKILL) == []
    assert longer.poll() is None


def test_signal_pod_returns_process_ids() -> None:
    stage = Stage()
    pod = stage.cast().pods[0]
    assert signal_pod(stage.shell, pod, signal.SIGSTOP) == (7, 41)
    assert stage.shell.signalled == [(pod.name, signal.SIGSTOP)]


def test_signalling_pod_without_processes_raises_missing() -> None:
    class Empty:
        def run(self, pod: Object, command: Sequence[str]) -> Ran:
            return Ran("\n", "container not found")

    with pytest.raises(Missing, match="container not found"):
        signal_pod(Empty(), Stage().cast().pods[0], signal.SIGKILL)
