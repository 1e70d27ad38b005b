import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.harness import wait_for

from tandem.local.processes.children import (
    Child,
    end_leftovers,
    is_marked,
    mark_of,
    marked_processes,
    may_give_way,
)
from tandem.local.store import files

PROGRAM = """\
import subprocess, sys, threading, time
print("ready", flush=True)
if "helper" in sys.argv:
    subprocess.Popen(["/bin/sleep", "600"])
threading.Thread(target=time.sleep, args=(600,)).start()
"""

Started = Callable[..., Child]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    children: list[Child] = []
    mark = mark_of("uid", tmp_path)

    def start(*arguments: str) -> Child:
        command = [sys.executable, "-c", PROGRAM, *arguments]
        children.append(Child(command, tmp_path / "log", mark))
        wait_for(lambda: "ready" in (tmp_path / "log").read_text())
        return children[-1]

    yield start
    for child in children:
        child.signal_group(signal.SIGKILL)
        wait_for(lambda child=child: child.poll() is not None)  # type: ignore[misc]


def test_killing_child_kills_its_descendants(started: Started, tmp_path: Path) -> None:
    mark = mark_of("uid", tmp_path)
    child = started("helper")
    wait_for(lambda: len(list(marked_processes(mark))) == 2)
    assert child.poll() is None
    child.signal(signal.SIGKILL)
    wait_for(lambda: child.poll() == -signal.SIGKILL)
    wait_for(lambda: not list(marked_processes(mark)))
    assert child.ended is not None
    child.signal(signal.SIGKILL)
    child.signal_group(signal.SIGKILL)


def test_leftover_processes_are_found_by_their_mark(started: Started, tmp_path: Path) -> None:
    child = started("helper")
    other = mark_of("other uid", tmp_path)
    assert end_leftovers(other) == 0
    assert not is_marked(os.getpid(), other)
    assert child.poll() is None
    # The helper is not ours to wait for; the process that started it is a zombie until we do.
    assert end_leftovers(mark_of("uid", tmp_path)) >= 1
    wait_for(lambda: child.poll() == -signal.SIGKILL)


def test_niceness_applies_to_all_threads_and_is_restored(
    started: Started,
) -> None:
    child = started("helper")
    own = os.getpriority(os.PRIO_PROCESS, 0)
    child.give_way(True)
    wait_for(lambda: _niceness(child.pid) == {min(19, own + 10)})
    child.give_way(False)
    assert _niceness(child.pid) == {own if may_give_way() else min(19, own + 10)}


def _niceness(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task")
    stats = [(task / "stat").read_text().rpartition(")")[2].split() for task in tasks.iterdir()]
    return {int(fields[16]) for fields in stats}


def test_small_file_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "file"
    torn: list[bytes] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            if path.exists():
                content = path.read_bytes()
                if len(set(content)) != 1 or len(content) != 100_000:
                    torn.append(content)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(100):
        files.write(path, bytes([turn]) * 100_000)
    over.set()
    reader.join()
    assert torn == []
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_growing_files_are_rotated(tmp_path: Path) -> None:
    lines, log = tmp_path / "lines", tmp_path / "log"
    for number in range(100):
        files.append(lines, f"{number:09d}", most=200)
    assert lines.stat().st_size <= 210
    kept = (tmp_path / "lines.1").read_text() + lines.read_text()
    assert kept.splitlines()[-1] == f"{99:09d}"
    with log.open("ab") as growing:
        for number in range(100):
            growing.write(f"{number:09d}\n".encode())
            growing.flush()
            files.cut_short(log, most=200)
    assert log.stat().st_size < 200
    assert (tmp_path / "log.1").stat().st_size == 200
