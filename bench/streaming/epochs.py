"""`python -m bench.streaming.epochs`: the latency of rows, and the cost of an idle pipeline.

A stateful pair with short epochs at a steady rate is compared with a plain query with micro-batches
of the same length. The latency of a row is the time from when it was due at the source to when the
file with its result appeared. It includes the wait for the next input file.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from bench.streaming.deliveries import Delivery, Outlet, gaps, percentile
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import Verdict, recount
from bench.streaming.pictures import draw_epochs
from bench.streaming.pipelines import Shape
from bench.streaming.plain_run import Launch, PlainSettings, plain_run
from bench.streaming.processes import cpu_during
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
from bench.streaming.tandem_run import INSTALLED, Installation, tandem_run
from bench.streaming.waiting import wait_until

TANDEM = "Tandem, one pair"
CASES = (TANDEM, Launch.TUNED.value, Launch.STOCK.value)
_FEED_SECONDS = 0.1
_WARM_SECONDS = 15.0
_HELD = 1.1
"""Epochs more than this many intervals apart count as held."""
_HIGHEST_LATENCY = 1.0
_HIGHEST_IDLE = 0.15


@dataclass(frozen=True)
class Options:
    """Durations and sizes of a measurement."""

    interval_ms: int
    rate: int
    keys: int
    seconds: float
    idle_seconds: float


@dataclass(frozen=True)
class Case:
    """One way to run the query."""

    name: str
    latencies: tuple[float, ...]
    """Latencies of rows, sampled evenly."""
    cadence: tuple[float, ...]
    """Gaps between deliveries."""
    busy: dict[str, float]
    """Cores in use while rows arrive, by kind of process."""
    idle: dict[str, float]
    """Cores in use while no rows arrive."""
    verdict: Verdict


def run_case(name: str, options: Options) -> Case:
    """Run one case in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-epochs-") as work:
        if name == TANDEM:
            return run_tandem(options, Path(work))
        return run_plain(Launch(name), options, Path(work))


def run_tandem(
    options: Options, place: Path, installation: Installation = INSTALLED, pairs: int = 1
) -> Case:
    """Run a Tandem installation."""
    feeder = _feeder(options, place)
    shape = Shape(interval_ms=options.interval_ms, pairs=pairs)
    with tandem_run(shape, place / "run", place / "in", installation) as run:
        run.wait_until(run.is_whole, 180, "whole")
        return _measure(TANDEM, options, feeder, Outlet(run.output), run.pid)


def run_plain(launch: Launch, options: Options, place: Path) -> Case:
    """Run a plain query."""
    feeder = _feeder(options, place)
    settings = PlainSettings(launch, trigger_ms=options.interval_ms)
    with plain_run(settings, place / "run", place / "in") as run:
        return _measure(launch.value, options, feeder, Outlet(run.output), run.pid)


def _feeder(options: Options, place: Path) -> Feeder:
    feeder = Feeder(place / "in", Rows(options.keys), options.rate, _FEED_SECONDS)
    feeder.preload()
    return feeder


def _measure(name: str, options: Options, feeder: Feeder, outlet: Outlet, root: int) -> Case:
    wait_until(lambda: outlet.reaches() == feeder.fed - 1, 180, "all keys delivered")
    feeder.start()
    time.sleep(_WARM_SECONDS)
    began = now()
    busy = cpu_during(root, options.seconds)
    ended = now()
    feeder.stop()
    wait_until(lambda: outlet.reaches() == feeder.fed - 1, 60, "everything delivered")
    measured = [each for each in outlet.look() if began <= each.at <= ended]
    say(f"  {len(measured)} epochs")
    idle = _cores_when_idle(root, options.idle_seconds)
    return Case(
        name,
        tuple(latencies(measured, feeder)),
        tuple(gaps(measured)),
        {kind: used / options.seconds for kind, used in busy.items()},
        idle,
        recount(outlet.directory, feeder.rows, feeder.fed),
    )


def _cores_when_idle(root: int, idle_seconds: float) -> dict[str, float]:
    if not idle_seconds:
        return {}
    say("  now idle")
    time.sleep(2)
    used = cpu_during(root, idle_seconds)
    return {kind: each / idle_seconds for kind, each in used.items()}


def latencies(deliveries: Sequence[Delivery], feeder: Feeder) -> list[float]:
    """Latencies of every tenth row between the first delivery and the last."""
    numbers = np.arange(deliveries[0].last + 1, deliveries[-1].last + 1, 10)
    ends = np.array([each.last for each in deliveries])
    appeared = np.array([each.at for each in deliveries])
    due = np.array([feeder.due(int(number)) for number in numbers])
    found: list[float] = (appeared[np.searchsorted(ends, numbers)] - due).tolist()
    return found


# --- report ---------------------------------------------------------------------------------------


def describe(cases: Sequence[Case], interval: float) -> str:
    """Table and verdicts."""
    head = ("", "latency p50", "p99", "worst", "cadence", "p99", "cores busy", "idle", "recount")
    lines = [
        (
            case.name,
            seconds(median(case.latencies)),
            seconds(percentile(case.latencies, 0.99)),
            seconds(max(case.latencies)),
            seconds(median(case.cadence)),
            seconds(percentile(case.cadence, 0.99)),
            f"{sum(case.busy.values()):.2f}",
            f"{sum(case.idle.values()):.3f}",
            case.verdict.brief,
        )
        for case in cases
    ]
    targets = []
    for case in (case for case in cases if case.name == TANDEM):
        slow, idle = percentile(case.latencies, 0.99), sum(case.idle.values())
        parts = ", ".join(f"{kind} {cores:.3f}" for kind, cores in sorted(case.idle.items()))
        cadence = median(case.cadence)
        held = cadence <= _HELD * interval
        targets = [
            f"- an epoch every {seconds(cadence)}, target {seconds(interval)} held to a tenth: "
            f"{verdict(held)}",
            f"- latency p99 {seconds(slow)}, target at most {seconds(_HIGHEST_LATENCY)}: "
            f"{verdict(slow <= _HIGHEST_LATENCY)}",
            f"- idle: {idle:.3f} of a core ({parts}), target under {_HIGHEST_IDLE}: "
            f"{verdict(idle < _HIGHEST_IDLE)}",
        ]
    return "\n".join([table(head, lines), "", *targets])


def as_data(case: Case) -> dict[str, object]:
    """A case for programs."""
    shares = (0.5, 0.9, 0.99, 0.999, 1.0)
    return {
        **asdict(case),
        "latencies": {str(share): percentile(case.latencies, share) for share in shares},
        "cadence": {str(share): percentile(case.cadence, share) for share in shares},
    }


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("epochs", __doc__)
    parser.add_argument("--interval-ms", type=int, default=250, help="of an epoch (250)")
    parser.add_argument("--rate", type=int, default=5_000, help="rows per second (5000)")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=120.0, help="measured time (120)")
    parser.add_argument("--idle-seconds", type=float, default=60.0, help="idle time (60)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES, metavar="CASE")
    chosen = parser.parse_args(arguments)
    options = Options(
        chosen.interval_ms, chosen.rate, chosen.keys, chosen.seconds, chosen.idle_seconds
    )
    found = conditions({"pairs": 1, "cores of a driver": 1, **asdict(options)})
    attempts = Attempts()
    cases = [
        case
        for name in chosen.cases
        for case in attempts.run(name, partial(run_case, name, options))
    ]
    draw = partial(draw_epochs, cases, options.interval_ms / 1000)
    body = describe(cases, options.interval_ms / 1000) + attempts.told()
    report(chosen, "epochs", found, body, [*map(as_data, cases)], draw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
