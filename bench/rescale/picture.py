"""Draws the measurement, for the documentation."""

from collections.abc import Sequence
from pathlib import Path

from bench.rescale.changes import Case
from bench.streaming.pictures import COLOURS, save
from matplotlib import pyplot as plt


def draw(cases: Sequence[Case], path: Path) -> None:
    """Draw deliveries around a typical change of each case, and all longest gaps."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 0.4 * len(cases) + 1.6), sharey=True)
    for row, case in enumerate(cases):
        colour = COLOURS[0] if case.name.startswith("Tandem") else COLOURS[3]
        by_gap = sorted(case.changes, key=lambda change: change.gap)
        typical = by_gap[len(by_gap) // 2]
        times = typical.deliveries
        left.plot(times, [row] * len(times), "|", color=colour, ms=11)
        if typical.to_cut is not None and typical.to_retirement is not None:
            left.plot([typical.to_cut], [row], "v", color=COLOURS[2], ms=5)
            left.plot([typical.to_retirement], [row], "o", color=COLOURS[2], ms=4)
        right.plot(case.gaps, [row] * len(case.gaps), "o", color=colour, alpha=0.6, mew=0)
        interval = case.setting.interval
        right.plot([2 * interval] * 2, [row - 0.4, row + 0.4], color="black", lw=0.8, ls=":")
    left.axvline(0, color="black", lw=0.8)
    left.set_xlabel("deliveries, seconds after the request; triangle: cut, dot: old pairs retired")
    left.set_yticks(range(len(cases)), [f"{case.name}, {case.setting.keys:,}" for case in cases])
    left.invert_yaxis()
    right.set_xscale("log")
    right.set_xlabel("longest gap, seconds; dotted: two intervals")
    save(figure, path)
