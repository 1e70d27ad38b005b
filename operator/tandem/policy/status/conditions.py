"""The conditions of a pipeline: what holds, why, and since when."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tandem.policy.controller_state import LOST_SEPARATOR, Memory
from tandem.policy.recovery.placement import shared_nodes
from tandem.policy.recovery.processes import ended_how, next_start
from tandem.policy.snapshot import Complaint, Life, Member, Snapshot
from tandem.policy.timeouts import Limits
from tandem_core.model.states import ConditionStatus, ConditionType, MemberKind, PairState
from tandem_core.model.status import MOST_MESSAGE, Condition

MOST_TROUBLES = 20
"""More are counted and not told."""


@dataclass(frozen=True, slots=True)
class Background:
    """What conditions need beside a snapshot and a memory."""

    at: str
    """The time of the snapshot, ISO 8601 in UTC."""
    limits: Limits
    one_machine: bool
    """Whether all members share one machine by design. On a cluster Kubernetes starts them."""
    halted: Complaint | None = None
    """What the pipeline cannot go on for."""
    trouble: Complaint | None = None
    """Why something that was asked for could not be done; the pipeline goes on as it was."""
    suspended: bool = False
    """Whether sources pause as asked."""


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
        _co_located(snapshot, background),
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
        message=_cut(said.message),
        last_transition_time=before.last_transition_time if before is not None and same else at,
    )


def _cut(message: str) -> str:
    return message if len(message) <= MOST_MESSAGE else f"{message[: MOST_MESSAGE - 1]}…"


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
    missing = _missing(snapshot, states)
    trouble = background.trouble
    return Statement(
        kind,
        missing is None,
        trouble.reason if trouble is not None else missing or "Running",
        _listed(tuple(_troubles(snapshot, memory, background))),
    )


def _listed(troubles: Sequence[str]) -> str:
    more = len(troubles) - MOST_TROUBLES
    return "; ".join(troubles[:MOST_TROUBLES]) + (f"; and {more} more" if more > 0 else "")


def _missing(snapshot: Snapshot, states: Mapping[str, PairState]) -> str | None:
    """What keeps rows from going through."""
    if snapshot.lead is None:
        return "NoLead"
    if PairState.DOWN in states.values():
        return "PairDown"
    troubles = snapshot.troubles()
    if troubles:
        # Before what only takes its time: this one may wait for the user.
        return troubles[0].reason
    if PairState.STARTING in states.values():
        return "PairStarting"
    return None if _every_slot_delivers(snapshot) else "NoMerge"


def _every_slot_delivers(snapshot: Snapshot) -> bool:
    merges = snapshot.of_kind(MemberKind.MERGE)
    active = {
        member.place.slot
        for member in merges
        if member.life is Life.UP and member.merge is not None and member.merge.active
    }
    return active >= {merge.place.slot for merge in merges if snapshot.delivers(merge.place.slot)}


def _troubles(snapshot: Snapshot, memory: Memory, background: Background) -> Iterator[str]:
    """What was not done, what fails, who ended or cannot start: nothing is given up silently."""
    if background.trouble is not None:
        yield f"{background.trouble.message} {background.trouble.hint}".strip()
    for trouble in snapshot.troubles():
        yield f"{trouble.reason} {trouble.subject}: {trouble.text}"
    for member in snapshot.members:
        if member.life is Life.ENDED:
            yield f"{member.name}: {_ended(member, snapshot, memory, background)}"
        elif member.note:
            yield f"{member.name}: {member.note}"


def _ended(member: Member, snapshot: Snapshot, memory: Memory, background: Background) -> str:
    row = memory.crashes.get(member.name)
    times = f", {row.count} times in a row" if row is not None and row.count > 1 else ""
    how = f"{ended_how(member)}{times}"
    if not background.one_machine:
        return f"{how} ({member.note})" if member.note else how
    wait = max(0.0, next_start(member, memory.crashes, background.limits) - snapshot.now)
    return f"{how}; next start in {wait:.0f} s"


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


def _co_located(snapshot: Snapshot, background: Background) -> Statement:
    if background.one_machine:
        what = "all members share this machine"
        return Statement(ConditionType.CO_LOCATED, True, "OneMachine", what)
    shared = shared_nodes(snapshot)
    if shared:
        what = ", ".join(f"{name} on {node}" for name, node in sorted(shared.items()))
        return Statement(ConditionType.CO_LOCATED, True, "OneNode", what)
    return Statement(ConditionType.CO_LOCATED, False, "Spread")


def _data_lost(memory: Memory) -> Statement:
    if memory.lost:
        what = LOST_SEPARATOR.join(sorted(memory.lost))
        return Statement(ConditionType.DATA_LOST, True, "DataLost", what)
    return Statement(ConditionType.DATA_LOST, False, "NothingLost")
