"""What a reconcile does or holds back, step by step, each with its reason: for its log line."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from tandem.policy.decisions import (
    Adopt,
    AssignSpare,
    Complete,
    Decision,
    Halt,
    Kill,
    Move,
    Promote,
    Record,
    Replace,
    Restart,
    Start,
    Wait,
    Withhold,
)


class Action(StrEnum):
    """What is done about something."""

    START = "start"
    RESTART = "restart"
    REPLACE = "replace"
    KILL = "kill"
    ASSIGN = "assign spare"
    ADOPT = "adopt spare"
    MOVE = "move"
    PROMOTE = "promote"
    RECORD = "record"
    HALT = "halt"
    WITHHOLD = "withhold"
    WAIT = "wait with"
    COMPLETE = "complete"
    SWAP_INTENT = "swap intent"
    LABEL = "label"
    CREATE = "create"
    APPLY = "apply"
    DELETE = "delete"
    REFUSE = "refuse"
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
"""Decided again in every reconcile until something else is to be seen; worth a line once."""

GRAVE = frozenset({Action.HALT, Action.REFUSE})
"""Somebody has to do something."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a reconcile did, or holds back, and why."""

    action: Action
    subject: str
    reason: str
    about: tuple[str, ...] = ()
    """The members and pairs that it is about, by name."""

    @property
    def text(self) -> str:
        """What is done, without the reason."""
        return f"{self.action} {self.subject}".strip()


Note = Callable[[Step], object]
"""Takes a step that was done or is held back."""


def ignore(_: Step) -> None:
    """Take a step that nobody asks for."""


def step_of(decision: Decision) -> Step:
    """A decision as a step."""
    action, subject, about = _parts(decision)
    return Step(action, subject, decision.reason, about)


def held(decision: Decision, why: str) -> Step:
    """A decision that could not be carried out now; it is tried again."""
    step = step_of(decision)
    return Step(
        Action.WAIT, f"{step.action} {step.subject}", f"{step.reason}, but {why}", step.about
    )


def swap_step(before: int, after: int, decisions: Iterable[Decision], *reasons: str) -> Step:
    """The intent's next version is written, for those who were promoted and for other reasons."""
    promoted = [each for each in decisions if isinstance(each, Promote)]
    why = dict.fromkeys((*(each.reason for each in promoted), *reasons))
    pairs = tuple(each.pair for each in promoted)
    reason = "; ".join(why) or "its primaries are older"
    return Step(Action.SWAP_INTENT, f"{before} → {after}", reason, pairs)


def news(steps: Iterable[Step], before: frozenset[Step]) -> tuple[Step, ...]:
    """The steps worth a line: what was done, and what lasts if it did not last `before`."""
    new = (step for step in steps if step.action not in LASTING or step not in before)
    return tuple(dict.fromkeys(new))


def _parts(decision: Decision) -> tuple[Action, str, tuple[str, ...]]:
    match decision:
        case Record(event, subject, _):
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
    Move: Action.MOVE,
    Halt: Action.HALT,
    Wait: Action.WAIT,
}
