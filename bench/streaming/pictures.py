"""Draws plots of the measurements, for the documentation."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from bench.streaming.report import median
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from bench.streaming import catchup, epochs, failover, memory, throughput

mpl.use("Agg")
from matplotlib import pyplot as plt

COLOURS = ("#1f78b4", "#66a61e", "#d95f02", "#999999", "#7570b3", "#e6ab02")


def draw_failover(
    cases: Sequence["failover.Case"], kinds: Sequence[str], interval: float, path: Path
) -> None:
    """Draw deliveries around one failure of each case, and all longest gaps, coloured by kind."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 0.4 * len(cases) + 1.6), sharey=True)
    colours = dict(zip(dict.fromkeys(kinds), COLOURS, strict=False))
    for row, (case, kind) in enumerate(zip(cases, kinds, strict=True)):
        colour = colours[kind]
        by_gap = sorted(case.failures, key=lambda failure: failure.gap)
        typical = by_gap[len(by_gap) // 2]
        left.plot(typical.deliveries, [row] * len(typical.deliveries), "|", color=colour, ms=11)
        right.plot(case.gaps, [row] * len(case.gaps), "o", color=colour, alpha=0.6, mew=0)
    left.axvline(0, color="black", lw=0.8)
    left.set_xlabel("deliveries, seconds after the failure")
    left.set_yticks(range(len(cases)), [f"{case.name}, {case.keys:,} keys" for case in cases])
    left.invert_yaxis()
    right.axvline(2 * interval, color="black", lw=0.8, ls=":")
    right.set_xscale("log")
    right.set_xlabel("longest gap, seconds; dotted: two intervals")
    save(figure, path)


def draw_throughput(
    results: Sequence[tuple["throughput.Case", list["throughput.Run"]]], path: Path
) -> None:
    """Draw rates, and processor time for a million rows by kind of process."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 0.4 * len(results) + 2), sharey=True)
    kinds = sorted({kind for _, runs in results for run in runs for kind in run.cpu})
    for row, (_, runs) in enumerate(results):
        left.barh(row, median([run.rate for run in runs]) / 1e6, color="#c6dbef")
        left.plot([run.rate / 1e6 for run in runs], [row] * len(runs), "ko", ms=3)
        done = 0.0
        for kind, colour in zip(kinds, COLOURS, strict=False):
            used = median([run.cpu.get(kind, 0.0) for run in runs])
            right.barh(row, used, left=done, color=colour, label=kind if row == 0 else None)
            done += used
    left.set_yticks(range(len(results)), [case.name for case, _ in results])
    left.invert_yaxis()
    left.set_xlabel("million rows per second")
    right.set_xlabel("seconds of processor time for a million rows")
    right.legend(fontsize=8)
    save(figure, path)


def draw_epochs(cases: Sequence["epochs.Case"], interval: float, path: Path) -> None:
    """Draw the share of rows by latency."""
    figure, axis = plt.subplots(figsize=(8, 4))
    for case, colour in zip(cases, COLOURS, strict=False):
        values = np.sort(case.latencies)
        axis.plot(
            values, np.arange(1, len(values) + 1) / len(values), color=colour, label=case.name
        )
    axis.axvline(interval, color="black", lw=0.8, ls=":", label="one interval")
    axis.set_xscale("log")
    axis.set_xlabel("seconds from when a row is due to when its result is delivered")
    axis.set_ylabel("share of rows")
    axis.legend(fontsize=8)
    save(figure, path)


def draw_catchup(
    cases: Sequence["catchup.Case"], peers: Sequence["failover.Case"], path: Path
) -> None:
    """Draw recovery times, and the longest gaps meanwhile."""
    names = [f"Tandem, {case.way}, {case.setting.keys:,} keys" for case in cases]
    names += [f"{peer.name}, {peer.keys:,} keys" for peer in peers]
    figure, axis = plt.subplots(figsize=(9, 0.45 * len(names) + 1.8))
    for row, case in enumerate(cases):
        tries = len(case.whole_after)
        axis.plot(case.whole_after, [row] * tries, "o", color=COLOURS[0], alpha=0.7, mew=0)
        axis.plot(case.longest_gaps, [row] * tries, "|", color=COLOURS[2], ms=12)
    for row, peer in enumerate(peers, start=len(cases)):
        axis.plot(peer.gaps, [row] * len(peer.gaps), "|", color=COLOURS[2], ms=12)
    axis.plot([], [], "o", color=COLOURS[0], label="paired again")
    axis.plot([], [], "|", color=COLOURS[2], ms=12, label="longest gap in the output")
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("seconds after kill -9")
    axis.legend(fontsize=8)
    save(figure, path)


def draw_memory(result: "memory.Result", path: Path) -> None:
    """Draw memory of each member, bytes on volumes and rows read, over time."""
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(9, 8), sharex=True)
    start = result.samples[0].at
    names = sorted({usage.name for each in result.samples for usage in each.usages.values()})
    for name in names:
        points = [
            (each.at - start, usage.rss / 1e6)
            for each in result.samples
            for usage in each.usages.values()
            if usage.name == name
        ]
        top.plot(*zip(*points, strict=True), label=name)
    for kind in sorted({kind for look in result.looks for kind in look.volumes}):
        sizes = [look.volumes.get(kind, 0) / 1e6 for look in result.looks]
        middle.plot([look.at - start for look in result.looks], sizes, label=kind)
    bottom.plot(
        [look.at - start for look in result.looks], [look.rows_read / 1e6 for look in result.looks]
    )
    for axis, label in (
        (top, "resident memory, MB"),
        (middle, "all volumes of a kind, MB"),
        (bottom, "million rows read"),
    ):
        axis.axvspan(*(at - start for at in result.frozen), color="#eeeeee")
        axis.set_ylabel(label)
    top.legend(fontsize=7, ncols=2)
    middle.legend(fontsize=7)
    bottom.set_xlabel("seconds; grey: both merges frozen")
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a plot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
