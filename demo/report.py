"""Prints the demonstration's texts, on a terminal or into the log of a build."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.changes import Resize
from demo.failures import Failure
from demo.recount import Recount, deliveries, longest_gap


class Gap(NamedTuple):
    """The longest time between two delivered epochs in a period, in seconds."""

    when: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Findings:
    """The results of a demonstration."""

    rows_in: int
    recount: Recount
    gaps: tuple[Gap, ...]
    failures: tuple[Failure, ...]
    resizes: tuple[Resize, ...]
    take_overs: int

    @property
    def good(self) -> bool:
        """Whether the output equals the recount and every change of the pairs was made."""
        return self.recount.good and all(each.done_at is not None for each in self.resizes)


def gaps_of(
    failures: Sequence[Failure],
    resizes: Sequence[Resize],
    warm_at: float | None,
    output: Path,
) -> tuple[Gap, ...]:
    """The longest gaps in an output: undisturbed, until recovery, and during each change."""
    times, never = deliveries(output), math.inf
    broken = min((failure.at for failure in failures), default=never)
    whole = max((failure.paired_at or never for failure in failures), default=never)
    periods = [
        ("before", warm_at or never, broken),
        ("until all pairs had recovered", broken, whole),
        *(
            (f"while {each.before} pairs became {each.after}", each.asked_at, each.done_at or never)
            for each in resizes
        ),
    ]
    return tuple(Gap(when, longest_gap(times, begin, end)) for when, begin, end in periods)


def introduce(console: Console, manifest: Path, introduction: str) -> None:
    """Announce the demonstration."""
    console.rule("Tandem")
    console.print(introduction)
    console.print(f"The manifest: {manifest}\n", soft_wrap=True)


def speaker(console: Console) -> Callable[[str], None]:
    """Return a function that prints a line, above the live view if there is one."""
    return lambda text: console.print(Text(f"» {text}", style="bold cyan"), soft_wrap=True)


def conclude(console: Console, findings: Findings) -> None:
    """Print the results."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for what, value, remark in _lines(findings):
        table.add_row(what, value, remark)
    console.print()
    console.rule("Results")
    console.print(table)
    style = "bold green" if findings.good else "bold red"
    console.print(Text(_verdict(findings), style=style))


def _verdict(findings: Findings) -> str:
    if not findings.recount.good:
        return "The output DIFFERS from the recount."
    if not findings.good:
        return "Nothing lost, nothing duplicated, but the pairs were NOT CHANGED in time."
    return "Nothing lost, nothing duplicated."


def _lines(findings: Findings) -> Iterator[tuple[str, str, str]]:
    recount = findings.recount
    yield "rows in", f"{findings.rows_in:,}", "payments"
    yield "results", f"{recount.results:,}", "updated totals of users"
    yield (
        "correct users",
        f"{recount.agreeing:,} of {recount.users:,}",
        "against a recount by DuckDB",
    )
    yield "lost", f"{recount.lost:,}", "payments"
    yield "duplicated", f"{recount.doubled + recount.repeated:,}", "payments or results"
    yield "failovers", f"{findings.take_overs:,}", ""
    for number, gap in enumerate(findings.gaps):
        yield "" if number else "longest gap", _seconds(gap.seconds), gap.when
    for failure in findings.failures:
        again = None if failure.paired_at is None else failure.paired_at - failure.at
        yield f"{failure.pair} recovered", _seconds(again), f"after: {failure.what}"
    for each in findings.resizes:
        took = None if each.done_at is None else each.done_at - each.asked_at
        yield f"{each.before} → {each.after} pairs", _seconds(took), "until replaced drivers ended"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"
