"""One step of a change: the next intent, with what is written before and after it."""

from dataclasses import dataclass

from tandem.policy.decisions import RecordEvent
from tandem_core.contract.intent import HISTORY, Function, Intent, PastChange
from tandem_core.model.states import EventReason


@dataclass(frozen=True, slots=True)
class IntentStep:
    """A step of a change. Its documents are written before its intent, its events after."""

    intent: Intent
    reason: str
    functions: tuple[Function, ...] = ()
    records: tuple[RecordEvent, ...] = ()


def change_event(reason: EventReason, generation: int, detail: str) -> RecordEvent:
    """Return an event about a generation, or about the change if it has none (0)."""
    subject = f"generation {generation}" if generation else "the change of pairs"
    return RecordEvent(reason, subject, detail)


def step_to(intent: Intent, reason: str, *records: RecordEvent) -> IntentStep:
    """Return the step to an intent, which gets the next version."""
    return IntentStep(intent.replace(version=intent.version + 1), reason, (), records)


def with_past(intent: Intent, past: PastChange) -> Intent:
    """Return the intent with one more change in its history, which is bounded."""
    return intent.replace(history=(past, *intent.history)[:HISTORY])
