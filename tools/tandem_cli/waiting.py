"""`tandem status --wait`: waits until a pipeline is ready and every pair has all its replicas.

A status on disk may be older than the command, for instance older than the `tandem kill` before it.
So one counts only when it was written twice since: the second one rests on what was observed after
the command began.
"""

import time
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tandem_core.model.states import ConditionStatus, ConditionType, Phase
from tandem_core.model.status import Status, why_not_ready

EVERY = 0.2
"""Seconds between two looks."""


class Progress(Enum):
    """Where a pipeline is on its way to being ready."""

    WAITING = "waiting"
    READY = "ready"
    STOPPED = "stopped"
    """It will not become ready by itself."""


class Version(NamedTuple):
    """A status as it was found."""

    status: Status
    written: object
    """Changes whenever the status is written."""


def progress_of(status: Status) -> Progress:
    """Whether to go on waiting."""
    if status.phase in (Phase.REFUSED, Phase.HALTED):
        return Progress.STOPPED
    if status.phase is Phase.COMPLETED:
        return Progress.READY
    ready = any(
        condition.type is ConditionType.READY and condition.status is ConditionStatus.TRUE
        for condition in status.conditions
    )
    whole, pairs = status.pairs_ready.split("/")
    return Progress.READY if ready and whole == pairs != "0" else Progress.WAITING


def describe(status: Status) -> str:
    """What a pipeline still lacks, on one line."""
    return why_not_ready(status) or (
        f"{status.phase}, {status.pairs_ready} pairs have all their replicas"
    )


def wait_until_ready(
    look: Callable[[], Version | None],
    seconds: float,
    say: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Progress:
    """Look until the pipeline is ready, cannot become so, or the time is over.

    `look` returns None while there is no such pipeline. Each new reason for waiting is said once.
    """
    end = clock() + seconds
    versions: list[object] = []
    said = ""
    while clock() < end:
        found = look()
        if found is not None and found.written not in versions[-1:]:
            versions.append(found.written)
        # The first version may be old, the second may have been under way.
        fresh = len(versions) > 2  # noqa: PLR2004
        if found is not None and fresh and progress_of(found.status) is not Progress.WAITING:
            return progress_of(found.status)
        lacks = describe(found.status) if found is not None and fresh else "no current status yet"
        if lacks != said:
            said = lacks
            say(lacks)
        sleep(EVERY)
    return Progress.WAITING
