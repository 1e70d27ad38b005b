"""Logs what reconciles decide: one line for each reconcile with news."""

import logging
from collections.abc import Callable

from tandem.policy.status.decision_line import DecisionLine
from tandem.policy.status.steps import GRAVE, LASTING, Step, news
from tandem_core.logs.json_lines import FIELDS

NOTHING = "nothing"
"""The observation of a reconcile that ended before it observed members."""

LINE = FIELDS
"""The attribute of a log record that holds what a reconcile decided."""

_log = logging.getLogger("tandem.decisions")


def write_line(line: DecisionLine, level: int, error: BaseException | None = None) -> None:
    """Log what a reconcile decided."""
    _log.log(level, "reconciled", extra={LINE: line}, exc_info=error)


class DecisionLog:
    """Collects what the reconciles of one pipeline decide, and logs a line for each with news.

    To be used by one thread at a time.
    """

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._steps: list[Step] = []
        self._observed: Callable[[tuple[Step, ...]], str] = lambda _: NOTHING
        self._lasting: frozenset[Step] = frozenset()

    def begin(self) -> None:
        """Begin a reconcile."""
        self._steps = []
        self._observed = lambda _: NOTHING

    def observed(self, text: Callable[[tuple[Step, ...]], str]) -> None:
        """Set the function that describes the observation; called only if a line is written."""
        self._observed = text

    def note(self, step: Step) -> None:
        """Add a step that was done or deferred."""
        self._steps.append(step)

    def end(self) -> None:
        """End the reconcile and log its new steps."""
        new = news(self._steps, self._lasting)
        self._lasting = _lasting(self._steps)
        if new:
            grave = any(step.action in GRAVE for step in new)
            write_line(self._line(new), logging.WARNING if grave else logging.INFO)

    def failed(self) -> DecisionLine:
        """End a failed reconcile; returns its steps so far, to be logged with the error."""
        line = self._line(news(self._steps, self._lasting))
        # Lasting steps that it did not reach may still last.
        self._lasting |= _lasting(self._steps)
        self._steps = []
        return line

    def _line(self, new: tuple[Step, ...]) -> DecisionLine:
        return DecisionLine(self._pipeline, self._observed(new), new)


def _lasting(steps: list[Step]) -> frozenset[Step]:
    return frozenset(step for step in steps if step.action in LASTING)
