"""Resizes the running pipeline and records when each change was asked for and done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from demo.failures import Told
from tandem.local.store.directory import Directory
from tandem_cli.changing.targets import DirectoryTarget
from tandem_core.model.states import EventReason


@dataclass(slots=True)
class Resize:
    """A change of the number of pairs."""

    before: int
    after: int
    asked_at: float
    cut_at: float | None = None
    """When the lead named the new pairs; None if it did not."""
    done_at: float | None = None
    """When the replaced pairs had ended; None if they did not."""


def ask_for_pairs(directory: Directory, count: int) -> None:
    """As `tandem scale pairs=COUNT` does."""
    DirectoryTarget(directory).scale({"pairs": count})


def follow(resize: Resize, told: Iterable[Told]) -> None:
    """Record how far a change is, from the events since it was asked for."""
    for each in told:
        if each.at <= resize.asked_at:
            continue
        if each.reason == EventReason.GENERATION_CUT:
            resize.cut_at = resize.cut_at or each.at
        elif each.reason == EventReason.GENERATION_RETIRED:
            resize.done_at = resize.done_at or each.at
