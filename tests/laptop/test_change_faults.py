"""Changes of a pipeline whose new pairs crash, before the cut and right after it.

One pipeline for all of it: a change is given up, the pipeline stopped and started with another
manifest, and the change that this makes loses the new pairs at the worst moment.
"""

import contextlib
import signal
from pathlib import Path
from typing import Any

from tests.laptop.harness import Run
from tests.laptop.output import Output
from tests.soak.pipeline import Rows, manifest
from tests.soak.verdict import judge

from tandem.output.member_table import Missing

BUSY_LIMIT = 480.0
"""Seconds for a change on a machine with other work; it takes about twenty without. New pairs yield
to everybody, so they are the last to get a CPU."""
FIRST = {"split-0", "split-1", "pair-0-a", "merge-0", "merge-1"}


def test_new_pairs_that_crash_before_or_after_the_cut_harm_no_row(tmp_path: Path) -> None:
    rows, output = Rows(tmp_path, seed=23), Output(tmp_path / "out")
    pipeline = manifest(pairs=1, replicas=1, interval="2s")
    with Run(tmp_path, pipeline) as run:
        with rows.flowing(run):
            run.until(run.whole, 120, "everybody runs")
            run.command("scale", "pairs=2")
            run.until(lambda: crashes_until_given_up(run), BUSY_LIMIT, "the change is given up")
            run.until(lambda: is_as_before(run), BUSY_LIMIT, "the new pairs are gone")
            assert run.stop_in_good_order() == 0
            pipeline["spec"]["pairs"]["count"] = 2
            pipeline["spec"]["merges"] = {"count": 2}
            run.write(pipeline)
            run.start()
            run.until(lambda: kills_after_cut(run), BUSY_LIMIT, "the new pairs take over")
            run.until(lambda: "GenerationRetired" in told(run), BUSY_LIMIT, "they are back")
        status = run.completes(120)
    verdict = judge(rows.expected(), output.table())
    assert verdict.good, verdict
    assert verdict.rows > 0
    assert {pair["name"] for pair in status["pairs"]} == {"pair-3", "pair-4"}
    assert {"merge-2", "merge-3"} <= names(run)


def crashes_until_given_up(run: Run) -> bool:
    """Kill a driver of a new pair as it starts; nobody else may notice."""
    ready = condition(run, "Ready")
    # On a machine with much other work it may be false for a moment, for other reasons.
    blamed = [pair for pair in ("pair-1", "pair-2") if pair in ready.get("message", "")]
    assert ready["status"] == "True" or not blamed, ready
    kill(run, "pair-1-a")
    return "GenerationAbandoned" in told(run)


def is_as_before(run: Run) -> bool:
    return names(run) == FIRST and condition(run, "Ready")["status"] == "True"


def kills_after_cut(run: Run) -> bool:
    """Kill the drivers of all new pairs once they own their keys."""
    if "GenerationCut" not in told(run):
        return False
    killed = [kill(run, name) for name in ("pair-3-a", "pair-4-a")]
    return all(killed)


def kill(run: Run, name: str) -> bool:
    """Kill a member's process if it has one."""
    with contextlib.suppress(Missing):
        run.signal(name, signal.SIGKILL)
        return True
    return False


def told(run: Run) -> list[str]:
    return [event["event"] for event in run.events()]


def condition(run: Run, kind: str) -> Any:
    return next(each for each in run.status()["conditions"] if each["type"] == kind)


def names(run: Run) -> set[str]:
    return {member["name"] for member in run.status()["members"]}
