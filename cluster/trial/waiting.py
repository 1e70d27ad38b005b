"""Waits for conditions in a cluster that is being disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from cluster.steps import StepFailed
from tandem.kube.port import KubeError

Answer = TypeVar("Answer")

POLL_SECONDS = 0.2
PASSING = (StepFailed, KubeError)
"""Errors while checking a condition that count as not yet: a node or connection may be down."""


class InVain(Exception):
    """An awaited or assumed condition did not hold; the message names it."""


def until(condition: Callable[[], Answer | None], limit: float, what: str) -> Answer:
    """Wait until a condition returns a true value; return it.

    Raises:
        InVain: it did not within `limit` seconds; the message has the last error.
    """
    deadline = time.monotonic() + limit
    while True:
        trouble = ""
        try:
            answer = condition()
        except PASSING as problem:
            trouble = f": {problem}"
        else:
            if answer:
                return answer
        if time.monotonic() >= deadline:
            raise InVain(f"not within {limit:g} s: {what}{trouble}")
        time.sleep(POLL_SECONDS)


def until_none(troubles: Callable[[], Sequence[str]], limit: float, what: str) -> None:
    """Wait until there are no troubles left.

    Raises:
        InVain: some are left after `limit` seconds; the message lists them.
    """
    left: Sequence[str] = ()

    def gone() -> bool:
        nonlocal left
        left = troubles()
        return not left

    try:
        until(gone, limit, what)
    except InVain as failure:
        raise InVain("; ".join([str(failure), *left])) from None
