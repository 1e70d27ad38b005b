"""Events of changes that a status does not show yet: their writer may have died before it told.

A new controller writes them once more rather than not at all.
"""

from collections.abc import Iterator

from tandem.policy.change.intent_step import change_event
from tandem.policy.decisions import RecordEvent
from tandem.policy.status.change_status import history_of
from tandem_core.contract.intent import Intent
from tandem_core.model.change import PastChangeStatus
from tandem_core.model.states import ChangeStage, EventReason
from tandem_core.model.status import Status

_HAS_GENERATION = frozenset(
    {ChangeStage.BUILDING, ChangeStage.SYNCED, ChangeStage.CUTTING, ChangeStage.RETIRING}
)


def untold_changes(intent: Intent, status: Status) -> Iterator[RecordEvent]:
    """Events of the steps in the intent that the last status does not show, oldest first."""
    shown = {(past.generation, past.ended) for past in status.history}
    for past in reversed(history_of(intent)):
        if (past.generation, past.ended) not in shown:
            yield _ended(past)
    change = intent.change
    if change is None or change.stage not in _HAS_GENERATION:
        return
    if status.change is None or status.change.target != change.generation:
        detail = f"is being built: {change.goal.pairs} pairs are wanted"
        yield change_event(EventReason.GENERATION_PLANNED, change.generation, detail)


def _ended(past: PastChangeStatus) -> RecordEvent:
    if past.abandoned:
        detail = f"was given up: {past.abandoned}"
        return change_event(EventReason.GENERATION_ABANDONED, past.generation, detail)
    counts = f"{past.pairs_before} pairs before, {past.pairs_after} now"
    detail = f"has replaced the generation before it: {counts}"
    return change_event(EventReason.GENERATION_RETIRED, past.generation, detail)
