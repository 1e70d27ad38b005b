"""Members die; delivery goes on by itself, and nothing is lost, doubled or disordered."""

import re
import signal
from pathlib import Path

from tests.laptop.harness import Run
from tests.laptop.output import Output, longest_gap
from tests.soak.pipeline import Rows, manifest
from tests.soak.plan import Target
from tests.soak.targets import who_is
from tests.soak.verdict import judge

from tandem_runtime.protocol.types import ProtocolSettings

TARGETS = (Target.LEAD, Target.FOLLOWER, Target.ACTIVE)
BEYOND = 8
"""Epochs that can only be delivered by those who are left: more than may be under way at once."""


def test_delivery_survives_kills_even_while_supervisor_is_stopped(tmp_path: Path) -> None:
    rows, output = Rows(tmp_path, seed=7), Output(tmp_path / "out")
    with Run(tmp_path, manifest(pairs=1, replicas=1)) as run:
        with rows.flowing(run):
            run.until(run.whole, 120, "everybody runs")
            for target in TARGETS:
                kill_and_see(run, output, target)
            for target in TARGETS:
                run.supervisor.send_signal(signal.SIGSTOP)
                kill_and_see(run, output, target, stopped=True)
        run.completes(120)
    verdict = judge(rows.expected(), output.table())
    assert verdict.good, verdict
    assert verdict.rows > 0


def test_restarted_driver_copies_missed_epochs_from_twin(tmp_path: Path) -> None:
    rows, output = Rows(tmp_path, seed=8), Output(tmp_path / "out")
    with Run(tmp_path, manifest(pairs=1)) as run:
        with rows.flowing(run):
            run.until(run.whole, 120, "everybody runs")
            killed = kill_and_see(run, output, Target.PRIMARY)
        run.completes(120)
    verdict = judge(rows.expected(), output.table())
    assert verdict.good, verdict
    skips = re.findall(
        r"SkippedAhead \S+ from epoch (\d+) to (\d+)",
        run.directory.log_of(killed).read_text(),
    )
    assert [int(to) - int(since) > ProtocolSettings().skips_beyond for since, to in skips] == [True]


def kill_and_see(run: Run, output: Output, target: Target, stopped: bool = False) -> str:
    """Kill a member, see epochs delivered without it, then see it come back; its name."""
    who = who_is(run, target)
    assert who is not None
    before = output.last()
    name, pid = run.signal(who, signal.SIGKILL)
    run.until(lambda: output.last() >= before + BEYOND, 60, f"delivery goes on without {who}")
    since = [each for each in output.deliveries() if each.epoch >= before]
    print(f"{target} killed, stopped={stopped}: gap of {longest_gap(since):.2f} s")  # noqa: T201
    if stopped:
        run.supervisor.send_signal(signal.SIGCONT)
    run.until(lambda: is_back(run, name, pid), 180, f"{who} is back")
    return name


def is_back(run: Run, who: str, dead: int) -> bool:
    found = [each for each in run.status()["members"] if each["name"] == who]
    return run.whole() and all(each.get("pid") not in {None, dead} for each in found)
