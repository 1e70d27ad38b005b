"""`python -m bench.routing`: the paper's figures beside ours, timings, pictures.

Writes bench/results/routing.json and .md, and pictures to docs/images. With an argument (`figures`,
`speed` or `plots`) only that part is run and only printed or drawn.
"""

import json
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
PARTS = ("figures", "speed", "plots")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def number(value: float | None) -> str:
    """A value for people."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= _LARGE else f"{value:.3g}"


def figures_table(lines: Sequence[Line]) -> str:
    """Paper beside ours, with the notes below."""
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
    """Median and worst of every operation."""
    rows = [(each.name, *each.describe(), each.target) for each in timings]
    return table(("operation", f"median of {REPEATS}", "worst", "rate", "target"), rows)


def machine() -> str:
    """What the timings were taken on."""
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


def main(arguments: Sequence[str]) -> int:
    """Run the parts asked for, or all and write the results."""
    parts = arguments or PARTS
    if unknown := set(parts) - set(PARTS):
        sys.stderr.write(f"unknown part {sorted(unknown)}; there are {PARTS}\n")
        return 2
    report: dict[str, object] = {"machine": machine()}
    told = [f"Machine: {machine()}"]
    if "figures" in parts:
        lines = list(all_lines())
        report["figures"] = [asdict(line) | {"verdict": line.verdict} for line in lines]
        told.append(figures_table(lines))
    if "speed" in parts:
        timings = list(all_timings())
        report["speed"] = [asdict(each) | {"median": each.median} for each in timings]
        report["serialised_bytes"] = serialised_bytes()
        told.append(speed_table(timings))
        told.append(f"100 pairs and 1,000 hot keys take {serialised_bytes():,} bytes.")
    if "plots" in parts:
        told += [str(path.relative_to(ROOT)) for path in draw_all(ROOT / "docs" / "images")]
    text = "\n\n".join(told)
    sys.stdout.write(text + "\n")
    if not arguments:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "routing.json").write_text(json.dumps(report, indent=1) + "\n")
        (RESULTS / "routing.md").write_text(f"# Routing: measured\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
