"""Who is primary in a pair, and how far the pair is in recovering.

A take-over needs no decision: the twin's answers are on their way already. What is decided here is
what the roles say, and which events are written. For each failure they come in this order:
`TakeOver` if the primary failed, `CatchUpStarted`, `Paired`.
"""

from dataclasses import replace

from tandem.policy.controller_state import PairMemory, Stage
from tandem.policy.decisions import Promote, Record
from tandem.policy.recovery.pairs import Pair, Replica, in_step
from tandem.policy.recovery.processes import ended_how
from tandem.policy.snapshot import Life
from tandem_core.model.states import EventReason

Step = tuple[list[Promote | Record], PairMemory]
"""What is to be done, and what is remembered when it was."""

_TWINS = 2


def follow(pair: Pair, memory: PairMemory) -> Step:
    """Bring the memory of a pair up to date with what it is now."""
    fallen = memory.stood - {holder.standing for holder in pair.holders}
    if fallen:
        memory = replace(memory, stage=Stage.BROKEN)
    known, memory = _tell_of_last(pair, memory)
    promoted, memory = _choose_primary(pair, memory)
    memory = replace(
        memory,
        stood=frozenset(holder.standing for holder in pair.holders),
        formed=memory.formed or bool(pair.holders),
        paired=in_step(pair, memory.paired),
    )
    recorded, memory = _recover(pair, memory)
    return known + promoted + recorded, memory


def _tell_of_last(pair: Pair, memory: PairMemory) -> Step:
    """Tell of a take-over that somebody recorded who may have died before telling."""
    primary = pair.with_volume(memory.primary)
    if memory.untold is None or primary is None:
        return [], memory
    before = next((r for r in pair.replicas if r.member.name == memory.untold), None)
    told = _taken_over(pair, primary.member.name, _how_failed(before))
    return [told], replace(memory, untold=None, stage=Stage.BROKEN)


def _choose_primary(pair: Pair, memory: PairMemory) -> Step:
    """The survivor becomes primary when the primary has failed."""
    current = pair.with_volume(memory.primary) if memory.primary is not None else None
    if not pair.holders or (current is not None and not _has_failed(current, memory)):
        return [], memory
    chosen = pair.holders[0].member
    if chosen.volume is None:
        return [], memory
    promoted = replace(memory, primary=chosen.volume)
    if memory.primary is None:
        why = "it is the first to hold the pair's state"
        return [Promote(pair.name, chosen.name, chosen.volume, why)], promoted
    why = _how_failed(current)
    return [
        Promote(pair.name, chosen.name, chosen.volume, why),
        _taken_over(pair, chosen.name, why),
    ], replace(promoted, stage=Stage.BROKEN)


def _taken_over(pair: Pair, primary: str, why: str) -> Record:
    return Record(EventReason.TAKE_OVER, pair.name, f"{primary} is primary now: {why}")


def _has_failed(primary: Replica, memory: PairMemory) -> bool:
    """Whether a primary is not there any more; one that is just starting is waited for."""
    if primary.holds:
        return False
    if not primary.member.running or memory.stage is not Stage.WHOLE:
        return True
    return primary.member.life is Life.UP and not primary.live


def _how_failed(primary: Replica | None) -> str:
    if primary is None:
        return "the primary and its volume are gone"
    name = primary.member.name
    if primary.member.life is Life.ENDED:
        return f"{name} {ended_how(primary.member)}"
    if primary.member.running and not primary.live:
        return f"{name} is silent"
    return f"{name} does not hold the pair's state"


def _recover(pair: Pair, memory: PairMemory) -> Step:
    """Write the events of a recovery, each when its step is reached."""
    recorded: list[Promote | Record] = []
    if len(pair.replicas) < _TWINS:
        return recorded, replace(memory, stage=Stage.WHOLE)
    survivor = pair.with_volume(memory.primary)
    if memory.stage is Stage.BROKEN and survivor is not None and survivor.holds:
        joiner = pair.twin_of(survivor.member.name)
        if joiner is not None and joiner.live:
            detail = f"{joiner.member.name} catches up with {survivor.member.name}"
            recorded.append(Record(EventReason.CATCH_UP_STARTED, pair.name, detail))
            memory = replace(memory, stage=Stage.CATCHING_UP)
    if memory.stage is Stage.CATCHING_UP and memory.paired:
        recorded.append(Record(EventReason.PAIRED, pair.name, f"at epoch {pair.committed}"))
        memory = replace(memory, stage=Stage.WHOLE)
    return recorded, memory
