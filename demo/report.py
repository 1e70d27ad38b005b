"""What the demonstration says, on a terminal as well as in the log of a build."""

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
    """What is told at the end."""

    rows_in: int
    recount: Recount
    gaps: Gaps
    failures: tuple[Failure, ...]
    take_overs: int


def gaps_around(failures: Sequence[Failure], warm_at: float | None, output: Path) -> Gaps:
    """The longest gaps in an output before its failures, until they were overcome, and after."""
    broken = min((failure.at for failure in failures), default=math.inf)
    whole = max((failure.paired_at or math.inf for failure in failures), default=math.inf)
    return gaps(deliveries(output), warm_at or math.inf, broken, whole)


def introduce(console: Console, manifest: Path, introduction: str) -> None:
    """Say what is going to happen."""
    console.rule("Tandem")
    console.print(introduction)
    console.print(f"The manifest: {manifest}\n", soft_wrap=True)


def speaker(console: Console) -> Callable[[str], None]:
    """Says something above the table, or between the lines where there is none."""
    return lambda text: console.print(Text(f"» {text}", style="bold cyan"), soft_wrap=True)


def conclude(console: Console, findings: Findings) -> None:
    """Tell what was counted."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for what, value, remark in _lines(findings):
        table.add_row(what, value, remark)
    console.print()
    console.rule("What was counted")
    console.print(table)
    good = findings.recount.good
    verdict = "Nothing lost, nothing doubled." if good else "NOT what the recount says."
    console.print(Text(verdict, style="bold green" if good else "bold red"))


def _lines(findings: Findings) -> Iterator[tuple[str, str, str]]:
    recount = findings.recount
    yield "rows in", f"{findings.rows_in:,}", "payments"
    yield "results", f"{recount.results:,}", "new totals of users"
    yield "users right", f"{recount.agreeing:,} of {recount.users:,}", "against a recount by DuckDB"
    yield "lost", f"{recount.lost:,}", "payments"
    yield "duplicated", f"{recount.doubled + recount.repeated:,}", "payments or results"
    yield "failovers", f"{findings.take_overs:,}", ""
    yield "longest gap", _seconds(findings.gaps.before), "between two delivered epochs, before"
    yield "", _seconds(findings.gaps.during), "while the pairs were broken"
    yield "", _seconds(findings.gaps.after), "afterwards"
    for failure in findings.failures:
        again = None if failure.paired_at is None else failure.paired_at - failure.at
        yield f"{failure.pair} paired again", _seconds(again), f"its {failure.what}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"
