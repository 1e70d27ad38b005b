"""Writes the conditions of a measurement, tables and result files."""

import argparse
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from bench.streaming.waiting import RunFailed

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
IMAGES = ROOT / "docs" / "images"
DOCUMENT = ROOT / "docs" / "benchmarks.md"


def conditions(settings: Mapping[str, object]) -> dict[str, Any]:
    """The machine and settings of a measurement; call it before the measurement begins."""
    return {
        "machine": _processor(),
        "cores": sorted(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "versions": {
            "python": platform.python_version(),
            "java": _java_version(),
            **{name: version(name) for name in ("pyspark", "pyarrow", "numpy")},
        },
        "settings": dict(settings),
    }


def conditions_text(found: Mapping[str, Any]) -> str:
    """Format the conditions."""
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    settings = ", ".join(f"{name} {value}" for name, value in found["settings"].items())
    return (
        f"{found['machine']}, {len(found['cores'])} cores, {found['memory_gib']} GiB; load average "
        f"{found['load_before']} before; {versions}. Settings: {settings}."
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table with aligned columns."""
    lines = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in ruled
    )


def seconds(value: float) -> str:
    """Format a time."""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def median(values: Sequence[float]) -> float:
    """The median; NaN if there are no values."""
    return float(np.median(values)) if len(values) else float("nan")


def verdict(reached: bool) -> str:
    """Whether a target is met."""
    return "reached" if reached else "NOT REACHED"


def arguments_parser(name: str, about: str | None) -> argparse.ArgumentParser:
    """Arguments that all measurements have."""
    parser = argparse.ArgumentParser(prog=f"bench.streaming.{name}", description=about)
    parser.add_argument(
        "--draft", action="store_true", help="print only; leave results and pictures as they are"
    )
    return parser


class Attempts:
    """Runs cases one after the other; a failing case loses only its own result."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def run(self, name: str, measure: Callable[[], T]) -> list[T]:
        """Run a case; return its result as a list, empty if it failed."""
        say(name)
        try:
            return [measure()]
        except RunFailed as failure:
            say(f"  FAILED: {failure}")
            self.failed.append(name)
            return []

    def told(self) -> str:
        """The failures, for the report."""
        return "".join(f"\n- FAILED, no result: {name}" for name in self.failed)


def report(
    chosen: argparse.Namespace,
    name: str,
    found: Mapping[str, Any],
    body: str,
    data: object,
    draw: Callable[[Path], None] | None = None,
) -> None:
    """Print a result and, unless it is a draft, keep it as text and data, with a picture."""
    text = f"{conditions_text(found)}\n\n{body}\n"
    print(f"\n{text}")
    if chosen.draft:
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"# {name.capitalize()}\n\n{text}")
    document = {"conditions": found, "results": data}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    if draw is not None:
        draw(IMAGES / f"{name}.png")
    DOCUMENT.write_text(with_section(DOCUMENT.read_text(), name, text))


def with_section(document: str, name: str, text: str) -> str:
    """Replace the text between a measurement's two marks in a document."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = document.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{text}{end}{after}"


def say(text: str) -> None:
    """Report the progress of a measurement."""
    print(text, flush=True)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _java_version() -> str:
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)  # noqa: S607
    found = re.search(r'"([^"]+)"', said.stderr)
    return found[1] if found else "none"
