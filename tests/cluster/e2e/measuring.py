"""How long nothing came out, and how long it took until all was whole again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

Note = Callable[[str], None]
"""Puts a line into the report that is printed at the end."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What one fault cost, in seconds."""

    gap: float
    """The longest time without a delivery, from the fault until all was whole again."""
    whole_after: float


def median_whole(recoveries: Sequence[Recovery]) -> float:
    """The median of the times until all was whole again."""
    return median(each.whole_after for each in recoveries)


def summary(what: str, recoveries: Sequence[Recovery], interval: float) -> str:
    """A line for the report: what was measured, beside what is promised."""
    gaps = [each.gap for each in recoveries]
    whole = [each.whole_after for each in recoveries]
    word = "within" if median(gaps) <= 2 * interval else "BEYOND"
    tries = f"{len(gaps)} tries" if len(gaps) > 1 else "one try"
    return (
        f"{what}: longest gap {_both(gaps)}, {word} two intervals of {interval:g} s; "
        f"whole again after {_both(whole)}; {tries}"
    )


def _both(seconds: Sequence[float]) -> str:
    if len(seconds) == 1:
        return f"{seconds[0]:.2f} s"
    return f"median {median(seconds):.2f} s, worst {max(seconds):.2f} s"
