"""`python -m bench.streaming.memory`: the memory of processes, also if nothing can be delivered.

A pipeline reads rows at a high rate. Then both merges are frozen, and the supervisor with them,
which would otherwise replace them: outboxes fill, micro-batches wait, lanes fill up to their bound,
the source pauses. After that all processes resume, and the result is recounted.
"""

import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.streaming.deliveries import Outlet
from bench.streaming.feeder import now
from bench.streaming.oracle import Verdict, recount_table
from bench.streaming.pictures import draw_memory
from bench.streaming.pipelines import Shape, generated_rows
from bench.streaming.processes import Sample, Sampler, directory_bytes
from bench.streaming.report import (
    arguments_parser,
    conditions,
    median,
    report,
    say,
    seconds,
    table,
    verdict,
)
from bench.streaming.tandem_run import TandemRun, tandem_run

_MIB = 2**20
_LIMITS = {"split": 200 * 10**6, "merge": 200 * 10**6, "replica": 900 * 10**6}
_WARM_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_ROWS_READ = r"(?m)^tandem_rows_read_total\{.*\} (\S+)$"


@dataclass(frozen=True)
class Options:
    """Durations and sizes of a measurement."""

    rate: int
    keys: int
    wide_columns: int
    """Columns beside key, amount and time, of eight bytes each."""
    steady_seconds: float
    frozen_seconds: float
    after_seconds: float


@dataclass(frozen=True)
class Look:
    """A pipeline's memory and volumes at one moment."""

    at: float
    rows_read: int
    """Rows that the splits have taken from their sources."""
    volumes: Mapping[str, int]
    """Bytes on the volumes, by kind of member."""


@dataclass(frozen=True)
class Result:
    """One run."""

    samples: list[Sample]
    looks: list[Look]
    frozen: tuple[float, float]
    delivered: list[float]
    """When epochs were delivered."""
    verdict: Verdict


class Watcher:
    """Samples volumes and the lead's count of rows, also while the supervisor is stopped."""

    def __init__(self, run: TandemRun) -> None:
        self.looks: list[Look] = []
        self._run = run
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def __enter__(self) -> "Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.looks.append(self._look())

    def _look(self) -> Look:
        volumes: dict[str, int] = {}
        for volume in (self._run.directory / "volumes").iterdir():
            kind = "replica" if volume.name.startswith("pair") else volume.name.split("-")[0]
            volumes[kind] = volumes.get(kind, 0) + directory_bytes(volume)
        return Look(now(), self._rows_read(), volumes)

    def _rows_read(self) -> int:
        """Rows that the splits have taken from their sources."""
        cards = (self._run.directory / "peers").glob("split-*.json")
        return sum(_rows_read_by(json.loads(card.read_text())["http_port"]) for card in cards)


def _rows_read_by(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return sum(int(float(value)) for value in re.findall(_ROWS_READ, text))


def run_bench(options: Options, place: Path) -> Result:
    """Run once."""
    shape = Shape(generator=(options.rate, options.keys), wide_columns=options.wide_columns)
    with tandem_run(shape, place / "run", place) as run:
        run.wait_until(run.is_whole, 180, "whole")
        with Sampler(run.pid, _LOOK_SECONDS, with_pss=True) as sampler, Watcher(run) as watcher:
            time.sleep(_WARM_SECONDS + options.steady_seconds)
            frozen = _freeze_merges(run, options.frozen_seconds)
            say(f"frozen for {seconds(frozen[1] - frozen[0])}, goes on")
            time.sleep(options.after_seconds)
    outlet = Outlet(run.output)
    return Result(
        sampler.samples,
        watcher.looks,
        frozen,
        [each.at for each in outlet.look()],
        recount_table(run.output, generated_rows(shape, outlet.reaches())),
    )


def _freeze_merges(run: TandemRun, duration: float) -> tuple[float, float]:
    merges = [member["pid"] for member in run.members() if member["kind"] == "merge"]
    began = now()
    # The supervisor first: it would end members that are silent for long.
    os.kill(run.pid, signal.SIGSTOP)
    for pid in merges:
        run.signal_group(pid, signal.SIGSTOP)
    time.sleep(duration)
    for pid in merges:
        run.signal_group(pid, signal.SIGCONT)
    os.kill(run.pid, signal.SIGCONT)
    return began, now()


# --- report ---------------------------------------------------------------------------------------


def members_of(sample: Sample, measure: str) -> dict[str, int]:
    """Bytes of each member at one moment, a replica with its JVM."""
    found: dict[str, int] = {}
    for usage in sample.usages.values():
        name = usage.name.removesuffix(" JVM")
        found[name] = found.get(name, 0) + getattr(usage, measure)
    return found


def highest(samples: Sequence[Sample], kind: str, measure: str) -> int:
    """The maximum over all members of a kind and all samples."""
    return max(
        (
            size
            for sample in samples
            for name, size in members_of(sample, measure).items()
            if kind_of(name) == kind
        ),
        default=0,
    )


def kind_of(name: str) -> str:
    """The kind of a member, by its name."""
    return "replica" if name.startswith("pair") else name.split("-", maxsplit=1)[0]


def describe(result: Result) -> str:
    """Tables and verdicts."""
    start, end = result.frozen
    stretches = {
        "steady": [each for each in result.samples if each.at < start],
        "frozen": [each for each in result.samples if start <= each.at <= end],
        "afterwards": [each for each in result.samples if each.at > end],
    }
    lines = []
    for kind, limit in _LIMITS.items():
        rss = [highest(stretch, kind, "rss") for stretch in stretches.values()]
        pss = [highest(stretch, kind, "pss") for stretch in stretches.values()]
        sizes = [f"{a / 1e6:.0f} / {b / 1e6:.0f}" for a, b in zip(rss, pss, strict=True)]
        lines.append((kind, *sizes, f"{limit / 1e6:.0f}", verdict(max(rss) < limit)))
    head = ("highest RSS / PSS, MB", *stretches, "target, RSS", "")
    return "\n".join([table(head, lines), "", _volumes_table(result), "", *_told(result)])


def _volumes_table(result: Result) -> str:
    start, end = result.frozen
    kinds = sorted({kind for look in result.looks for kind in look.volumes})
    before = [look.volumes for look in result.looks if look.at < start]
    during = [look.volumes for look in result.looks if start <= look.at <= end]
    lines = []
    for kind in kinds:
        steady = median([volumes.get(kind, 0) for volumes in before])
        most = max((volumes.get(kind, 0) for volumes in during), default=0)
        left = result.looks[-1].volumes.get(kind, 0)
        lines.append((kind, *(f"{size / 1e6:.0f}" for size in (steady, most, left))))
    return table(("all volumes of a kind, MB", "steady", "frozen, most", "at the end"), lines)


def _told(result: Result) -> list[str]:
    start, end = result.frozen
    during = [look for look in result.looks if start <= look.at <= end]
    paused = [look.at for look in during if look.rows_read == during[-1].rows_read]
    quiet = end - min(paused, default=end)
    first = min((at for at in result.delivered if at > end), default=float("nan"))
    return [
        f"- frozen for {seconds(end - start)}: {during[-1].rows_read - during[0].rows_read:,} more "
        f"rows were read, then the source paused for {seconds(quiet)}",
        f"- first delivery {seconds(first - end)} after the thaw",
        f"- {result.verdict}",
    ]


def as_data(result: Result) -> dict[str, object]:
    """A run for programs."""
    return {
        "samples": [
            {"at": each.at, "rss": members_of(each, "rss"), "pss": members_of(each, "pss")}
            for each in result.samples
        ],
        "looks": [asdict(look) for look in result.looks],
        "frozen": result.frozen,
        "delivered": result.delivered,
        "verdict": asdict(result.verdict),
    }


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("memory", __doc__)
    parser.add_argument("--rate", type=int, default=20_000, help="rows per second (20000)")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--wide-columns", type=int, default=24, help="of 8 bytes in each row (24)")
    parser.add_argument("--steady-seconds", type=float, default=60.0)
    parser.add_argument("--frozen-seconds", type=float, default=120.0)
    parser.add_argument("--after-seconds", type=float, default=60.0)
    chosen = parser.parse_args(arguments)
    options = Options(
        chosen.rate,
        chosen.keys,
        chosen.wide_columns,
        chosen.steady_seconds,
        chosen.frozen_seconds,
        chosen.after_seconds,
    )
    found = conditions({"pairs": 1, "cores of a driver": 1, **asdict(options)})
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as work:
        result = run_bench(options, Path(work))
    draw = partial(draw_memory, result)
    report(chosen, "memory", found, describe(result), as_data(result), draw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
