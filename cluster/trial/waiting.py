"""Waiting for something that takes its time, in a cluster that is being disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from cluster.steps import StepFailed
from tandem.kube.port import KubeError

Answer = TypeVar("Answer")

POLL_SECONDS = 0.2
PASSING = (StepFailed, KubeError)
"""What may go wrong while asking. It counts as not yet: a node or a connection may be down."""


class InVain(Exception):
    """What was waited for, or relied upon, did not come about; the message says what."""


def until(condition: Callable[[], Answer | None], limit: float, what: str) -> Answer:
    """Wait until a condition holds; what it answered, which is neither nothing nor false.

    Raises:
        InVain: it does not within so many seconds; the message has the last trouble.
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
    """Wait until there is no trouble left.

    Raises:
        InVain: some is left after so many seconds; the message tells all of it.
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
