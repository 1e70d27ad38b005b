"""Waiting for a change that was asked for: how far it is, and whether it was given up."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tandem.policy.change.generations import target_generation
from tandem_cli.changing.targets import ChangeTarget, PendingChange
from tandem_core.contract.intent import GenerationChange, Intent
from tandem_core.model.spec import Spec
from tandem_core.model.states import MERGES_PER_SLOT, ChangeStage, MemberKind
from tandem_core.model.status import Status

EVERY = 0.3
"""Seconds between two looks."""


class ChangeOutcome(Enum):
    """What has become of a change."""

    WAITING = "waiting"
    DONE = "done"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class ChangeProgress:
    """How far a change is, in words too."""

    outcome: ChangeOutcome
    text: str


def judge(
    intent: Intent | None, status: Status, spec: Spec, asked: PendingChange
) -> ChangeProgress:
    """Judge how far a change is. `spec` is the present one: others may have changed it since."""
    if intent is None:
        return _waiting("the pipeline has yet to start")
    change = intent.change
    if change is not None and _is_given_up(change, asked):
        return ChangeProgress(ChangeOutcome.GIVEN_UP, change.reason)
    lacking = _lacking(intent, status, spec, asked)
    return ChangeProgress(ChangeOutcome.DONE, "done") if lacking is None else _waiting(lacking)


def _lacking(intent: Intent, status: Status, spec: Spec, asked: PendingChange) -> str | None:
    """Say what a change still lacks; None if nothing."""
    change = intent.change
    if asked.request and (intent.request is None or intent.request.id < asked.request):
        return "the change waits for its turn" + _because(change)
    if status.observed_generation < asked.generation:
        return "the manifest has not been taken yet"
    if change is not None and change.stage is not ChangeStage.ABANDONED:
        return f"{change.stage}{_because(change)}"
    pairs = len(target_generation(intent).pairs)
    if not asked.request and pairs != spec.pairs.count:
        return f"{pairs} of {spec.pairs.count} pairs"
    return _missing_members(status, spec)


def _is_given_up(change: GenerationChange, asked: PendingChange) -> bool:
    if change.stage is not ChangeStage.ABANDONED:
        return False
    if asked.request:
        return change.goal.request == asked.request
    return change.goal.manifest >= asked.generation


def _because(change: GenerationChange | None) -> str:
    return f": {change.reason}" if change is not None and change.reason else ""


def _missing_members(status: Status, spec: Spec) -> str | None:
    """Say which kind there are too few or too many of."""
    wanted = {
        MemberKind.SPLIT: spec.splits.count,
        MemberKind.REPLICA: spec.pairs.count * spec.pairs.replicas,
        MemberKind.MERGE: spec.merges.count * MERGES_PER_SLOT,
    }
    for kind, count in wanted.items():
        there = sum(member.kind is kind for member in status.members)
        if there != count:
            return f"{there} of {count} {kind}s"
    return None


def _waiting(text: str) -> ChangeProgress:
    return ChangeProgress(ChangeOutcome.WAITING, text)


def wait_for_change(
    target: ChangeTarget,
    asked: PendingChange,
    seconds: float,
    say: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ChangeProgress:
    """Poll until the change is done, is given up, or time is up; each new stage is told once."""
    end = clock() + seconds
    told = ""
    while True:
        status = target.status()
        found = judge(target.intent(), status, target.pipeline().spec, asked)
        if found.outcome is ChangeOutcome.WAITING and status.phase.is_terminal:
            return ChangeProgress(ChangeOutcome.GIVEN_UP, f"the pipeline is {status.phase}")
        if found.outcome is not ChangeOutcome.WAITING or clock() > end:
            return found
        if found.text != told:
            told = found.text
            say(told)
        sleep(EVERY)
