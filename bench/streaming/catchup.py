"""`python -m bench.streaming.catchup`: how soon a pair recovers, and what that costs its twin.

The primary of a pair is killed: with its volume kept, with its volume lost too, and with a warm
spare available. The comparison is a plain query that is restarted from its checkpoint, and delivers
nothing meanwhile.
"""

import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.streaming import failover
from bench.streaming.deliveries import Outlet, longest_gap, percentile, waits
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import Verdict, recount
from bench.streaming.pictures import draw_catchup
from bench.streaming.pipelines import Shape
from bench.streaming.plain_run import Launch
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

KEPT, LOST, SPARE = "volume kept", "volume lost, copied anew", "warm spare"
WAYS = (KEPT, LOST, SPARE)
TARGETS = {KEPT: 15.0, LOST: 15.0, SPARE: 5.0}

_WARM_SECONDS = 10.0
_QUIET_SECONDS = 5.0
_LIMIT = 240.0


@dataclass(frozen=True)
class Setting:
    """One size of state."""

    keys: int
    interval_ms: int
    memory_mib: int
    tries: int
    rate: int
    has_targets: bool = True
    """Whether verdicts are given; otherwise the figures are only reported."""

    @property
    def interval(self) -> float:
        """The interval of epochs, in seconds."""
        return self.interval_ms / 1000


@dataclass(frozen=True)
class Case:
    """One way to recover, several times."""

    way: str
    setting: Setting
    whole_after: tuple[float, ...]
    """Seconds from each kill until both replicas worked in step."""
    longest_gaps: tuple[float, ...]
    delays: tuple[float, ...]
    """Extra latency of the first row of each epoch delivered meanwhile."""
    normal: float
    """Median latency of an epoch's first row without a failure."""
    verdict: Verdict


def run_case(way: str, setting: Setting) -> Case:
    """Run one case in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-catchup-") as work:
        case = _run_tandem(way, setting, Path(work))
    say(f"  {case.verdict}")
    return case


def _run_tandem(way: str, setting: Setting, place: Path) -> Case:
    """Kill the primary as often as planned."""
    feeder = Feeder(place / "in", Rows(setting.keys), setting.rate, setting.interval / 2)
    feeder.preload()
    shape = Shape(
        interval_ms=setting.interval_ms,
        memory=f"{setting.memory_mib}Mi",
        spares=1 if way == SPARE else 0,
    )
    kills: list[tuple[float, float]] = []
    with tandem_run(shape, place / "run", place / "in") as run:
        outlet = Outlet(run.output)
        run.wait_until(run.is_whole, _LIMIT, "whole")
        run.wait_until(lambda: outlet.reaches() == feeder.fed - 1, _LIMIT, "all keys delivered")
        feeder.start()
        time.sleep(_WARM_SECONDS)
        for number in range(1, setting.tries + 1):
            kills.append(_kill(run, way))
            start, end = kills[-1]
            gap = longest_gap(outlet.look(), start, end).seconds
            say(f"  {number}: whole after {seconds(end - start)}, longest gap {seconds(gap)}")
        feeder.stop()
        run.wait_until(lambda: outlet.reaches() == feeder.fed - 1, _LIMIT, "everything delivered")
    return _measured(way, setting, feeder, outlet, kills)


def _kill(run: TandemRun, way: str) -> tuple[float, float]:
    """Kill the primary; return when that was and when the pair had both replicas again."""
    if way == SPARE:
        run.wait_until(run.has_warm_spare, _LIMIT, "a warm spare")
    time.sleep(_QUIET_SECONDS)
    primary = run.member("primary")
    volume = run.volume_of(primary["name"])
    killed = now()
    run.signal_group(primary["pid"], signal.SIGKILL)
    if way == LOST:
        volume.replace(run.directory.with_name(f"lost-{volume.name}"))
    return killed, run.wait_for_recovery(killed, _LIMIT)


def _measured(
    way: str,
    setting: Setting,
    feeder: Feeder,
    outlet: Outlet,
    kills: Sequence[tuple[float, float]],
) -> Case:
    paced = [each for each in outlet.look() if each.last >= feeder.rows.keys]
    all_waits = waits(paced, feeder.due)
    normal = median(
        [
            wait.latency
            for wait in all_waits
            if any(0 <= start - wait.until <= _QUIET_SECONDS for start, _ in kills)
        ]
    )
    # An epoch counts for a period if its wait overlaps the period.
    delays = [
        wait.latency - normal
        for wait in all_waits
        if any(wait.until >= start and wait.since <= end for start, end in kills)
    ]
    return Case(
        way,
        setting,
        tuple(end - start for start, end in kills),
        tuple(longest_gap(paced, start, end).seconds for start, end in kills),
        tuple(delays),
        normal,
        recount(outlet.directory, feeder.rows, feeder.fed),
    )


def run_plain(launch: Launch, setting: Setting) -> failover.Case:
    """Run the plain query of the failover bench, with this much state."""
    options = failover.Options(setting.tries, setting.rate, setting.interval_ms, setting.memory_mib)
    return failover.run_case(launch.value, setting.keys, options)


# --- report ---------------------------------------------------------------------------------------


def describe(cases: Sequence[Case], peers: Sequence[tuple[Setting, failover.Case]]) -> str:
    """Table and verdicts."""
    head = (
        *("", "keys", "epochs", "whole again, median", "worst", "longest gap, median", "worst"),
        *("delay of epochs, p99", "recount"),
    )
    lines = [
        (
            f"Tandem, {case.way}",
            f"{case.setting.keys:,}",
            f"{case.setting.interval_ms} ms",
            seconds(median(case.whole_after)),
            seconds(max(case.whole_after)),
            seconds(median(case.longest_gaps)),
            seconds(max(case.longest_gaps)),
            seconds(percentile(case.delays, 0.99)),
            case.verdict.brief,
        )
        for case in cases
    ]
    lines += [
        (
            f"{peer.name}, restarted",
            f"{peer.keys:,}",
            f"{setting.interval_ms} ms",
            *("", ""),
            seconds(median(peer.gaps)),
            seconds(max(peer.gaps)),
            "",
            peer.verdict.brief,
        )
        for setting, peer in peers
    ]
    return "\n".join([table(head, lines), "", *_targets(cases)])


def _targets(cases: Sequence[Case]) -> Iterator[str]:
    for case in (case for case in cases if case.setting.has_targets):
        whole, delay = median(case.whole_after), percentile(case.delays, 0.99)
        interval, target = case.setting.interval, TARGETS[case.way]
        what = f"- {case.way}, {case.setting.keys:,} keys: whole again within {seconds(whole)}"
        yield f"{what}, target {seconds(target)}: {verdict(whole <= target)}"
        what = f"  - epochs delayed by {seconds(delay)} at p99"
        yield f"{what}, target one interval ({seconds(interval)}): {verdict(delay <= interval)}"


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("catchup", __doc__)
    parser.add_argument("--tries", type=int, default=5, help="kills in each case (5)")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=1_000, help="rows per second (1000)")
    parser.add_argument(
        "--large-keys", type=int, default=1_000_000, help="at 2 s epochs; 0 leaves it out"
    )
    parser.add_argument("--large-tries", type=int, default=3, help="kills in each of those (3)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, metavar="WAY")
    parser.add_argument("--no-peers", action="store_true", help="without plain Spark")
    chosen = parser.parse_args(arguments)
    settings = [Setting(chosen.keys, 500, 1536, chosen.tries, chosen.rate)]
    if chosen.large_keys:
        settings.append(
            Setting(chosen.large_keys, 2000, 4096, chosen.large_tries, chosen.rate, False)
        )
    found = conditions({"pairs": 1, "cores of a driver": 1, "rate": chosen.rate})
    attempts = Attempts()
    cases: list[Case] = []
    peers: list[tuple[Setting, failover.Case]] = []
    for setting in settings:
        for way in chosen.ways:
            name = f"{way}, {setting.keys:,} keys"
            cases += attempts.run(name, partial(run_case, way, setting))
        for launch in () if chosen.no_peers else Launch:
            name = f"{launch.value}, {setting.keys:,} keys"
            measured = attempts.run(name, partial(run_plain, launch, setting))
            peers += [(setting, peer) for peer in measured]
    data = {
        "tandem": [asdict(case) for case in cases],
        "plain": [failover.as_data(peer) for _, peer in peers],
    }
    draw = partial(draw_catchup, cases, [peer for _, peer in peers])
    report(chosen, "catchup", found, describe(cases, peers) + attempts.told(), data, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
