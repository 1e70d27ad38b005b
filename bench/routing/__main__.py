"""`python -m bench.routing`: the paper's figures beside ours, timings, plots.

Prints tables and writes them to bench/results, plots to docs/images. With arguments (`figures`,
`speed`, `plots`) only those parts are run.
"""

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench.routing.figures import Line, all_lines
from bench.routing.plots import draw_all
from bench.routing.speed import REPEATS, Timing, all_timings, serialised_bytes

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
_LARGE = 1_000


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def number(value: float | None) -> str:
    """Format a value."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= _LARGE else f"{value:.3g}"


def figures_table(lines: Sequence[Line]) -> str:
    """The paper's figures beside ours, with notes below."""
    notes = list(dict.fromkeys(line.note for line in lines if line.note))
    rows = [
        (
            line.setting,
            line.method,
            line.quantity,
            line.paper,
            number(line.printed),
            number(line.tandem),
            line.verdict + (f" [{notes.index(line.note) + 1}]" if line.note else ""),
        )
        for line in lines
    ]
    head = ("setting", "method", "", "paper", "printed form here", "Tandem", "Tandem vs paper")
    told = "\n".join(f"[{i}] {note}" for i, note in enumerate(notes, 1))
    return f"{table(head, rows)}\n\n{told}"


def speed_table(timings: Sequence[Timing]) -> str:
    """Median and worst time of every operation."""
    rows = [(each.name, *each.describe(), each.target) for each in timings]
    head = (
        "operation",
        f"median of {REPEATS}",
        "worst",
        "rows",
        "median on core",
        "rows",
        "target",
    )
    return table(head, rows)


def machine() -> str:
    """The machine that the timings were taken on."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return (
        f"{model}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"pyarrow {pa.__version__}"
    )


def conditions() -> str:
    """The other load of the machine."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def write(part: str, report: object, text: str) -> None:
    """Print a part's result and write it to a file."""
    sys.stdout.write(text + "\n\n")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"routing-{part}.json").write_text(json.dumps(report, indent=1) + "\n")
    (RESULTS / f"routing-{part}.md").write_text(f"# Routing: {part}\n\n{text}\n")


def run_figures() -> None:
    """Compare with the paper."""
    lines = list(all_lines())
    report = [asdict(line) | {"verdict": line.verdict} for line in lines]
    write("figures", report, figures_table(lines))


def run_speed() -> None:
    """Time everything, on one core and one thread of Arrow."""
    pa.set_cpu_count(1)
    before = conditions()
    timings = list(all_timings())
    size = serialised_bytes()
    text = (
        f"{machine()}; {before} before, {conditions()} after, this measurement included.\n\n"
        f"{speed_table(timings)}\n\n"
        f"100 pairs and 1,000 hot keys take {size:,} bytes."
    )
    measured = [asdict(each) | {"median": each.median} for each in timings]
    write("speed", {"machine": machine(), "serialised_bytes": size, "timings": measured}, text)


def run_plots() -> None:
    """Draw all plots."""
    for path in draw_all(ROOT / "docs" / "images"):
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


PARTS = {"speed": run_speed, "figures": run_figures, "plots": run_plots}


def main(arguments: Sequence[str]) -> int:
    """Run the parts asked for, or all."""
    if unknown := set(arguments) - set(PARTS):
        sys.stderr.write(f"unknown part {sorted(unknown)}; there are {list(PARTS)}\n")
        return 2
    for part in arguments or PARTS:
        PARTS[part]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
