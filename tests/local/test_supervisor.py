"""The supervisor over real processes and real signals; only the members are stubs."""

import shutil
import signal
import time
from collections.abc import Callable

from tests.local.harness import Run, wait_for

from tandem.local.store.intent_file import read_intent, write_intent
from tandem.local.store.requests import send_request
from tandem.local.supervisor import FRESH, STOPPED
from tandem_cli import main
from tandem_core.contract.intent import PastChange
from tandem_core.contract.intent_text import FUNCTION_PREFIX
from tandem_core.model.states import MemberState, Phase, Role

Start = Callable[..., Run]


def test_failures_are_recovered_and_no_process_is_left(start: Start) -> None:
    run = start()
    run.wait_whole()
    assert [member.name for member in run.status().members] == [
        "split-0",
        "split-1",
        "pair-0-a",
        "pair-0-b",
        "merge-0",
        "merge-1",
    ]
    assert run.status().phase is Phase.RUNNING
    assert run.status().counters.rows_in == 100

    _kill_the_primary(run)
    _freeze_the_secondary(run)
    _crash_the_lead(run)
    _displace_a_replica(run)
    _lose_a_splits_volume(run)

    run.signal(signal.SIGINT)
    assert run.wait() == 0
    assert run.processes() == set()
    assert "100 rows in, 70 rows out, 2 failovers" in run.log.read_text()
    assert {member.state for member in run.status().members} == {MemberState.GONE}


def _primary(run: Run) -> str:
    return next(m.name for m in run.status().members if m.role is Role.PRIMARY)


def _kill_the_primary(run: Run) -> None:
    killed, pid, volume = _primary(run), run.pid(_primary(run)), run.volume(_primary(run))
    assert main(["kill", "pair-0/primary", "--dir", str(run.directory.path)]) == 0
    run.wait_restarted(killed, pid)
    run.wait_whole()
    wait_for(lambda: len(run.events()) == 3)
    assert run.events() == [
        ("Failover", "pair-0"),
        ("CatchUpStarted", "pair-0"),
        ("Paired", "pair-0"),
    ]
    assert _primary(run) != killed
    assert run.volume(killed) == volume
    assert run.status().counters.take_overs == 1


def _freeze_the_secondary(run: Run) -> None:
    frozen = next(m.name for m in run.status().members if m.role is Role.SECONDARY)
    pid, group = run.pid(frozen), run.processes()
    assert main(["pause", frozen, "--dir", str(run.directory.path)]) == 0
    wait_for(lambda: run.member(frozen).state is MemberState.SILENT)
    run.wait_restarted(frozen, pid)
    run.wait_whole()
    # Its helper, which stands for the JVM, was frozen with it and is gone as well.
    assert len(group - run.processes()) == 2


def _crash_the_lead(run: Run) -> None:
    before, led = run.events(), run.roll().lead
    other = "split-1" if led == "split-0" else "split-0"
    assert main(["kill", "lead", "--dir", str(run.directory.path)]) == 0
    wait_for(lambda: run.events()[len(before) :] == [("LeadChanged", other)])
    run.wait_whole()


def _displace_a_replica(run: Run) -> None:
    displaced, volume, pid = _primary(run), run.volume(_primary(run)), run.pid(_primary(run))
    run.order(displaced, "exit 10")
    run.wait_restarted(displaced, pid)
    run.wait_whole()
    assert run.volume(displaced) != volume
    assert run.directory.gone_mark(volume).exists()
    assert not run.directory.volume(volume).exists()


def _lose_a_splits_volume(run: Run) -> None:
    volume, pid = run.volume("split-0"), run.pid("split-0")
    shutil.rmtree(run.directory.volume(volume))
    run.wait_restarted("split-0", pid)
    run.wait_whole()
    assert run.volume("split-0") != volume
    assert run.directory.gone_mark(volume).exists()


def test_members_die_with_supervisor_and_next_run_resumes(start: Start) -> None:
    first = start()
    first.wait_whole()
    names = [member.name for member in first.status().members]
    volumes = {name: first.volume(name) for name in names}
    primary = _primary(first)
    first.signal(signal.SIGKILL)
    first.wait()
    wait_for(lambda: first.processes() == set())

    second = start()
    second.wait_whole()
    assert {name: second.volume(name) for name in names} == volumes
    assert _primary(second) == primary
    assert second.events() == []
    second.signal(signal.SIGTERM)
    assert second.wait() == 0
    assert second.processes() == set()


def test_warm_spare_replaces_killed_replica(start: Start) -> None:
    run = start(spares=1)
    run.wait_whole()
    dead, warm = run.volume("pair-0-b"), run.volume("spare-0")
    spare_pid = run.pid("spare-0")
    assert main(["kill", "pair-0-b", "--dir", str(run.directory.path)]) == 0
    wait_for(lambda: run.directory.gone_mark(dead).exists())
    wait_for(lambda: run.member("pair-0-b").pid == spare_pid)
    run.wait_whole()
    assert run.volume("pair-0-b") == warm
    assert run.volume("spare-0") not in {dead, warm}
    assert run.member("spare-0").state is MemberState.STANDBY


def test_splits_and_merges_come_and_go_as_requested(start: Start) -> None:
    run = start()
    run.wait_whole()
    volume = run.volume("split-1")
    send_request(run.directory, {"spec.splits.count": 1, "spec.merges.count": 2})
    wait_for(lambda: "split-1" not in names(run))
    assert run.directory.gone_mark(volume).exists()
    assert not run.directory.volume(volume).exists()
    assert "split-1" not in run.roll().entries
    wait_for(lambda: {"merge-2", "merge-3"} <= names(run) and run.is_whole())
    assert run.status().observed_generation == 2

    here = ["--dir", str(run.directory.path)]
    assert main(["scale", "splits=3", "merges=1", "--wait", "60s", *here]) == 0
    assert names(run) >= {"split-1", "split-2"}
    assert not names(run) & {"merge-2", "merge-3"}
    wait_for(run.is_whole)
    assert run.volume("split-1") != volume
    assert run.status().observed_generation == 3
    assert {name for _, name in run.events()} <= {"split-0"}


def test_change_goes_on_although_an_old_routing_function_cannot_be_removed(start: Start) -> None:
    run = start()
    run.wait_whole()
    (run.directory.path / f"{FUNCTION_PREFIX}old").mkdir()
    send_request(run.directory, {"spec.splits.count": 3})
    wait_for(lambda: "split-2" in names(run), 20)
    wait_for(run.is_whole)
    intent = read_intent(run.directory.intent)
    assert intent is not None
    assert intent.splits == 3


def test_change_whose_supervisor_died_before_its_event_is_told_of_once(start: Start) -> None:
    first = start()
    first.wait_whole()
    first.signal(signal.SIGKILL)
    first.wait()
    wait_for(lambda: first.processes() == set())
    intent = read_intent(first.directory.intent)
    assert intent is not None
    past = PastChange(2, 1, 1, began_ms=1000, ended_ms=2000, abandoned="no room")
    told = intent.replace(version=intent.version + 1, history=(past,))
    write_intent(first.directory.intent, told)
    for _ in range(2):
        run = start()
        run.wait_whole()
        assert run.events() == [("GenerationAbandoned", "generation 2")]
        run.signal(signal.SIGTERM)
        assert run.wait() == 0


def names(run: Run) -> set[str]:
    return {member.name for member in run.status().members}


def test_member_that_is_leaving_is_dismissed_again_by_the_next_supervisor(start: Start) -> None:
    first = start()
    first.wait_whole()
    volume = first.volume("split-1")
    first.order("split-1", "stubborn")
    wait_for(lambda: not (first.directory.path / "stub" / "split-1.do").exists())
    send_request(first.directory, {"spec.splits.count": 1})
    wait_for(lambda: first.status().observed_generation == 2)
    assert "split-1" in names(first)
    first.signal(signal.SIGKILL)
    first.wait()
    wait_for(lambda: first.processes() == set())

    second = start()
    wait_for(lambda: second.directory.gone_mark(volume).exists())
    wait_for(lambda: "split-1" not in names(second))


def test_paused_supervisor_kills_no_member_on_resume(start: Start) -> None:
    run = start()
    run.wait_whole()
    before = run.processes()
    run.signal(signal.SIGSTOP)
    written, stopped = run.directory.status.stat().st_mtime, time.monotonic()
    # Longer than a hung member is waited for.
    wait_for(lambda: time.monotonic() - stopped > STOPPED + 0.5)
    run.signal(signal.SIGCONT)
    wait_for(lambda: run.directory.status.stat().st_mtime > written + STOPPED + FRESH + 1)
    assert run.processes() == before
    assert run.events() == []


def test_completed_pipeline_exits_and_is_not_rerun(start: Start) -> None:
    run = start()
    run.wait_whole()
    (run.directory.path / "stub" / "completed").touch()
    assert run.wait() == 0
    assert run.status().phase is Phase.COMPLETED
    assert run.status().counters.take_overs == 0
    assert run.events() == []
    assert run.processes() == set()
    again = start()
    assert again.wait() == 0
    assert again.log.read_text().count("completed: 100 rows in, 70 rows out") == 2


def test_refusal_ends_run_and_second_supervisor_does_not(start: Start) -> None:
    run = start()
    run.wait_whole()
    other = start()
    assert other.wait() == 1
    assert "another `tandem run`" in other.log.read_text()
    assert run.is_whole()
    run.order("split-1", "refuse")
    assert run.wait() == 3
    assert "Broken: split-1: the query divides by zero" in run.log.read_text()
    assert run.status().phase is Phase.HALTED
    assert run.processes() == set()


def test_run_ends_after_given_time(start: Start) -> None:
    run = start("1.5")
    assert run.wait() == 0
    assert run.processes() == set()


def test_second_interrupt_kills_stubborn_member(start: Start) -> None:
    run = start()
    run.wait_whole()
    run.order("merge-1", "stubborn")
    wait_for(lambda: not (run.directory.path / "stub" / "merge-1.do").exists())
    run.signal(signal.SIGINT)
    wait_for(lambda: len(run.processes()) == 1)
    run.signal(signal.SIGINT)
    assert run.wait(5) == 130
    assert run.processes() == set()
