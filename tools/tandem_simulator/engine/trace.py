"""Records events as lines, when a failing schedule is rerun for its story."""

from __future__ import annotations

from typing import NamedTuple

FAULT, TURN, DETAIL, ROUTINE = 3, 2, 1, 0
"""The weight of a line: faults and violations, turns of the story, details, routine."""


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
        """Add a line, unless this process repeats its last one."""
        for line in reversed(self.lines[-12:]):
            if line.who == who:
                if line.text == text:
                    return
                break
        self.lines.append(Line(time, who, text, weight, epoch))
