"""Prints the demonstration's texts, on a terminal or into the log of a build."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.failures import Failure
from demo.recount import Gaps, Recount, deliveries, gaps


@dataclass(frozen=True, slots=True)
class Findings:
    """The results of a demonstration."""

    rows_in: int
    recount: Recount
    gaps: Gaps
    failures: tuple[Failure, ...]
    take_overs: int


def gaps_around(failures: Sequence[Failure], warm_at: float | None, output: Path) -> Gaps:
    """The longest gaps in an output before its failures, until recovery, and afterwards."""
    broken = min((failure.at for failure in failures), default=math.inf)
    whole = max((failure.paired_at or math.inf for failure in failures), default=math.inf)
    return gaps(deliveries(output), warm_at or math.inf, broken, whole)


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
    good = findings.recount.good
    verdict = (
        "Nothing lost, nothing duplicated." if good else "The output DIFFERS from the recount."
    )
    console.print(Text(verdict, style="bold green" if good else "bold red"))


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
    yield "longest gap", _seconds(findings.gaps.before), "between two delivered epochs, before"
    yield "", _seconds(findings.gaps.during), "until all pairs had recovered"
    yield "", _seconds(findings.gaps.after), "afterwards"
    for failure in findings.failures:
        again = None if failure.paired_at is None else failure.paired_at - failure.at
        yield f"{failure.pair} recovered", _seconds(again), f"after: {failure.what}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"
