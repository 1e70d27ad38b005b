import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.local.harness import wait_for
from tests.stages.lanes import Stage, run_lanes

ROOT = Path(__file__).parents[2]


def shell(name: str, script: str) -> Stage:
    return Stage(name, ["sh", "-c", script])


def until(condition: str) -> str:
    return f"until {condition}; do sleep 0.01; done"


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_lanes_run_at_the_same_time_and_the_stages_of_a_lane_do_not() -> None:
    live = [
        shell("a", f"touch a; {until('[ -e b ]')}; touch a-ended"),
        shell("c", "[ -e a-ended ]"),
    ]
    beside = [shell("b", f"touch b; {until('[ -e a ]')}")]
    ended = run_lanes(live, beside, io.StringIO())
    assert {each.name: each.code for each in ended} == {"a": 0, "b": 0, "c": 0}


def test_what_ran_beside_is_shown_whole_and_between_stages(
    capfd: pytest.CaptureFixture[str],
) -> None:
    live = [
        shell("a", f"echo begun; {until('[ -e begun ]')}; echo ended"),
        shell("c", f"{until('[ -e second ]')}; echo last"),
    ]
    beside = [
        shell("b", "echo one; echo two >&2"),
        shell("d", f"touch begun; echo three; {until('[ -e go ]')}; echo four; touch second"),
    ]
    live.insert(1, shell("go", "touch go"))
    run_lanes(live, beside, sys.stdout)
    said = [line.partition(" after")[0] for line in capfd.readouterr().out.splitlines()]
    assert said[:6] == ["begun", "ended", "== a passed", "one", "two", "== b passed"]
    assert "".join(said).index("three") + len("three") == "".join(said).index("four")


@pytest.mark.parametrize("fails", ["live", "beside"])
def test_after_a_failure_nothing_begins_and_what_runs_comes_to_its_end(fails: str) -> None:
    wrong = [
        shell("wrong", f"echo $$ > pid; {until('[ -e slow ]')}; echo why; exit 3"),
        shell("after wrong", ":"),
    ]
    gone = "! kill -0 $(cat pid)"
    slow = [
        shell("slow", f"{until('[ -s pid ]')}; touch slow; {until(gone)}; touch whole"),
        shell("after slow", ":"),
    ]
    out = io.StringIO()
    ended = run_lanes(*((wrong, slow) if fails == "live" else (slow, wrong)), out)
    assert {each.name: each.code for each in ended} == {"wrong": 3, "slow": 0}
    assert Path("whole").exists()
    assert "wrong FAILED" in out.getvalue()
    # What runs live does not pass through our hands.
    assert ("why" in out.getvalue()) == (fails == "beside")


@pytest.mark.parametrize("rule", ["unit:\n\t@false\nsmoke:\n", "smoke:\n\t@false\nunit:\n"])
def test_a_failed_stage_of_either_lane_is_the_command_s_exit_code(rule: str) -> None:
    Path("Makefile").write_text(f".PHONY: unit smoke\n{rule}")
    assert start().wait(30) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nobody(number: int) -> None:
    Path("Makefile").write_text("unit smoke:\n\t@touch $@; sleep 1000; true\n")
    run = start()
    wait_for(lambda: Path("unit").exists() and Path("smoke").exists())
    started = psutil.Process(run.pid).children(recursive=True)
    assert len(started) >= 4
    run.send_signal(number)
    assert run.wait(30) != 0
    assert not psutil.wait_procs(started, 10)[1]


def start() -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.stages", "unit", "--beside", "smoke"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
