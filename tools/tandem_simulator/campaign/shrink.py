"""Finds out which faults of a failing schedule matter, by leaving out the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

MOST_RUNS = 150
"""Most schedules that are run to shrink one."""


def shrink(steps: Sequence[int], fails: Callable[[frozenset[int]], bool]) -> tuple[int, ...]:
    """Drop steps while the schedule still fails; return the remaining ones.

    Args:
        steps: the steps that can be left out.
        fails: runs the schedule with only these steps; true if it fails in the same way.
    """
    kept = list(steps)
    runs = 0
    size = max(1, len(kept) // 2)
    while kept and runs < MOST_RUNS:
        start = 0
        progress = False
        while start < len(kept) and runs < MOST_RUNS:
            tried = kept[:start] + kept[start + size :]
            runs += 1
            if fails(frozenset(tried)):
                kept = tried
                progress = True
            else:
                start += size
        if size == 1 and not progress:
            break
        size = max(1, size // 2)
    return tuple(kept)
