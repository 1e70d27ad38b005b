"""What happened, line by line; kept only while a failing schedule is run again for its story."""

from __future__ import annotations

from typing import NamedTuple

FAULT, TURN, DETAIL, ROUTINE = 3, 2, 1, 0
"""How much a line tells: faults and breaks, turns of the story, details, daily business."""


class Line(NamedTuple):
    """One line of a story."""

    time: int
    who: str
    text: str
    weight: int
    epoch: int = 0


class Trace:
    """Collects lines."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def note(self, time: int, who: str, text: str, weight: int, epoch: int = 0) -> None:
        """Add a line, unless it only repeats what this one said last."""
        for line in reversed(self.lines[-12:]):
            if line.who == who:
                if line.text == text:
                    return
                break
        self.lines.append(Line(time, who, text, weight, epoch))
