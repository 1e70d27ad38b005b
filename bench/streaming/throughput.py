"""`python -m bench.streaming.throughput`: rows per second, and the cost of a million rows.

JSON files are read at full speed by Tandem with one and with two replicas, and by plain Structured
Streaming, all on the same cores. A few files come first, one by one, as a warm-up. Then all others
appear at once; the rate is theirs, up to the last delivery.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.streaming.deliveries import Outlet
from bench.streaming.feeder import Stock, now
from bench.streaming.oracle import Verdict, counted_rows, recount
from bench.streaming.pictures import draw_throughput
from bench.streaming.pipelines import Shape
from bench.streaming.plain_run import Launch, PlainSettings, plain_run
from bench.streaming.processes import Sampler
from bench.streaming.report import (
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
from bench.streaming.tandem_run import INSTALLED, Installation, tandem_run
from bench.streaming.waiting import wait_until

KINDS = ("split", "replica", "JVM", "merge", "supervisor", "driver")
_ROWS_PER_FILE = 100_000
_WARM_FILES = 5
_FILES_PER_BATCH = 5
"""Files per batch of a plain query: about as many rows as an epoch has under backlog."""
_MILLION = 1_000_000
_LIMIT = 900.0


@dataclass(frozen=True)
class Case:
    """One way to run the query."""

    name: str
    replicas: int
    """0 for a plain query."""
    cores: int
    launch: Launch | None = None


CASES = (
    Case("Tandem, one replica", 1, 1),
    Case("Tandem, two replicas", 2, 1),
    Case("plain Spark, our launch, local[1]", 0, 1, Launch.TUNED),
    Case("plain Spark, stock launch, local[1]", 0, 1, Launch.STOCK),
    Case("plain Spark, our launch, local[2]", 0, 2, Launch.TUNED),
    Case("plain Spark, stock launch, local[2]", 0, 2, Launch.STOCK),
)


@dataclass(frozen=True)
class Run:
    """One run of a case."""

    rate: float
    """Rows per second."""
    cpu: dict[str, float]
    """Seconds of processor time for a million rows, by kind of process."""
    verdict: Verdict

    @property
    def query_cpu(self) -> float:
        """Processor time of the query itself: replicas and drivers with their JVMs."""
        return sum(self.cpu.get(kind, 0.0) for kind in ("replica", "JVM", "driver"))

    @property
    def all_cpu(self) -> float:
        """Processor time of all processes."""
        return sum(self.cpu.values())


def run_case(case: Case, stock: Stock, place: Path) -> Run:
    """Run once."""
    if case.launch is None:
        return run_tandem(Shape(replicas=case.replicas, cores=case.cores), stock, place)
    source = place / "in"
    source.mkdir(parents=True)
    settings = PlainSettings(case.launch, cores=case.cores, max_files=_FILES_PER_BATCH)
    with plain_run(settings, place / "run", source) as plain:
        return _measure(stock, source, Outlet(plain.output), plain.pid)


def run_tandem(
    shape: Shape,
    stock: Stock,
    place: Path,
    installation: Installation = INSTALLED,
    settle_seconds: float = 0.0,
) -> Run:
    """Run a Tandem installation once."""
    source = place / "in"
    source.mkdir(parents=True)
    with tandem_run(shape, place / "run", source, installation) as tandem:
        if shape.replicas > 1:
            tandem.wait_until(tandem.is_whole, _LIMIT, "whole")
        return _measure(stock, source, Outlet(tandem.output), tandem.pid, settle_seconds)


def _measure(
    stock: Stock, source: Path, outlet: Outlet, root: int, settle_seconds: float = 0.0
) -> Run:
    for index in range(_WARM_FILES):
        warm = stock.release(source, index, index + 1)
        wait_until(partial(_reaches, outlet, warm), _LIMIT, "a file is through")
    before = counted_rows(outlet.directory)
    with Sampler(root) as sampler:
        began = now()
        last = stock.release(source, _WARM_FILES)
        wait_until(partial(_reaches, outlet, last), _LIMIT, "all is through")
        time.sleep(settle_seconds)
    ended = outlet.seen[-1].at
    used = sampler.cpu_between(began, ended + settle_seconds)
    passed = counted_rows(outlet.directory) - before
    cpu = {kind: seconds * _MILLION / passed for kind, seconds in used.items()}
    run = Run(passed / (ended - began), cpu, recount(outlet.directory, stock.rows, last + 1))
    say(f"  {run.rate:,.0f} rows/s, {run.verdict}")
    return run


def _reaches(outlet: Outlet, last: int) -> bool:
    return outlet.reaches() == last


# --- report ---------------------------------------------------------------------------------------


def describe(results: Sequence[tuple[Case, list[Run]]]) -> str:
    """Table and verdicts."""
    head = ("", "rows/s, median", "worst", *(f"CPU {kind}" for kind in KINDS), "CPU all", "recount")
    lines = [
        (
            case.name,
            f"{median([run.rate for run in runs]):,.0f}",
            f"{min(run.rate for run in runs):,.0f}",
            *(_cpu([run.cpu.get(kind, 0.0) for run in runs]) for kind in KINDS),
            _cpu([run.all_cpu for run in runs]),
            "; ".join(dict.fromkeys(run.verdict.brief for run in runs)),
        )
        for case, runs in results
    ]
    note = "CPU is in seconds of processor time for a million rows."
    return "\n".join([table(head, lines), "", note, "", *_targets(results)])


def _cpu(values: Sequence[float]) -> str:
    value = median(values)
    return f"{value:.2f}" if value else ""


def _targets(results: Sequence[tuple[Case, list[Run]]]) -> Iterator[str]:
    rates = {case: median([run.rate for run in runs]) for case, runs in results}
    query = {case: median([run.query_cpu for run in runs]) for case, runs in results}
    for tandem in (case for case in rates if case.replicas == 1):
        for peer in (case for case in rates if case.launch is not None):
            ratio = rates[tandem] / rates[peer]
            what = f"- {tandem.name}: {ratio:.2f} of the rate of {peer.name}"
            yield f"{what}, target 0.7: {verdict(ratio >= 0.7)}"  # noqa: PLR2004
        for twins in (case for case in rates if case.replicas > 1):
            ratio = query[twins] / query[tandem]
            what = f"- {twins.name}: {ratio:.2f} times the query's CPU of one"
            yield f"{what}, target at most 2.1: {verdict(ratio <= 2.1)}"  # noqa: PLR2004


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("throughput", __doc__)
    parser.add_argument("--tries", type=int, default=3, help="runs of each case (3)")
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows of the input (6000000)")
    parser.add_argument("--keys", type=int, default=10_000)
    names = [case.name for case in CASES]
    parser.add_argument("--cases", nargs="+", choices=names, default=names, metavar="CASE")
    chosen = parser.parse_args(arguments)
    settings = {name: getattr(chosen, name) for name in ("tries", "rows", "keys")}
    found = conditions({**settings, "rows per file": _ROWS_PER_FILE, "epoch": "500 ms"})
    attempts = Attempts()
    results: list[tuple[Case, list[Run]]] = []
    with tempfile.TemporaryDirectory(prefix="bench-throughput-") as work:
        stock = Stock(Path(work, "stock"), Rows(chosen.keys), chosen.rows, _ROWS_PER_FILE)
        say(f"{chosen.rows:,} rows, {stock.bytes / 1e6:,.0f} MB of JSON")
        for case in (case for case in CASES if case.name in chosen.cases):
            runs = [
                run
                for number in range(chosen.tries)
                for run in attempts.run(
                    f"{case.name}, {number + 1}",
                    partial(run_case, case, stock, Path(work, f"{len(results)}-{number}")),
                )
            ]
            results += [(case, runs)] if runs else []
    data = [{"case": case.name, "runs": [asdict(run) for run in runs]} for case, runs in results]
    draw = partial(draw_throughput, results)
    report(chosen, "throughput", found, describe(results) + attempts.told(), data, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
