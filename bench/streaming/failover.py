"""`python -m bench.streaming.failover`: how long the output pauses when a driver dies.

A stateful query runs at a steady rate, and its driver is killed repeatedly. Tandem's pair is
compared with a plain query that a supervisor restarts from its checkpoint without delay.
"""

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from bench.streaming.deliveries import Delivery, Outlet, gaps, longest_gap, percentile
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import Verdict, recount
from bench.streaming.pictures import draw_failover
from bench.streaming.pipelines import Shape
from bench.streaming.plain_run import Launch, PlainSettings, plain_run
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
from bench.streaming.waiting import wait_until

KILLED, FROZEN = "Tandem, kill -9", "Tandem, SIGSTOP"
CASES = (KILLED, FROZEN, Launch.TUNED.value, Launch.STOCK.value)

_USUAL_MS = 500
"""The interval of the results that have no interval in their name."""
_WORST_GAPS = {125: 0.6}
"""Target of the longest gap of all failures in seconds, by the interval in milliseconds."""

_WARM_SECONDS = 10.0
_QUIET_SECONDS = 4.0
"""Pause between recovery and the next failure; normal cadence is measured here."""
_FROZEN_SECONDS = 8.0
_AFTERWARDS = 5
"""Batches after its restart by which a plain query has recovered."""
_SHOWN_BEFORE, _SHOWN_AFTER = 4.0, 30.0


@dataclass(frozen=True)
class Failure:
    """One kill or freeze."""

    gap: float
    """Longest time without a delivery from the failure until recovery."""
    gap_ended: float
    """When that gap ended, in seconds after the failure."""
    whole_after: float
    """Seconds until paired again, or until a plain query has recovered."""
    deliveries: tuple[float, ...]
    """When epochs were delivered, in seconds after the failure."""


@dataclass(frozen=True)
class Case:
    """One way to run the query, with several failures."""

    name: str
    keys: int
    failures: tuple[Failure, ...]
    cadence: tuple[float, ...]
    """Gaps between deliveries without a failure."""
    verdict: Verdict

    @property
    def gaps(self) -> list[float]:
        """The longest gap of each failure."""
        return [failure.gap for failure in self.failures]


@dataclass(frozen=True)
class Options:
    """Durations and sizes of a measurement."""

    tries: int
    rate: int
    interval_ms: int
    memory_mib: int

    @property
    def interval(self) -> float:
        """The interval of epochs, in seconds."""
        return self.interval_ms / 1000


class Disturbance:
    """Failures, each followed by a quiet period, and all deliveries."""

    def __init__(self, outlet: Outlet, tries: int, interval: float) -> None:
        self._outlet = outlet
        self._tries = tries
        self._interval = interval
        self._phase = np.random.default_rng(1)
        self._failures: list[tuple[float, float]] = []
        self._quiet: list[tuple[float, float]] = []

    def go_through(self, fail: Callable[[], tuple[float, float]]) -> None:
        """Fail as often as planned; `fail` returns when it began and when all had recovered."""
        for number in range(1, self._tries + 1):
            began = now()
            time.sleep(_QUIET_SECONDS + self._phase.uniform(0, self._interval))
            self._quiet.append((began, now()))
            self._failures.append(fail())
            start, end = self._failures[-1]
            gap = longest_gap(self._outlet.look(), start, end)
            say(
                f"  {number}: gap {seconds(gap.seconds)}, over {seconds(gap.ended - start)} after "
                f"the failure; whole again after {seconds(end - start)}"
            )

    def failures(self) -> tuple[Failure, ...]:
        """All failures; call it once everything is delivered."""
        seen = self._outlet.look()
        found = []
        for start, end in self._failures:
            gap = longest_gap(seen, start, end)
            around = _around(seen, start)
            found.append(Failure(gap.seconds, gap.ended - start, end - start, around))
        return tuple(found)

    def cadence(self) -> tuple[float, ...]:
        """Gaps that lie entirely in quiet periods."""
        seen = self._outlet.look()
        return tuple(
            gap
            for start, end in self._quiet
            for gap in gaps([each for each in seen if start <= each.at <= end])
        )


def _around(deliveries: Sequence[Delivery], start: float) -> tuple[float, ...]:
    return tuple(
        round(each.at - start, 4)
        for each in deliveries
        if -_SHOWN_BEFORE <= each.at - start <= _SHOWN_AFTER
    )


def run_case(name: str, keys: int, options: Options) -> Case:
    """Run one case in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-failover-") as work:
        run = run_tandem if name in {KILLED, FROZEN} else run_plain
        case = run(name, keys, options, Path(work))
    say(f"  {case.verdict}")
    return case


def run_tandem(name: str, keys: int, options: Options, place: Path) -> Case:
    """Run a pair whose primary is killed or frozen."""
    feeder = Feeder(place / "in", Rows(keys), options.rate, options.interval / 2)
    feeder.preload()
    shape = Shape(interval_ms=options.interval_ms, memory=f"{options.memory_mib}Mi")
    with tandem_run(shape, place / "tandem", place / "in") as run:
        outlet = Outlet(run.output)
        run.wait_until(run.is_whole, 180, "whole")
        run.wait_until(lambda: bool(outlet.look()), 60, "first delivery")
        disturbance = Disturbance(outlet, options.tries, options.interval)
        feeder.start()
        time.sleep(_WARM_SECONDS)
        fail = _freeze_primary if name == FROZEN else _kill_primary
        disturbance.go_through(lambda: fail(run))
        feeder.stop()
        run.wait_until(lambda: outlet.reaches() == feeder.fed - 1, 60, "everything delivered")
    return Case(
        name,
        keys,
        disturbance.failures(),
        disturbance.cadence(),
        recount(run.output, feeder.rows, feeder.fed),
    )


def _kill_primary(run: TandemRun) -> tuple[float, float]:
    pid = run.member("primary")["pid"]
    killed = now()
    run.signal_group(pid, signal.SIGKILL)
    return killed, run.wait_for_recovery(killed, 120)


def _freeze_primary(run: TandemRun) -> tuple[float, float]:
    pid = run.member("primary")["pid"]
    frozen = now()
    run.signal_group(pid, signal.SIGSTOP)
    time.sleep(_FROZEN_SECONDS)
    run.signal_group(pid, signal.SIGCONT)
    return frozen, run.wait_for_recovery(frozen, 120)


def run_plain(name: str, keys: int, options: Options, place: Path) -> Case:
    """Run a plain query whose driver is killed and restarted."""
    feeder = Feeder(place / "in", Rows(keys), options.rate, options.interval / 2)
    feeder.preload()
    settings = PlainSettings(
        Launch(name), trigger_ms=options.interval_ms, memory=options.memory_mib * 2**20
    )
    with plain_run(settings, place / "plain", place / "in") as run:
        outlet = Outlet(run.output)
        wait_until(lambda: bool(outlet.look()), 180, "first delivery")
        disturbance = Disturbance(outlet, options.tries, options.interval)
        feeder.start()
        time.sleep(_WARM_SECONDS)

        def kill() -> tuple[float, float]:
            killed = now()
            run.kill()
            before = len(outlet.look())
            wait_until(lambda: len(outlet.look()) >= before + _AFTERWARDS, 180, "at work again")
            return killed, now()

        disturbance.go_through(kill)
        feeder.stop()
        wait_until(lambda: outlet.reaches() == feeder.fed - 1, 60, "everything delivered")
    return Case(
        name,
        keys,
        disturbance.failures(),
        disturbance.cadence(),
        recount(run.output, feeder.rows, feeder.fed),
    )


# --- report ---------------------------------------------------------------------------------------


def describe(cases: Sequence[Case], options: Options) -> str:
    """Table, ratios and verdicts."""
    head = (
        *("", "keys", "median gap", "worst", "normal cadence", "worst", "whole again"),
        "recount",
    )
    rows = [
        (
            case.name,
            f"{case.keys:,}",
            seconds(median(case.gaps)),
            seconds(max(case.gaps)),
            seconds(median(case.cadence)),
            seconds(max(case.cadence, default=float("nan"))),
            seconds(median([failure.whole_after for failure in case.failures])),
            case.verdict.brief,
        )
        for case in cases
    ]
    return "\n".join([table(head, rows), "", *_targets(cases, options)])


def _targets(cases: Sequence[Case], options: Options) -> Iterator[str]:
    found = {(case.name, case.keys): median(case.gaps) for case in cases}
    for case in (case for case in cases if case.name in {KILLED, FROZEN}):
        name, keys = case.name, case.keys
        limit, gap = 2 * options.interval, median(case.gaps)
        what = f"- {name}, {keys:,} keys: median of the longest gap {seconds(gap)}"
        yield f"{what}, target at most {seconds(limit)}: {verdict(gap <= limit)}"
        most, worst = _WORST_GAPS.get(options.interval_ms), max(case.gaps)
        if most is not None:
            reached = verdict(worst <= most)
            yield f"  - worst {seconds(worst)}, target at most {seconds(most)}: {reached}"
        for peer, target in ((Launch.STOCK.value, 10), (Launch.TUNED.value, 5)):
            if (peer, keys) in found:
                ratio = found[peer, keys] / gap
                what = f"  - {ratio:.1f} times shorter than {peer}"
                yield f"{what}, target {target}: {verdict(ratio >= target)}"


def as_data(case: Case) -> dict[str, object]:
    """A case for programs."""
    data = asdict(case)
    return {
        **data,
        "cadence": None,
        "median_gap": median(case.gaps),
        "worst_gap": max(case.gaps),
        "median_cadence": median(case.cadence),
        "p99_cadence": percentile(case.cadence, 0.99),
        "worst_cadence": max(case.cadence, default=float("nan")),
    }


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("failover", __doc__)
    parser.add_argument("--tries", type=int, default=10, help="failures in each case (10)")
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 200_000])
    parser.add_argument("--rate", type=int, default=1_000, help="rows per second (1000)")
    parser.add_argument("--interval-ms", type=int, default=500, help="of an epoch (500)")
    parser.add_argument("--memory-mib", type=int, default=1024, help="of a whole driver (1024)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES, metavar="CASE")
    chosen = parser.parse_args(arguments)
    options = Options(chosen.tries, chosen.rate, chosen.interval_ms, chosen.memory_mib)
    found = conditions({"pairs": 1, "cores of a driver": 1, **asdict(options)})
    attempts = Attempts()
    cases = [
        case
        for keys in chosen.keys
        for name in chosen.cases
        for case in attempts.run(f"{name}, {keys:,} keys", partial(run_case, name, keys, options))
    ]
    draw = partial(draw_failover, cases, [case.name for case in cases], options.interval)
    body = describe(cases, options) + attempts.told()
    usual = options.interval_ms == _USUAL_MS
    name = "failover" if usual else f"failover-{options.interval_ms}"
    report(chosen, name, found, body, [*map(as_data, cases)], draw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
