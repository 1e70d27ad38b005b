"""Failover and recovery of a pair: its primary, and the events of each stage.

Output does not wait for a failover: the twin computes every epoch too. Decided here are the roles
and the events. For each failure they come in this order: `Failover` if the primary failed,
`CatchUpStarted`, `Paired`.
"""

from dataclasses import replace

from tandem.policy.controller_state import PairMemory, RecoveryStage
from tandem.policy.decisions import Promote, RecordEvent
from tandem.policy.recovery.pairs import PairView, Replica, is_in_sync
from tandem.policy.recovery.processes import describe_exit
from tandem.policy.snapshot import Life
from tandem_core.model.states import EventReason

Step = tuple[list[Promote | RecordEvent], PairMemory]
"""Promotions and events, and the memory of the pair after them."""

_TWINS = 2


def update_pair(pair: PairView, memory: PairMemory) -> Step:
    """Updates the memory of a pair to its current view, with promotions and events."""
    fallen = memory.stood - {holder.standing for holder in pair.holders}
    if fallen:
        memory = replace(memory, stage=RecoveryStage.BROKEN)
    known, memory = _report_last_failover(pair, memory)
    promoted, memory = _choose_primary(pair, memory)
    memory = replace(
        memory,
        stood=frozenset(holder.standing for holder in pair.holders),
        formed=memory.formed or bool(pair.holders) or pair.has_ended_holder,
        paired=is_in_sync(pair, memory.paired),
    )
    recorded, memory = _record_recovery(pair, memory)
    return known + promoted + recorded, memory


def _report_last_failover(pair: PairView, memory: PairMemory) -> Step:
    """Reports a failover whose recorder may have died before it wrote the event."""
    primary = pair.with_volume(memory.primary)
    if memory.untold is None or primary is None:
        return [], memory
    before = next((r for r in pair.replicas if r.member.name == memory.untold), None)
    told = _failover_event(pair, primary.member.name, _describe_failure(before))
    return [told], replace(memory, untold=None, stage=RecoveryStage.BROKEN)


def _choose_primary(pair: PairView, memory: PairMemory) -> Step:
    """Promotes the survivor when the primary has failed."""
    current = pair.with_volume(memory.primary) if memory.primary is not None else None
    if not pair.holders or (current is not None and not _has_failed(current, memory)):
        return [], memory
    chosen = pair.holders[0].member
    if chosen.volume is None:
        return [], memory
    promoted = replace(memory, primary=chosen.volume)
    if memory.primary is None:
        why = "first replica that holds the pair's state"
        return [Promote(pair.name, chosen.name, chosen.volume, why)], promoted
    why = _describe_failure(current)
    return [
        Promote(pair.name, chosen.name, chosen.volume, why),
        _failover_event(pair, chosen.name, why),
    ], replace(promoted, stage=RecoveryStage.BROKEN)


def _failover_event(pair: PairView, primary: str, why: str) -> RecordEvent:
    detail = f"failed over to {primary}: {why}; output continues"
    return RecordEvent(EventReason.FAILOVER, pair.name, detail)


def _has_failed(primary: Replica, memory: PairMemory) -> bool:
    """Whether a primary has failed; one that is just starting has not."""
    if primary.holds:
        return False
    if not primary.member.running or memory.stage is not RecoveryStage.WHOLE:
        return True
    return primary.member.life is Life.UP and not primary.live


def _describe_failure(primary: Replica | None) -> str:
    if primary is None:
        return "the former primary and its volume are gone"
    name = primary.member.name
    if primary.member.life is Life.ENDED:
        return f"{name} {describe_exit(primary.member)}"
    if primary.member.running and not primary.live:
        return f"{name} does not answer"
    return f"{name} no longer holds the pair's state"


def _record_recovery(pair: PairView, memory: PairMemory) -> Step:
    """Writes the events of a recovery, each when its stage is reached."""
    recorded: list[Promote | RecordEvent] = []
    if len(pair.replicas) < _TWINS:
        return recorded, replace(memory, stage=RecoveryStage.WHOLE)
    survivor = pair.with_volume(memory.primary)
    if memory.stage is RecoveryStage.BROKEN and survivor is not None and survivor.holds:
        joiner = pair.twin_of(survivor.member.name)
        if joiner is not None and joiner.live:
            detail = f"recovers: {joiner.member.name} catches up with {survivor.member.name}"
            recorded.append(RecordEvent(EventReason.CATCH_UP_STARTED, pair.name, detail))
            memory = replace(memory, stage=RecoveryStage.CATCHING_UP)
    if memory.stage is RecoveryStage.CATCHING_UP and memory.paired:
        detail = f"has both replicas in sync at epoch {pair.committed}"
        recorded.append(RecordEvent(EventReason.PAIRED, pair.name, detail))
        memory = replace(memory, stage=RecoveryStage.WHOLE)
    return recorded, memory
