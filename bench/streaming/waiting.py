"""Waits for conditions during a run."""

import time
from collections.abc import Callable

_LOOK_SECONDS = 0.1


class RunFailed(Exception):
    """A run did not reach an expected state; the message describes its state."""


def wait_until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    """Return when a condition holds.

    Raises:
        RunFailed: it does not within the given seconds.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise RunFailed(f"not within {seconds:g} s: {what}")
        time.sleep(_LOOK_SECONDS)
