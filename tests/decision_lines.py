"""What reconciles have logged, as tests look at it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tandem.output.json_logs import LINE
from tandem.policy.status.decision_line import DecisionLine


class Lines(logging.Handler):
    """Keeps the lines of reconciles; to be added to a logger."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[DecisionLine] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = getattr(record, LINE, None)
        if isinstance(line, DecisionLine):
            self._lines.append(line)

    def take(self) -> list[DecisionLine]:
        """The lines since it was last asked."""
        taken, self._lines = self._lines, []
        return taken


@contextmanager
def kept_lines() -> Iterator[Lines]:
    """The lines of all reconciles within."""
    kept, log = Lines(), logging.getLogger("tandem")
    before = log.level
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    try:
        yield kept
    finally:
        log.setLevel(before)
        log.removeHandler(kept)
