"""Who starts Spark leaves half of the cores to others, and has all of them afterwards."""

import os
import subprocess
import threading

import pytest

from tandem_runtime.services.cpu_priority import on_half_the_cores

ALLOWED = os.sched_getaffinity(0)
HALF = set(sorted(ALLOWED)[len(ALLOWED) // 2 :])


def cores_of(pid: int) -> set[int]:
    return os.sched_getaffinity(pid)


def test_new_processes_and_threads_regain_all_cores_at_end() -> None:
    seen: list[set[int]] = []
    go_on = threading.Event()

    def work() -> None:
        seen.append(os.sched_getaffinity(0))
        go_on.wait()
        seen.append(os.sched_getaffinity(0))

    with on_half_the_cores():
        assert cores_of(0) == HALF
        thread = threading.Thread(target=work)
        thread.start()
        child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
        assert cores_of(child.pid) == HALF
    go_on.set()
    thread.join()
    try:
        assert (cores_of(0), cores_of(child.pid)) == (ALLOWED, ALLOWED)
        assert seen == [HALF, ALLOWED]
    finally:
        child.communicate()


def test_all_cores_are_restored_after_error() -> None:
    with pytest.raises(RuntimeError), on_half_the_cores():
        raise RuntimeError
    assert cores_of(0) == ALLOWED
