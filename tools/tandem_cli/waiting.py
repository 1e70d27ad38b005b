"""`tandem status --wait`: waits until a pipeline is ready and every pair has all its replicas.

A status on disk may be older than the command, for instance older than a preceding `tandem kill`.
It counts only after two writes: the second one rests on observations made after the command began.
"""

import time
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tandem_core.model.states import ConditionStatus, ConditionType, Phase
from tandem_core.model.status import Status, has_all_pairs_ready, why_not_ready

EVERY = 0.2
"""Seconds between two reads of the status."""


class Progress(Enum):
    """Progress of a pipeline towards being ready."""

    WAITING = "waiting"
    READY = "ready"
    STOPPED = "stopped"
    """The pipeline will not become ready by itself."""


class Version(NamedTuple):
    """A status that was read."""

    status: Status
    written: object
    """Differs whenever the status has been written again."""


def progress_of(status: Status) -> Progress:
    """Classify a status."""
    if status.phase is Phase.COMPLETED:
        return Progress.READY
    if status.phase.is_terminal:
        return Progress.STOPPED
    ready = any(
        condition.type is ConditionType.READY and condition.status is ConditionStatus.TRUE
        for condition in status.conditions
    )
    return Progress.READY if ready and has_all_pairs_ready(status) else Progress.WAITING


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
    """Poll until the pipeline is ready, cannot become ready, or time is up.

    `look` returns None while there is no such pipeline. Each new reason for waiting is reported
    once.
    """
    end = clock() + seconds
    versions: list[object] = []
    said = ""
    while clock() < end:
        found = look()
        if found is not None and found.written not in versions[-1:]:
            versions.append(found.written)
        # The first version may be old, the second may have been in progress.
        fresh = len(versions) > 2  # noqa: PLR2004
        if found is not None and fresh and progress_of(found.status) is not Progress.WAITING:
            return progress_of(found.status)
        lacks = describe(found.status) if found is not None and fresh else "no current status yet"
        if lacks != said:
            said = lacks
            say(lacks)
        sleep(EVERY)
    return Progress.WAITING
