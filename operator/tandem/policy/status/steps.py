"""The steps of a reconcile, done or deferred, each with its reason: for the decision log."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from tandem.policy.decisions import (
    Adopt,
    AssignSpare,
    Complete,
    Decision,
    Dismiss,
    EvictPod,
    Halt,
    Kill,
    Promote,
    RecordEvent,
    Remove,
    Replace,
    Restart,
    Start,
    Wait,
    Withhold,
)


class Action(StrEnum):
    """What a step does."""

    START = "start"
    RESTART = "restart"
    REPLACE = "replace"
    KILL = "kill"
    DISMISS = "ask to leave"
    REMOVE = "remove"
    ASSIGN = "assign spare"
    ADOPT = "adopt spare"
    EVICT = "evict"
    PROMOTE = "promote"
    RECORD = "emit"
    HALT = "halt"
    WITHHOLD = "withhold"
    WAIT = "defer"
    COMPLETE = "complete"
    SWAP_INTENT = "update intent"
    LABEL = "label"
    CREATE = "create"
    APPLY = "apply"
    DELETE = "delete"
    REFUSE = "reject"
    FORGET = "forget"
    RETRY = "retry"


LASTING = frozenset(
    {
        Action.KILL,
        Action.ASSIGN,
        Action.HALT,
        Action.WITHHOLD,
        Action.WAIT,
        Action.COMPLETE,
        Action.REFUSE,
    }
)
"""Decided again in every reconcile until the observation changes; logged once."""

GRAVE = frozenset({Action.HALT, Action.REFUSE})
"""Actions that need the user; logged as warnings."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step that a reconcile did or deferred, and why."""

    action: Action
    subject: str
    reason: str
    about: tuple[str, ...] = ()
    """Names of the members and pairs that it affects."""

    @property
    def text(self) -> str:
        """What is done, without the reason."""
        return f"{self.action} {self.subject}".strip()


Note = Callable[[Step], object]
"""Takes a step that was done or deferred."""


def ignore(_: Step) -> None:
    """Drop a step that is not logged."""


def step_of(decision: Decision) -> Step:
    """A decision as a step."""
    action, subject, about = _parts(decision)
    return Step(action, subject, decision.reason, about)


def held(decision: Decision, why: str) -> Step:
    """A decision that could not be carried out now; retried."""
    step = step_of(decision)
    return Step(
        Action.WAIT, f"{step.action} {step.subject}", f"{step.reason}, but {why}", step.about
    )


def swap_step(before: int, after: int, decisions: Iterable[Decision], *reasons: str) -> Step:
    """The update of the intent: promotions, and other reasons."""
    promoted = [each for each in decisions if isinstance(each, Promote)]
    why = dict.fromkeys((*(each.reason for each in promoted), *reasons))
    pairs = tuple(each.pair for each in promoted)
    reason = "; ".join(why) or "its primaries are outdated"
    return Step(Action.SWAP_INTENT, f"{before} → {after}", reason, pairs)


def news(steps: Iterable[Step], before: frozenset[Step]) -> tuple[Step, ...]:
    """The steps to log: each step done, and each lasting step that is not in `before`."""
    new = (step for step in steps if step.action not in LASTING or step not in before)
    return tuple(dict.fromkeys(new))


def _parts(decision: Decision) -> tuple[Action, str, tuple[str, ...]]:
    match decision:
        case RecordEvent(event, subject, _):
            return Action.RECORD, f"{event} {subject}", (subject,)
        case Promote(pair=pair, name=name) | Adopt(pair=pair, name=name):
            return _ACTIONS[type(decision)], f"{name} in {pair}", (name, pair)
        case AssignSpare(spare, name, _, _):
            return Action.ASSIGN, f"{spare} to {name}", (spare, name)
        case Complete():
            return Action.COMPLETE, "", ()
        case Withhold(complaint):
            return Action.WITHHOLD, complaint.reason, ()
        case _:
            return _ACTIONS[type(decision)], decision.name, (decision.name,)


_ACTIONS = {
    Promote: Action.PROMOTE,
    Adopt: Action.ADOPT,
    Start: Action.START,
    Restart: Action.RESTART,
    Replace: Action.REPLACE,
    Kill: Action.KILL,
    Dismiss: Action.DISMISS,
    Remove: Action.REMOVE,
    EvictPod: Action.EVICT,
    Halt: Action.HALT,
    Wait: Action.WAIT,
}
