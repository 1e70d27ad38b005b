"""`python -m bench.streaming.services`: how long the output pauses when a split or merge dies.

One pair at a steady rate. The lead split, the other split and the active merge are killed in turn,
while the supervisor runs and while it is stopped: the survivors then have to recover alone.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench.streaming.deliveries import Outlet
from bench.streaming.failover import Case, Disturbance, Options, as_data
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import recount
from bench.streaming.pictures import draw_failover
from bench.streaming.pipelines import Shape
from bench.streaming.report import (
    Attempts,
    arguments_parser,
    conditions,
    median,
    report,
    say,
    seconds,
    table,
    verdict,
)
from bench.streaming.rows import Rows
from bench.streaming.tandem_run import TandemRun, tandem_run

LEAD, OTHER, MERGE = "lead split", "other split", "active merge"
TARGET = 5.0

_WARM_SECONDS = 10.0
_ALONE_SECONDS = 10.0
"""Seconds for which the supervisor stays stopped after a kill."""
_LIMIT = 120.0


def run_case(stopped: bool, keys: int, options: Options) -> list[Case]:
    """Run one pipeline, and kill each service several times."""
    with tempfile.TemporaryDirectory(prefix="bench-services-") as work:
        cases = _run(stopped, keys, options, Path(work))
    say(f"  {cases[0].verdict}")
    return cases


def _run(stopped: bool, keys: int, options: Options, place: Path) -> list[Case]:
    feeder = Feeder(place / "in", Rows(keys), options.rate, options.interval / 2)
    feeder.preload()
    shape = Shape(interval_ms=options.interval_ms, memory=f"{options.memory_mib}Mi")
    found: dict[str, Disturbance] = {}
    with tandem_run(shape, place / "run", place / "in") as run:
        outlet = Outlet(run.output)
        run.wait_until(run.is_whole, _LIMIT, "whole")
        feeder.start()
        time.sleep(_WARM_SECONDS)
        for what in (LEAD, OTHER, MERGE):
            say(f"  {what}")
            found[what] = Disturbance(outlet, options.tries, options.interval)
            found[what].go_through(partial(_kill, run, what, stopped))
        feeder.stop()
        run.wait_until(lambda: outlet.reaches() == feeder.fed - 1, _LIMIT, "everything delivered")
    counted = recount(run.output, feeder.rows, feeder.fed)
    supervisor = "stopped" if stopped else "running"
    return [
        Case(f"{what}, supervisor {supervisor}", keys, each.failures(), each.cadence(), counted)
        for what, each in found.items()
    ]


def _kill(run: TandemRun, what: str, stopped: bool) -> tuple[float, float]:
    """Kill a service; return when that was and when all members were back."""
    victim = _victim(run, what)["pid"]
    with _stopped(run.pid) if stopped else _running() as wait:
        killed = now()
        run.signal_group(victim, signal.SIGKILL)
        wait()
    run.wait_until(lambda: _is_replaced(run, victim), _LIMIT, "everybody there again")
    return killed, now()


def _victim(run: TandemRun, what: str) -> dict[str, Any]:
    members = run.members()
    if what == MERGE:
        chosen = [each for each in members if each["kind"] == "merge"]
        return next(each for each in chosen if each["state"] == "Running")
    lead = run.lead()
    splits = [each for each in members if each["kind"] == "split"]
    return next(each for each in splits if (each["name"] == lead) is (what == LEAD))


def _is_replaced(run: TandemRun, victim: int) -> bool:
    members = run.members()
    there = all(each["state"] in {"Running", "Standby"} for each in members)
    return there and victim not in {each["pid"] for each in members}


@contextmanager
def _stopped(supervisor: int) -> Iterator[Callable[[], None]]:
    """Freeze the supervisor during the block; yield a function that waits before it resumes."""
    os.kill(supervisor, signal.SIGSTOP)
    try:
        yield lambda: time.sleep(_ALONE_SECONDS)
    finally:
        os.kill(supervisor, signal.SIGCONT)


@contextmanager
def _running() -> Iterator[Callable[[], None]]:
    yield lambda: None


def describe(cases: Sequence[Case]) -> str:
    """Table and verdicts."""
    head = ("killed", "median gap", "worst", "normal cadence", "recount")
    rows = [
        (
            case.name,
            seconds(median(case.gaps)),
            seconds(max(case.gaps)),
            seconds(median(case.cadence)),
            case.verdict.brief,
        )
        for case in cases
    ]
    reached = [
        f"- {case.name}: delivery goes on within {seconds(max(case.gaps))}, target "
        f"{seconds(TARGET)}: {verdict(max(case.gaps) <= TARGET)}"
        for case in cases
    ]
    return "\n".join([table(head, rows), "", *reached])


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("services", __doc__)
    parser.add_argument("--tries", type=int, default=3, help="kills of each service (3)")
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=1_000, help="rows per second (1000)")
    parser.add_argument("--interval-ms", type=int, default=500, help="of an epoch (500)")
    parser.add_argument("--memory-mib", type=int, default=1024, help="of a whole driver (1024)")
    chosen = parser.parse_args(arguments)
    options = Options(chosen.tries, chosen.rate, chosen.interval_ms, chosen.memory_mib)
    found = conditions({"pairs": 1, "cores of a driver": 1, "keys": chosen.keys, **asdict(options)})
    attempts = Attempts()
    runs = [
        cases
        for stopped in (False, True)
        for cases in attempts.run(
            f"supervisor {'stopped' if stopped else 'running'}",
            partial(run_case, stopped, chosen.keys, options),
        )
    ]
    cases = [case for run in runs for case in run]
    draw = partial(draw_failover, cases, [case.name for case in cases], options.interval)
    body = describe(cases) + attempts.told()
    report(chosen, "services", found, body, [*map(as_data, cases)], draw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
