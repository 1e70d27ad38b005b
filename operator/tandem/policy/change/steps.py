"""The steps of a change: plan, build, synced, cut, retire, or abandon.

Each call takes the intent as it is recorded, decides at most one step from it, and returns the next
intent. So an operator may die between any two steps, and an old generation goes only once the lead
has said that its pairs are retired. A failure on either side delays a change and never harms it:
until the cut, the old generation does not depend on the new one.
"""

from tandem.policy.change.codec import LayoutCodec
from tandem.policy.change.generations import (
    building_generation,
    new_pairs,
    numbered,
    target_generation,
    with_pairs_of,
)
from tandem.policy.change.giving_up import abandon, is_another_goal, why_hopeless
from tandem.policy.change.intent_step import IntentStep, change_event, step_to, with_past
from tandem.policy.change.planning import CannotPlan, next_layout
from tandem.policy.change.stages import CHANGE
from tandem.policy.change.waiting import why_not_begun, why_not_retired, why_not_synced
from tandem.policy.change.wanted import Evidence, Wanted
from tandem_core.contract.intent import (
    Generation,
    GenerationChange,
    Intent,
    PastChange,
)
from tandem_core.contract.reports import LeadReport
from tandem_core.model.states import ChangeStage, EventReason


def next_intent(
    intent: Intent, wanted: Wanted, evidence: Evidence, codec: LayoutCodec, now_ms: int
) -> IntentStep | None:
    """Return the next step; None if there is nothing to do, or nothing that can be done now.

    Raises:
        IllegalMove: the step enters a stage that may not follow the present one.
    """
    step = _decide(intent, wanted, evidence, codec, now_ms)
    if step is not None:
        _check_stage(intent.change, step.intent.change)
    return step


def _check_stage(before: GenerationChange | None, after: GenerationChange | None) -> None:
    was = before.stage if before is not None else None
    now = after.stage if after is not None else None
    if was is not now:
        CHANGE.check(was, now, f"to {after.goal.pairs if after is not None else 'nothing'}")


def _decide(
    intent: Intent, wanted: Wanted, evidence: Evidence, codec: LayoutCodec, now_ms: int
) -> IntentStep | None:
    if evidence.lead is not None and evidence.lead.completed:
        return None
    if intent.next_generation == 0:
        return step_to(numbered(intent), "numbers of pairs and generations are recorded")
    if (intent.splits, intent.slots) != (wanted.splits, wanted.slots):
        sized = intent.replace(splits=wanted.splits, slots=wanted.slots)
        return step_to(sized, f"{wanted.splits} splits, {wanted.slots} merge slots")
    building = building_generation(intent)
    if building is not None and intent.change is not None:
        return _build(intent, building, intent.change, wanted, evidence, now_ms)
    if len(intent.generations) > 1 or _is_cutting(intent):
        return _retire(intent, wanted, evidence, now_ms)
    return _plan(intent, wanted, evidence, codec, now_ms)


# --- plan ---------------------------------------------------------------------------------------


def _plan(
    intent: Intent, wanted: Wanted, evidence: Evidence, codec: LayoutCodec, now_ms: int
) -> IntentStep | None:
    """Begin a change, or the next step of one; recovery comes first."""
    change = intent.change
    if not _is_wanted(intent, wanted):
        return _unneeded(intent, wanted)
    if change is None or change.goal != wanted.goal:
        planned = _with_change(intent, _planned(intent, wanted, now_ms))
        return step_to(planned, f"a change to {wanted.pairs} pairs is planned")
    if change.stage is ChangeStage.ABANDONED:
        return None
    missing = why_not_begun(intent, target_generation(intent), evidence)
    if missing:
        return _wait(intent, change, missing, wanted, now_ms)
    return _begin(intent, change, wanted, codec, now_ms)


def _wait(
    intent: Intent,
    change: GenerationChange,
    reason: str,
    wanted: Wanted,
    now_ms: int,
    *obstacles: str,
) -> IntentStep | None:
    """Record what a change waits for; give it up if that takes too long.

    Obstacles are recorded only then: their texts may change from one call to the next.
    """
    if now_ms - change.stage_ms > wanted.timeout_ms:
        limit = f"{_seconds(wanted.timeout_ms)} (spec.change.timeout)"
        held_up = "; ".join(filter(None, (reason, *obstacles)))
        why = ": ".join(filter(None, (f"stage {change.stage} took longer than {limit}", held_up)))
        return abandon(_answered(intent, wanted), why, now_ms)
    if reason == change.reason:
        return None
    return step_to(_with_change(intent, change.replace(reason=reason)), reason or "goes on")


def _is_wanted(intent: Intent, wanted: Wanted) -> bool:
    """Whether pairs or keys are to change."""
    pairs = len(target_generation(intent).pairs)
    return pairs != wanted.pairs or _has_new_request(intent, wanted)


def _has_new_request(intent: Intent, wanted: Wanted) -> bool:
    known = intent.request.id if intent.request is not None else None
    return wanted.request is not None and wanted.request.id != known


def _answered(intent: Intent, wanted: Wanted) -> Intent:
    """Return the intent with the last request, so that no later manifest carries it out."""
    return intent.replace(request=wanted.request or intent.request)


def _unneeded(intent: Intent, wanted: Wanted) -> IntentStep | None:
    """Forget a change whose goal was taken back before anything was built.

    An abandoned one stays to be seen while what is asked for is the same.
    """
    change = intent.change
    if change is None or (change.stage is ChangeStage.ABANDONED and change.goal == wanted.goal):
        return None
    return step_to(intent.replace(change=None), "the change was taken back")


def _planned(intent: Intent, wanted: Wanted, now_ms: int) -> GenerationChange:
    return GenerationChange(
        goal=wanted.goal,
        stage=ChangeStage.PLANNED,
        since_ms=now_ms,
        stage_ms=now_ms,
        pairs_before=len(target_generation(intent).pairs),
    )


def _begin(
    intent: Intent, change: GenerationChange, wanted: Wanted, codec: LayoutCodec, now_ms: int
) -> IntentStep:
    request = wanted.request if _has_new_request(intent, wanted) else None
    try:
        planned = next_layout(codec, intent, wanted, request)
    except CannotPlan as problem:
        return abandon(_answered(intent, wanted), str(problem), now_ms)
    generation, functions = codec.generation_of(
        intent.next_generation, planned, target_generation(intent)
    )
    begun = change.replace(
        stage=ChangeStage.BUILDING,
        stage_ms=now_ms,
        generation=generation.number,
        reason="",
        moves=request.moves if request is not None else change.moves,
    )
    built = intent.replace(
        version=intent.version + 1,
        generations=(*intent.generations, generation),
        next_pair=planned.after.next_pair,
        next_generation=generation.number + 1,
        request=wanted.request if request is not None else intent.request,
        change=begun,
    )
    made = ", ".join(f"{new} from {' and '.join(old)}" for new, old in planned.parents.items())
    detail = f"is being built: {made}"
    told = change_event(EventReason.GENERATION_PLANNED, generation.number, detail)
    return IntentStep(built, f"build generation {generation.number}: {made}", functions, (told,))


# --- build --------------------------------------------------------------------------------------


def _build(
    intent: Intent,
    building: Generation,
    change: GenerationChange,
    wanted: Wanted,
    evidence: Evidence,
    now_ms: int,
) -> IntentStep | None:
    """Make a generation the target once all its replicas are synced; give it up if that fails."""
    hopeless = why_hopeless(building, change, wanted, evidence)
    if hopeless:
        return abandon(intent, hopeless, now_ms)
    if evidence.lead is None:
        return None
    late = why_not_synced(intent, new_pairs(building), evidence)
    if late:
        # A synced replica may fall back: the change waits for it again.
        again = change.replace(stage=ChangeStage.BUILDING)
        held_up = (evidence.obstacles.get(pair, "") for pair in new_pairs(building))
        obstacles = filter(None, held_up)
        return _wait(intent.replace(change=again), again, late, wanted, now_ms, *obstacles)
    if change.stage is ChangeStage.BUILDING:
        synced = change.replace(stage=ChangeStage.SYNCED, reason="")
        return step_to(_with_change(intent, synced), f"generation {building.number} is synced")
    return _cut(intent, building, change, now_ms)


def _cut(intent: Intent, building: Generation, change: GenerationChange, now_ms: int) -> IntentStep:
    cutting = change.replace(stage=ChangeStage.CUTTING, stage_ms=now_ms, reason="")
    return step_to(
        _with_change(intent.replace(target=building.number), cutting),
        f"target is generation {building.number}",
    )


# --- retire -------------------------------------------------------------------------------------


def _is_cutting(intent: Intent) -> bool:
    change = intent.change
    return change is not None and change.stage in {ChangeStage.CUTTING, ChangeStage.RETIRING}


def _retire(intent: Intent, wanted: Wanted, evidence: Evidence, now_ms: int) -> IntentStep | None:
    """Forget the old generation once the lead has cut the new one and retired the old pairs."""
    lead, change = evidence.lead, intent.change
    if lead is None:
        return None
    if lead.generation < intent.target:
        return _await_cut(intent, lead, wanted, evidence, now_ms)
    if change is not None and change.stage is ChangeStage.CUTTING:
        retiring = change.replace(stage=ChangeStage.RETIRING, stage_ms=now_ms, reason="")
        return step_to(_with_change(intent, retiring), f"generation {intent.target} is cut")
    target = target_generation(intent)
    old = {name for each in intent.generations for name in each.names()} - set(target.names())
    if any(evidence.lists(pair) for pair in old):
        return _await_retirement(intent, target, wanted, evidence)
    left = intent.replace(generations=(target,), change=None)
    names = ", ".join(sorted(old)) or "no pair"
    done = f"has replaced {names}"
    if change is not None and change.stage is ChangeStage.ABANDONED:
        before = "has the pairs from before the change that was given up"
        done = f"{before}; its new pairs {names} are gone"
    told = change_event(EventReason.GENERATION_RETIRED, target.number, done)
    return step_to(_concluded(left, change, wanted, now_ms), f"{names} retired", told)


def _await_cut(
    intent: Intent, lead: LeadReport, wanted: Wanted, evidence: Evidence, now_ms: int
) -> IntentStep | None:
    """Wait until the lead names the target; go back to the pairs before it if it is not to."""
    change, target = intent.change, target_generation(intent)
    if change is not None and change.stage is ChangeStage.CUTTING:
        hopeless = why_hopeless(target, change, wanted, evidence)
        if hopeless:
            return abandon(intent, hopeless, now_ms)
        late = why_not_synced(intent, new_pairs(target), evidence)
        return _wait(intent, change, late, wanted, now_ms)
    known = {each.number for each in intent.generations}
    if change is None or change.stage is not ChangeStage.ABANDONED or lead.generation not in known:
        return None
    if all(evidence.lists(pair) for pair in target.names()):
        return None
    # The lead had cut the target and retired the pairs before it, so the change is made after all.
    made = change.replace(stage=ChangeStage.RETIRING, stage_ms=now_ms, reason="")
    past = tuple(each for each in intent.history if each.generation != change.generation)
    forward = with_pairs_of(intent.replace(change=made, history=past), lead.generation)
    return step_to(forward, f"the pairs of generation {lead.generation} go on")


def _await_retirement(
    intent: Intent, target: Generation, wanted: Wanted, evidence: Evidence
) -> IntentStep | None:
    """Record what the retirement waits for, and what is to follow it."""
    change = intent.change
    if change is None or change.stage is not ChangeStage.RETIRING:
        return None
    reason = why_not_retired(intent, target, evidence, then=is_another_goal(change, wanted))
    if reason == change.reason:
        return None
    return step_to(_with_change(intent, change.replace(reason=reason)), reason or "goes on")


def _concluded(
    intent: Intent,
    change: GenerationChange | None,
    wanted: Wanted,
    now_ms: int,
) -> Intent:
    """Return the intent after a step: with the next one planned, or the change in the history."""
    if change is None:
        return intent
    if change.stage is ChangeStage.ABANDONED:
        return _with_change(intent, change)
    pairs = len(target_generation(intent).pairs)
    if pairs != change.goal.pairs and not is_another_goal(change, wanted):
        again = change.replace(stage=ChangeStage.PLANNED, stage_ms=now_ms, reason="")
        return _with_change(intent, again)
    past = PastChange(
        generation=change.generation,
        pairs_before=change.pairs_before,
        pairs_after=pairs,
        began_ms=change.since_ms,
        ended_ms=now_ms,
        moves=change.moves,
    )
    return with_past(intent, past)


def _with_change(intent: Intent, change: GenerationChange) -> Intent:
    return intent.replace(change=change)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"
