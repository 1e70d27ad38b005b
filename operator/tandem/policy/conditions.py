"""The conditions of a pipeline: what holds, why, and since when."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tandem.model.states import ConditionStatus, ConditionType, MemberKind, PairState
from tandem.model.status import Condition
from tandem.policy.limits import Limits
from tandem.policy.memory import Memory
from tandem.policy.recovery import ended_how, next_start
from tandem.policy.snapshot import Complaint, Life, Snapshot


@dataclass(frozen=True, slots=True)
class Background:
    """What conditions need beside a snapshot and a memory."""

    at: str
    """The time of the snapshot, ISO 8601 in UTC."""
    limits: Limits
    one_machine: bool
    """Whether all members share one machine by design."""
    halted: Complaint | None = None
    """What the pipeline was stopped for."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A condition without its time."""

    type: ConditionType
    holds: bool | None
    reason: str
    message: str = ""


def conditions_of(
    snapshot: Snapshot,
    memory: Memory,
    states: Mapping[str, PairState],
    background: Background,
    before: tuple[Condition, ...],
) -> tuple[Condition, ...]:
    """All conditions; one whose status has not changed keeps its time."""
    statements = [
        _ready(snapshot, memory, states, background),
        _paired(states),
        _catching_up(states),
        Statement(ConditionType.REBALANCING, False, "NoChange"),
        _vulnerable(snapshot),
        _co_located(background),
        _data_lost(memory),
    ]
    known = {condition.type: condition for condition in before}
    return tuple(_dated(said, known.get(said.type), background.at) for said in statements)


def _dated(said: Statement, before: Condition | None, at: str) -> Condition:
    status = _STATUS[said.holds]
    same = before is not None and before.status is status
    return Condition(
        type=said.type,
        status=status,
        reason=said.reason,
        message=said.message,
        last_transition_time=before.last_transition_time if before is not None and same else at,
    )


_STATUS = {
    True: ConditionStatus.TRUE,
    False: ConditionStatus.FALSE,
    None: ConditionStatus.UNKNOWN,
}


def _ready(
    snapshot: Snapshot, memory: Memory, states: Mapping[str, PairState], background: Background
) -> Statement:
    kind = ConditionType.READY
    if memory.completed:
        return Statement(kind, False, "Completed", "everything is delivered")
    if background.halted is not None:
        why = background.halted
        return Statement(kind, False, why.reason, f"{why.message} {why.hint}".strip())
    if snapshot.lead is None:
        return Statement(kind, False, "NoLead", _troubles(snapshot, memory, background.limits))
    if any(state in {PairState.STARTING, PairState.DOWN} for state in states.values()):
        waiting = [pair for pair, state in states.items() if state is PairState.DOWN]
        reason = "PairDown" if waiting else "PairStarting"
        return Statement(kind, False, reason, _troubles(snapshot, memory, background.limits))
    if not _every_slot_delivers(snapshot):
        return Statement(kind, False, "NoMerge", _troubles(snapshot, memory, background.limits))
    return Statement(kind, True, "Running", _troubles(snapshot, memory, background.limits))


def _every_slot_delivers(snapshot: Snapshot) -> bool:
    merges = snapshot.of_kind(MemberKind.MERGE)
    active = {
        member.place.slot
        for member in merges
        if member.life is Life.UP and member.merge is not None and member.merge.active
    }
    return active == {merge.place.slot for merge in merges}


def _troubles(snapshot: Snapshot, memory: Memory, limits: Limits) -> str:
    """Who has ended and when it is started again: nobody is given up silently."""
    return "; ".join(_trouble_of(snapshot, memory, limits))


def _trouble_of(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[str]:
    for member in snapshot.members:
        if member.life is not Life.ENDED:
            continue
        row = memory.crashes.get(member.name)
        times = f", {row.count} times in a row" if row is not None and row.count > 1 else ""
        wait = max(0.0, next_start(member, memory.crashes, limits) - snapshot.now)
        yield f"{member.name}: {ended_how(member)}{times}; next start in {wait:.0f} s"


def _paired(states: Mapping[str, PairState]) -> Statement:
    missing = sorted(pair for pair, state in states.items() if state is not PairState.PAIRED)
    if missing:
        return Statement(ConditionType.PAIRED, False, "NotPaired", ", ".join(missing))
    return Statement(ConditionType.PAIRED, True, "AllPaired")


def _catching_up(states: Mapping[str, PairState]) -> Statement:
    late = sorted(pair for pair, state in states.items() if state is PairState.CATCHING_UP)
    if late:
        return Statement(ConditionType.CATCHING_UP, True, "Joining", ", ".join(late))
    return Statement(ConditionType.CATCHING_UP, False, "NobodyJoins")


def _vulnerable(snapshot: Snapshot) -> Statement:
    if snapshot.lead is None:
        return Statement(ConditionType.VULNERABLE, None, "NoLead", "nobody tells at the moment")
    single = snapshot.lead.vulnerable
    if single:
        return Statement(ConditionType.VULNERABLE, True, "OneCopy", ", ".join(single))
    return Statement(ConditionType.VULNERABLE, False, "TwoCopies")


def _co_located(background: Background) -> Statement:
    if background.one_machine:
        what = "all members share this machine"
        return Statement(ConditionType.CO_LOCATED, True, "OneMachine", what)
    return Statement(ConditionType.CO_LOCATED, False, "Spread")


def _data_lost(memory: Memory) -> Statement:
    if memory.lost:
        return Statement(ConditionType.DATA_LOST, True, "DataLost", ", ".join(sorted(memory.lost)))
    return Statement(ConditionType.DATA_LOST, False, "NothingLost")
