"""Writes the records of a pipeline: when it begins, when roles change, when it is reset.

Each is written before anything that depends on it is done, so the next operator can continue.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tandem.control.intent_store import (
    NameConflict,
    Recorded,
    create_records,
    record_ending,
    revise_intent,
    swap_intent,
)
from tandem.control.observe import TAKEN
from tandem.control.reset import RESET_REASON
from tandem.kube.objects import name_of
from tandem.kube.port import Kube, Refused
from tandem.manifests.desired_state import Images
from tandem.policy.change.intent_step import IntentStep
from tandem.policy.decide import Outcome, rests_on_roles
from tandem.policy.decisions import Complete, Halt, Promote, RecordEvent, Wait, Withhold
from tandem.policy.snapshot import Complaint
from tandem.policy.status.steps import Action, Note, Step, step_of, swap_step
from tandem_core.contract.intent import Intent
from tandem_core.model.pipeline import Pipeline

NotedHere = Promote | RecordEvent | Halt | Withhold | Wait | Complete
"""Decisions that are noted when they are recorded; the others, when they are carried out."""


class Revised(NamedTuple):
    """What a turn has recorded."""

    recorded: Recorded
    records: tuple[RecordEvent, ...] = ()
    """The events of the step that was taken."""
    reasons: tuple[str, ...] = ()
    """Why the step was taken."""
    hindered: Complaint | None = None
    """Why a step was not taken, or roles could not be written."""
    stale: bool = False
    """Whether the roles in the records are not those that were decided."""


_UNRECORDED = (
    ". Rows flow and drivers fail over, but failovers cannot be recorded, "
    "and hung pods are not replaced"
)


def _unwritten(before: Recorded, problem: Refused, what: str, means: str = "") -> Complaint:
    """The complaint about an intent that the server does not take."""
    message = f"ConfigMap {name_of(before.document)} cannot be written: {problem}{means}"
    causes = "the operator's permissions, admission webhooks and the ConfigMap's size"
    return Complaint("CannotChange", message, f"retried; check {causes}; not recorded yet: {what}")


def _suspension(*, suspended: bool) -> str:
    return f"spec.suspend is {str(suspended).lower()}"


def _with_roles(intent: Intent, outcome: Outcome, suspended: bool) -> Intent:
    pairs = outcome.memory.pairs.items()
    primaries = {name: pair.primary for name, pair in pairs if pair.primary is not None}
    return revise_intent(intent, primaries, suspended)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes the records of pipelines, and notes each step."""

    kube: Kube
    images: Images
    """The images of new pipelines."""
    namespace: str
    """The operator's own namespace."""
    note: Note

    def begin(self, pipeline: Pipeline, uid: str) -> Recorded | Complaint:
        """Create the records of a new pipeline; return why if they cannot be created."""
        try:
            return create_records(
                self.kube,
                pipeline,
                uid,
                images=self.images,
                token=secrets.token_urlsafe(32),
                where=self.namespace,
                note=self.note,
            )
        except NameConflict as problem:
            return Complaint(TAKEN, str(problem))
        except Refused as problem:
            return Complaint("ApplyFailed", str(problem))

    def revise(
        self,
        before: Recorded,
        outcome: Outcome,
        suspended: bool,
        next_step: Callable[[Intent], IntentStep | Complaint | None],
    ) -> Revised:
        """Write roles, suspension and the next step of a change into the intent, in one swap.

        A step that the server refuses is not taken: roles must not wait for it. If it refuses roles
        too, nothing may be done that rests on them.

        Raises:
            Conflict: the intent was changed since it was read.
        """
        intent = _with_roles(before.intent, outcome, suspended)
        revised = self._swap(before, intent, next_step(intent))
        for decision in outcome.decisions:
            if isinstance(decision, NotedHere) and not (revised.stale and rests_on_roles(decision)):
                self.note(step_of(decision))
        if revised.stale and revised.hindered is not None:
            self.note(Step(Action.WAIT, "roles", revised.hindered.text))
        after = revised.recorded.intent
        if after is not before.intent:
            differs = suspended != before.intent.suspended
            asked = [_suspension(suspended=suspended)] if differs else []
            versions = before.intent.version, after.version
            self.note(swap_step(*versions, outcome.decisions, *asked, *revised.reasons))
        return revised

    def _swap(
        self, before: Recorded, intent: Intent, step: IntentStep | Complaint | None
    ) -> Revised:
        hindered = step if isinstance(step, Complaint) else None
        if isinstance(step, IntentStep):
            after = step.intent.replace(version=before.intent.version + 1)
            try:
                swapped = swap_intent(self.kube, before, after, step.functions)
            except Refused as problem:
                hindered = _unwritten(before, problem, step.reason)
            else:
                return Revised(swapped, step.records, (step.reason,))
        if intent is before.intent:
            return Revised(before, hindered=hindered)
        try:
            return Revised(swap_intent(self.kube, before, intent), hindered=hindered)
        except Refused as problem:
            stale = dict(intent.primaries) != dict(before.intent.primaries)
            what = "which driver is primary" if stale else _suspension(suspended=intent.suspended)
            hindered = _unwritten(before, problem, what, _UNRECORDED if stale else "")
            return Revised(before, hindered=hindered, stale=stale)

    def end(self, recorded: Recorded) -> None:
        """Record that the pipeline is being reset, before its objects are deleted."""
        record_ending(self.kube, recorded)
        about = (name_of(recorded.document),)
        self.note(Step(Action.LABEL, "the intent for the reset", RESET_REASON, about))
