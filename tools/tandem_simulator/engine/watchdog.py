"""Ends a machine that never returns: a schedule takes milliseconds, so seconds mean a loop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT = 10.0
"""Seconds of processor time for one schedule."""


class EndlessError(Exception):
    """A machine did not return."""


@contextmanager
def watchdog(limit: float = LIMIT) -> Iterator[None]:
    """Raise `EndlessError` inside the block when it has used too much processor time."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return

    def bark(_number: int, _frame: object) -> None:
        raise EndlessError(f"no end within {limit} s of processor time")

    before = signal.signal(signal.SIGVTALRM, bark)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
