"""The report of the measurement: table, verdicts and data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from bench.rescale.changes import Case, Change, p99
from bench.rescale.plain_side import name_of
from bench.rescale.tandem_side import FEWER, HOT, MORE, unchanged
from bench.streaming.plain_run import Launch
from bench.streaming.report import median, seconds, table, verdict

CHANGES = {MORE: "one to two", FEWER: "two to one"}
"""Changes that have targets, and what plain Spark calls the same."""
MOST_INTERVALS = 2
"""Target of the median of the longest gap, in intervals."""
TIMES_SHORTER = 20
"""Target: how many times shorter the gap is than that of plain Spark, stock launch."""
MOST_LOAD = 0.3

_HEAD = (
    *("", "keys", "epochs", "longest gap, median", "worst", "delay of epochs, p99"),
    *("late by more", "until cut, median", "worst", "until retired", "worst"),
    *("state", "sent", "load", "recount"),
)


def describe(cases: Sequence[Case]) -> str:
    """Table and verdicts."""
    return "\n".join([table(_HEAD, [_row(case) for case in cases]), "", *_targets(cases)])


def _row(case: Case) -> tuple[str, ...]:
    return (
        case.name,
        f"{case.setting.keys:,}",
        f"{case.setting.interval_ms} ms",
        seconds(median(case.gaps)),
        seconds(max(case.gaps)),
        seconds(p99(case.delays)),
        f"{case.late_epochs} of {len(case.delays)}",
        *_both(case, lambda change: change.to_cut),
        *_both(case, lambda change: change.to_retirement),
        _bytes(case, lambda change: change.state_bytes),
        _bytes(case, lambda change: change.sent_bytes),
        f"{case.load:.0%}",
        case.verdict.brief,
    )


def _both(case: Case, value: Callable[[Change], float | None]) -> tuple[str, str]:
    """The median and the worst of a time; empty if it does not exist."""
    found = [each for change in case.changes if (each := value(change)) is not None]
    return (seconds(median(found)), seconds(max(found))) if found else ("", "")


def _bytes(case: Case, value: Callable[[Change], int | None]) -> str:
    found = [each for change in case.changes if (each := value(change)) is not None]
    return f"{median(found) / 1e6:.1f} MB" if found else ""


def _targets(cases: Sequence[Case]) -> Iterator[str]:
    known = {(case.name, case.setting.keys): case for case in cases}
    for case in cases:
        if case.name in {*CHANGES, HOT}:
            yield from _of_change(case, known)


def _of_change(case: Case, known: dict[tuple[str, int], Case]) -> Iterator[str]:
    setting, gap = case.setting, median(case.gaps)
    limit = MOST_INTERVALS * setting.interval
    what = f"- {case.name}, {setting.keys:,} keys: median of the longest gap {seconds(gap)}"
    yield f"{what}, target at most {seconds(limit)}: {verdict(gap <= limit)}"
    for pairs in (1, 2):
        calm = known.get((unchanged(pairs), setting.keys))
        if calm is not None:
            yield f"  - worst {seconds(max(case.gaps))}; {calm.name}: {seconds(max(calm.gaps))}"
    for launch in Launch if case.name in CHANGES else ():
        peer = known.get((f"{name_of(launch)}, {CHANGES[case.name]}", setting.keys))
        if peer is not None:
            ratio = median(peer.gaps) / gap
            target = f", target {TIMES_SHORTER}: {verdict(ratio >= TIMES_SHORTER)}"
            shown = target if launch is Launch.STOCK else ""
            yield f"  - {ratio:.1f} times shorter than {peer.name}{shown}"
    delay = p99(case.delays)
    what = f"  - epochs delayed by {seconds(delay)} at p99"
    yield f"{what}, target one interval: {verdict(delay <= setting.interval)}"
    reached = verdict(case.load <= MOST_LOAD)
    yield f"  - measured at a load of {case.load:.0%}, target at most {MOST_LOAD:.0%}: {reached}"


def data(cases: Sequence[Case]) -> list[dict[str, object]]:
    """The results for programs."""
    return [
        {
            **asdict(case),
            "median_gap": median(case.gaps),
            "worst_gap": max(case.gaps),
            "p99_delay": p99(case.delays),
            "late_epochs": case.late_epochs,
        }
        for case in cases
    ]
