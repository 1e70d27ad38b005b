"""When a change is given up, and how: what is built goes, the pairs before it stay.

In stage `Cutting` the lead may switch at any moment, so the way back is one more generation.
"""

from tandem.policy.change.generations import (
    building_generation,
    generation_before_target,
    new_pairs,
    target_generation,
    with_pairs_of,
)
from tandem.policy.change.intent_step import IntentStep, change_event, step_to, with_past
from tandem.policy.change.wanted import Evidence, Wanted
from tandem_core.contract.intent import Generation, GenerationChange, Intent, PastChange
from tandem_core.model.states import ChangeStage, EventReason


def why_hopeless(
    building: Generation, change: GenerationChange, wanted: Wanted, evidence: Evidence
) -> str:
    """Return why a generation is not to be built any longer; "" if it is."""
    if is_another_goal(change, wanted):
        is_moved = wanted.pairs == change.goal.pairs
        return "another move is asked for" if is_moved else f"{_asked(wanted)} now"
    failed = (pair for pair in new_pairs(building) if pair in evidence.failures)
    return next((f"{pair}: {evidence.failures[pair]}" for pair in failed), "")


def _asked(wanted: Wanted) -> str:
    return f"the manifest asks for {wanted.pairs} pair{'' if wanted.pairs == 1 else 's'}"


def is_another_goal(change: GenerationChange, wanted: Wanted) -> bool:
    """Whether what is built is no longer wanted; a manifest may change in other fields."""
    now, then = wanted.goal, change.goal
    return (now.pairs, now.request) != (then.pairs, then.request)


def abandon(intent: Intent, reason: str, now_ms: int) -> IntentStep:
    """Give up what is built, or planned; the pairs of the generation that runs go on."""
    building = building_generation(intent)
    change = intent.change
    number = building.number if building is not None else 0
    if change is not None and change.stage is ChangeStage.CUTTING:
        intent, number = with_pairs_of(intent, generation_before_target(intent)), intent.target
    pairs = len(target_generation(intent).pairs)
    kept = tuple(each for each in intent.generations if each is not building)
    past = PastChange(
        generation=number,
        pairs_before=change.pairs_before if change is not None else pairs,
        pairs_after=pairs,
        began_ms=change.since_ms if change is not None else now_ms,
        ended_ms=now_ms,
        abandoned=reason,
    )
    abandoned = intent.replace(
        generations=kept,
        change=change.replace(
            stage=ChangeStage.ABANDONED, stage_ms=now_ms, generation=number, reason=reason
        )
        if change is not None
        else None,
    )
    told = change_event(EventReason.GENERATION_ABANDONED, number, f"was given up: {reason}")
    return step_to(with_past(abandoned, past), reason, told)
