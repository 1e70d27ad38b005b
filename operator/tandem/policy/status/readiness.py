"""Events of `Ready`: one when it turns false or its reason changes, one when it is true again."""

from collections.abc import Iterator
from typing import NamedTuple

from tandem.policy.decisions import RecordEvent
from tandem_core.model.states import ConditionStatus, ConditionType, EventReason, Phase
from tandem_core.model.status import Condition, Status

_SUBJECT = "the pipeline"


class Readiness(NamedTuple):
    """What was last told of `Ready`."""

    holds: bool
    reason: str


def readiness_told(status: Status) -> Readiness | None:
    """What a status shows as told; None of a pipeline that has not been ready yet."""
    ready = _ready(status)
    if ready is None or status.phase is Phase.COMPLETED:
        return None
    holds = ready.status is ConditionStatus.TRUE
    return _told(ready) if holds or status.epoch.delivered else None


def tell_readiness(
    before: Readiness | None, status: Status
) -> tuple[Readiness | None, tuple[RecordEvent, ...]]:
    """What is told once these events are written.

    A pipeline that starts is no event until it is ready. One that is completed has its own event.
    """
    ready = _ready(status)
    if ready is None or status.phase is Phase.COMPLETED:
        return before, ()
    now = _told(ready)
    if before is None and not now.holds:
        return None, ()
    return now, tuple(_changes(before, now, ready))


def _changes(before: Readiness | None, now: Readiness, ready: Condition) -> Iterator[RecordEvent]:
    if now.holds and before is not None and not before.holds:
        yield RecordEvent(EventReason.READY, _SUBJECT, "is ready again")
    elif not now.holds and now != before:
        detail = f"is not ready: {now.reason}: {ready.message}"
        yield RecordEvent(EventReason.NOT_READY, _SUBJECT, detail)


def _ready(status: Status) -> Condition | None:
    return next((each for each in status.conditions if each.type is ConditionType.READY), None)


def _told(ready: Condition) -> Readiness:
    return Readiness(ready.status is ConditionStatus.TRUE, ready.reason)
