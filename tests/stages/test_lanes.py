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


def test_lanes_run_concurrently_and_stages_of_lane_sequentially() -> None:
    live = [
        shell("a", f"touch a; {until('[ -e b ]')}; touch a-ended"),
        shell("c", "[ -e a-ended ]"),
    ]
    beside = [shell("b", f"touch b; {until('[ -e a ]')}")]
    ended = run_lanes(live, beside, io.StringIO())
    assert {each.name: each.code for each in ended} == {"a": 0, "b": 0, "c": 0}


def test_background_output_is_shown_whole_between_stages(
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
def test_failure_starts_no_further_stage_and_running_ones_finish(fails: str) -> None:
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


def test_all_stages_run_if_a_failure_stops_none() -> None:
    live = [shell("wrong", "exit 3"), shell("after", ":")]
    ended = run_lanes(live, [shell("beside", "exit 4")], io.StringIO(), keep_going=True)
    assert {each.name: each.code for each in ended} == {"wrong": 3, "beside": 4, "after": 0}


def test_a_kept_failure_is_the_commands_exit_code_and_targets_take_variables() -> None:
    Path("Makefile").write_text("unit:\n\t@false\nsmoke:\n\t@touch smoke-$(SEED)\n")
    assert start("--keep-going", "unit", "smoke SEED=2").wait(30) == 1
    assert Path("smoke-2").exists()


@pytest.mark.parametrize("rule", ["unit:\n\t@false\nsmoke:\n", "smoke:\n\t@false\nunit:\n"])
def test_failed_stage_of_either_lane_fails_command(rule: str) -> None:
    Path("Makefile").write_text(f".PHONY: unit smoke\n{rule}")
    assert start().wait(30) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_leaves_no_process(number: int) -> None:
    Path("Makefile").write_text("unit smoke:\n\t@touch $@; sleep 1000; true\n")
    run = start()
    wait_for(lambda: Path("unit").exists() and Path("smoke").exists())
    started = psutil.Process(run.pid).children(recursive=True)
    assert len(started) >= 4
    run.send_signal(number)
    assert run.wait(30) != 0
    assert not psutil.wait_procs(started, 10)[1]


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    wanted = arguments or ("unit", "--beside", "smoke")
    command = [sys.executable, "-m", "tests.stages", *wanted]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
