"""What the supervisor logs, beside what it did: events, intent and processes say the same."""

import json
from collections.abc import Callable
from typing import Any

from tests.local.harness import Run, wait_for

from tandem.local.store.intent_file import read_intent
from tandem_cli import main
from tandem_core.model.states import Role

Start = Callable[..., Run]
FIELDS = {"time", "level", "pipeline", "observed", "decision", "reason"}


def lines(run: Run) -> list[dict[str, Any]]:
    """The lines of turns that decided something."""
    path = run.directory.supervisor_log
    text = path.read_text() if path.exists() else ""
    return [line for line in map(json.loads, text.splitlines()) if "decision" in line]


def decided(logged: list[dict[str, Any]], action: str) -> list[str]:
    """What was done of one kind, in order."""
    steps = [step for line in logged for step in line["decision"].split("; ")]
    return [step.removeprefix(f"{action} ") for step in steps if step.startswith(f"{action} ")]


def version(run: Run) -> int:
    intent = read_intent(run.directory.intent)
    assert intent is not None
    return intent.version


def wait_turns(run: Run, count: int) -> None:
    """Wait until the status was written so many times: there were at least as many turns."""
    written: set[int] = set()

    def enough() -> bool:
        written.add(run.directory.status.stat().st_mtime_ns)
        return len(written) > count

    wait_for(enough)


def test_actions_are_logged_with_reason_and_quiet_pipeline_logs_nothing(
    start: Start,
) -> None:
    run = start()
    run.wait_whole()
    wait_for(lambda: decided(lines(run), "promote"))
    begun = lines(run)
    names = sorted(member.name for member in run.status().members)
    assert sorted(decided(begun, "start")) == names
    wait_turns(run, 10)
    assert lines(run) == begun

    killed = next(m.name for m in run.status().members if m.role is Role.PRIMARY)
    before, pid = version(run), run.pid(killed)
    assert main(["kill", "pair-0/primary", "--dir", str(run.directory.path)]) == 0
    run.wait_restarted(killed, pid)
    run.wait_whole()
    wait_for(lambda: len(run.events()) == 3)
    wait_for(lambda: len(decided(lines(run), "emit")) == 3)
    logged = lines(run)[len(begun) :]
    assert decided(logged, "restart") == [killed]
    assert decided(logged, "update intent") == [f"{before} → {version(run)}"]
    assert decided(logged, "emit") == [f"{event} {subject}" for event, subject in run.events()]
    (promotion,) = [line for line in logged if "promote" in line["decision"]]
    assert f"primary {killed} was killed (signal 9)" in promotion["observed"]
    for line in begun + logged:
        assert line.keys() >= FIELDS
        assert line["pipeline"] == "stubs"
        assert all(line.values())
    wait_turns(run, 10)
    assert lines(run)[len(begun) :] == logged


def test_wait_over_several_turns_is_logged_once(start: Start) -> None:
    run = start()
    run.wait_whole()
    begun, pid = len(lines(run)), run.pid("merge-1")
    # It has stopped in good order, so it is not started again at once.
    run.order("merge-1", "exit 0")
    run.wait_restarted("merge-1", pid)
    run.wait_whole()
    logged = lines(run)[begun:]
    assert [line["decision"] for line in logged] == ["defer merge-1", "restart merge-1"]
    assert all("merge-1 stopped cleanly" in line["observed"] for line in logged)
