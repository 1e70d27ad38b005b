"""`python -m bench.streaming.commits BASE`: the cost of a change, compared with its base commit.

The tree of BASE and this one, including uncommitted changes, run in turn on the same machine in the
same hour. Each try runs both twice. At full speed, it measures the processor time of a million
rows, as `bench.streaming.throughput` does. At a steady rate with short epochs, it measures the
latency of rows, as `bench.streaming.epochs` does.
"""

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.streaming import epochs, throughput
from bench.streaming.deliveries import percentile
from bench.streaming.feeder import Stock
from bench.streaming.oracle import Verdict
from bench.streaming.pipelines import Shape
from bench.streaming.report import (
    ROOT,
    Attempts,
    arguments_parser,
    conditions,
    median,
    report,
    say,
    table,
    verdict,
)
from bench.streaming.rows import Rows
from bench.streaming.trees import (
    CannotPrepare,
    Side,
    checked_out,
    commit_of,
    commit_of_this_tree,
    prepare,
)
from bench.streaming.waiting import RunFailed

BASE, NEW = "base", "new"
ALLOWED = 1.05
"""Highest new median, as a multiple of the base's."""
MEMBERS = {"split": ("split",), "replica": ("replica", "JVM"), "merge": ("merge",)}
"""Kinds of processes that a member consists of."""

_ROWS_PER_FILE = 100_000
_SETTLE_SECONDS = 2.0
"""Pause after the last delivery: the other replica may still work, and members trim."""


@dataclass(frozen=True)
class Load:
    """The load of both sides."""

    tries: int
    rows: int
    keys: int
    pairs: int
    rate: int
    seconds: float
    interval_ms: int


@dataclass(frozen=True)
class Full:
    """A run at full speed."""

    rows_per_second: float
    cpu: dict[str, float]
    """Seconds of processor time for a million rows, by member."""
    cpu_by_kind: dict[str, float]
    verdict: Verdict


@dataclass(frozen=True)
class Steady:
    """A run at a steady rate."""

    p50: float
    p99: float
    worst: float
    cores: dict[str, float]
    """Cores in use, by member."""
    verdict: Verdict


@dataclass(frozen=True)
class Runs:
    """All runs of a side that count."""

    side: Side
    full: list[Full]
    steady: list[Steady]


def run_full(side: Side, stock: Stock, load: Load) -> Full:
    """Run one side at full speed."""
    shape = Shape(pairs=load.pairs)
    with _place() as place:
        run = throughput.run_tandem(shape, stock, place, side.installation, _SETTLE_SECONDS)
    found = Full(run.rate, by_member(run.cpu), run.cpu, _right(run.verdict))
    used = ", ".join(f"{member} {cpu:.3f}" for member, cpu in found.cpu.items())
    say(f"  CPU in seconds for a million rows: {used}")
    return found


def run_steady(side: Side, load: Load) -> Steady:
    """Run one side at a steady rate."""
    options = epochs.Options(load.interval_ms, load.rate, load.keys, load.seconds, idle_seconds=0.0)
    with _place() as place:
        run = epochs.run_tandem(options, place, side.installation, load.pairs)
    p50, p99, worst = (percentile(run.latencies, share) for share in (0.5, 0.99, 1.0))
    say(f"  latency p50 {milliseconds(p50)}, p99 {milliseconds(p99)}, {run.verdict}")
    return Steady(p50, p99, worst, by_member(run.busy), _right(run.verdict))


def by_member(used: dict[str, float]) -> dict[str, float]:
    """Processor time by member, from that by kind of process.

    Raises:
        RunFailed: a member has none: its processes were not recognised.
    """
    found = {
        member: sum(used.get(kind, 0.0) for kind in kinds) for member, kinds in MEMBERS.items()
    }
    unknown = [kind for kinds in MEMBERS.values() for kind in kinds if not used.get(kind)]
    if unknown:
        raise RunFailed(f"no processor time of: {', '.join(unknown)}")
    return found


def _right(found: Verdict) -> Verdict:
    if not found.right:
        raise RunFailed(str(found))
    return found


@contextmanager
def _place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-commits-run-") as place:
        yield Path(place, "place")


def alternate(sides: tuple[Side, Side], stock: Stock, load: Load, attempts: Attempts) -> list[Runs]:
    """Run both sides in turn, after a warm-up run of each; alternate which is first."""
    runs = {side.name: Runs(side, [], []) for side in sides}
    for side in sides:
        attempts.run(f"warm-up, {side.name}", partial(run_full, side, stock, load))
    for number in range(load.tries):
        told = f"try {number + 1} of {load.tries}"
        order = sides if number % 2 == 0 else sides[::-1]
        for side in order:
            name = f"{told}, {side.name}: full speed"
            runs[side.name].full.extend(attempts.run(name, partial(run_full, side, stock, load)))
        for side in order:
            name = f"{told}, {side.name}: epochs of {load.interval_ms} ms"
            runs[side.name].steady.extend(attempts.run(name, partial(run_steady, side, load)))
    return list(runs.values())


# --- report ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """One line of the table."""

    name: str
    values: Callable[[Runs], list[float]]
    shown: Callable[[float], str]
    limited: bool = False
    """Whether a worse value fails the comparison."""
    worst: Callable[[Sequence[float]], float] = max


def milliseconds(value: float) -> str:
    """Format a latency."""
    return f"{value * 1000:.0f} ms"


def measures(load: Load) -> list[Measure]:
    """All lines of the table."""
    cpu = [
        Measure(f"CPU {member}, s for a million rows", partial(_cpu, member), "{:.3f}".format, True)
        for member in MEMBERS
    ]
    cores = [
        Measure(f"cores {member}, {load.rate:,} rows/s", partial(_cores, member), "{:.3f}".format)
        for member in MEMBERS
    ]
    return [
        *cpu,
        Measure("latency p99", lambda runs: [run.p99 for run in runs.steady], milliseconds, True),
        Measure("latency p50", lambda runs: [run.p50 for run in runs.steady], milliseconds),
        *cores,
        Measure("rows/s at full speed", _rates, "{:,.0f}".format, worst=min),
        Measure("epochs at full speed", _epochs, "{:,.0f}".format),
    ]


def _cpu(member: str, runs: Runs) -> list[float]:
    return [run.cpu[member] for run in runs.full]


def _cores(member: str, runs: Runs) -> list[float]:
    return [run.cores[member] for run in runs.steady]


def _rates(runs: Runs) -> list[float]:
    return [run.rows_per_second for run in runs.full]


def _epochs(runs: Runs) -> list[float]:
    return [run.verdict.epochs for run in runs.full]


def describe(base: Runs, new: Runs, load: Load) -> str:
    """Table and verdicts."""
    head = ("", "base, median", "worst", "new, median", "worst", "new / base", "within 5 %")
    lines = []
    targets = []
    for measure in measures(load):
        before, after = measure.values(base), measure.values(new)
        if not before or not after:
            targets.append(f"- {measure.name}: NOT MEASURED")
            continue
        ratio = median(after) / median(before)
        held = ratio <= ALLOWED
        cells = [
            measure.shown(of(each)) for each in (before, after) for of in (median, measure.worst)
        ]
        lines.append((measure.name, *cells, f"{ratio:.3f}", _word(held) if measure.limited else ""))
        if measure.limited:
            what = f"- {measure.name}: {ratio:.3f} of the base, target at most {ALLOWED}"
            targets.append(f"{what}: {verdict(held)}")
    commits = [f"- {runs.side.name}: `{runs.side.commit}`" for runs in (base, new)]
    return "\n".join([*commits, "", table(head, lines), "", *targets])


def _word(held: bool) -> str:
    return "yes" if held else "NO"


def as_data(runs: Runs) -> dict[str, object]:
    """All values of a side, for programs."""
    return {
        "side": runs.side.name,
        "commit": runs.side.commit,
        "full_speed": [asdict(run) for run in runs.full],
        "steady": [asdict(run) for run in runs.steady],
    }


def measure_both(revision: str, load: Load, attempts: Attempts) -> list[Runs]:
    """Prepare both trees and run them.

    Raises:
        CannotPrepare: one of them cannot be run.
    """
    with (
        tempfile.TemporaryDirectory(prefix="bench-commits-") as work,
        checked_out(revision, Path(work, "tree")) as tree,
    ):
        base = prepare(BASE, commit_of(revision), tree, Path(work, BASE))
        new = prepare(NEW, commit_of_this_tree(), ROOT, Path(work, NEW))
        stock = Stock(Path(work, "stock"), Rows(load.keys), load.rows, _ROWS_PER_FILE)
        say(f"{load.rows:,} rows, {stock.bytes / 1e6:,.0f} MB of JSON")
        return alternate((base, new), stock, load, attempts)


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("commits", __doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--tries", type=int, default=5, help="runs of each side that count (5)")
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows at full speed (6000000)")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--rate", type=int, default=5_000, help="rows per second (5000)")
    parser.add_argument("--seconds", type=float, default=60.0, help="measured at that rate (60)")
    parser.add_argument("--interval-ms", type=int, default=250, help="of an epoch then (250)")
    chosen = parser.parse_args(arguments)
    load = Load(**{name: getattr(chosen, name) for name in Load.__dataclass_fields__})
    found = conditions({"splits": 2, "cores of a driver": 1, **asdict(load)})
    # So that the worktree and the processes are removed then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    attempts = Attempts()
    try:
        base, new = measure_both(chosen.base, load, attempts)
    except CannotPrepare as problem:
        say(str(problem))
        return 1
    body = describe(base, new, load) + attempts.told()
    report(chosen, "commits", found, body, [as_data(base), as_data(new)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
