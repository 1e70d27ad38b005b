"""The conditions of a pipeline: status, reason, message and transition time of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tandem.policy.controller_state import ControllerState
from tandem.policy.recovery.placement import shared_nodes
from tandem.policy.recovery.processes import describe_exit, describe_missing, next_start
from tandem.policy.snapshot import Complaint, Life, MemberSnapshot, Snapshot
from tandem.policy.status.change_status import progressing, rebalancing
from tandem.policy.status.event_rules import describe_loss, describe_trouble
from tandem.policy.status.readable import with_member_names
from tandem.policy.timeouts import Timeouts
from tandem_core.model.change import ChangeStatus
from tandem_core.model.states import ConditionStatus, ConditionType, MemberKind, PairState
from tandem_core.model.status import MOST_MESSAGE, Condition

MOST_LISTED = 20
"""Most items that a message lists; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Background:
    """Inputs of the conditions besides snapshot and controller state."""

    at: str
    """The time of the snapshot, ISO 8601 in UTC."""
    limits: Timeouts
    one_machine: bool
    """Whether all members share one machine by design. On a cluster Kubernetes starts them."""
    halted: Complaint | None = None
    """Why the pipeline cannot continue."""
    trouble: Complaint | None = None
    """Why a requested change could not be made; the pipeline continues as it was."""
    suspended: bool = False
    """Whether sources are paused on request."""
    selector: str = ""
    """The labels of the primaries; none on one machine."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A condition without its time."""

    type: ConditionType
    holds: bool | None
    reason: str
    message: str = ""


def conditions_of(
    snapshot: Snapshot,
    memory: ControllerState,
    states: Mapping[str, PairState],
    background: Background,
    before: tuple[Condition, ...],
    change: ChangeStatus | None = None,
) -> tuple[Condition, ...]:
    """All conditions; one whose status has not changed keeps its time."""
    statements = [
        _ready(snapshot, memory, states, background),
        _paired(states, snapshot.whole_pair()),
        _catching_up(states),
        Statement(ConditionType.REBALANCING, *rebalancing(snapshot, change)),
        Statement(ConditionType.PROGRESSING, *progressing(snapshot, change)),
        _vulnerable(snapshot, memory.names),
        _co_located(snapshot, background),
        _data_lost(snapshot, memory),
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
    snapshot: Snapshot,
    memory: ControllerState,
    states: Mapping[str, PairState],
    background: Background,
) -> Statement:
    kind = ConditionType.READY
    if memory.completed:
        return Statement(kind, False, "Completed", "all results are delivered")
    if memory.lost:
        return Statement(kind, False, "DataLost", _HALTED_FOR_GOOD)
    if background.halted is not None:
        why = background.halted
        return Statement(kind, False, why.reason, why.explanation)
    blocker = _blocker(snapshot, states)
    trouble = background.trouble
    working = trouble.reason if trouble is not None else "Running"
    reason, message = blocker or (working, _SUSPENDED if background.suspended else _RUNNING)
    found = _listed(tuple(_troubles(snapshot, memory, background, blocked=blocker is not None)))
    said = (found,) if found and message == _RUNNING else (message, found)
    return Statement(
        kind,
        blocker is None,
        reason,
        "; ".join(part for part in said if part),
    )


_RUNNING = "rows are processed and results are delivered"
_SUSPENDED = "sources are suspended; what was read is delivered"
_HALTED_FOR_GOOD = (
    "data is lost and the pipeline has halted for good; the condition DataLost names what is lost; "
    "start a new pipeline with new sinks"
)


def _listed(parts: Sequence[str], separator: str = "; ") -> str:
    shown, more = list(parts[:MOST_LISTED]), len(parts) - MOST_LISTED
    return separator.join([*shown, f"and {more} more"] if more > 0 else shown)


def _blocker(snapshot: Snapshot, states: Mapping[str, PairState]) -> tuple[str, str] | None:
    """What keeps rows from being processed: reason and message; None if nothing does.

    Failing sources and sinks have no message here: the list of troubles has it.
    """
    if snapshot.lead is None:
        unheard = "no split reports to the operator that it leads"
        return "NoLead", f"{unheard}; if none does, epochs wait until one is elected"
    if down := _pairs_in(states, PairState.DOWN):
        unheard = "no replica that holds the pair's state answers the operator"
        return "PairDown", f"{unheard}; if they are down, epochs wait: {down}"
    troubles = snapshot.troubles()
    if troubles:
        # Comes before starting pairs, which only take time: this may need the user.
        return troubles[0].reason, ""
    if starting := _pairs_in(states, PairState.STARTING):
        return "PairStarting", f"the drivers start, none holds the pair's state yet: {starting}"
    if slots := ", ".join(map(str, _idle_slots(snapshot))):
        wait = "results wait in the drivers' outboxes"
        return "NoActiveMerge", f"no merge is active for slot {slots}; {wait}"
    return None


def _pairs_in(states: Mapping[str, PairState], wanted: PairState) -> str:
    return _listed(sorted(pair for pair, state in states.items() if state is wanted), ", ")


def _idle_slots(snapshot: Snapshot) -> list[int]:
    """Open merge slots without an active merge."""
    merges = snapshot.of_kind(MemberKind.MERGE)
    active = {
        member.place.slot
        for member in merges
        if member.life is Life.UP and member.merge is not None and member.merge.active
    }
    wanted = {merge.place.slot for merge in merges if snapshot.delivers(merge.place.slot)}
    return sorted(slot or 0 for slot in wanted - active)


def _troubles(
    snapshot: Snapshot, memory: ControllerState, background: Background, *, blocked: bool
) -> Iterator[str]:
    """Failed actions, failing sources and sinks, members that ended or cannot start.

    While something blocks, a failed action names its reason, and silent members are listed. The
    condition `Progressing` has the troubles of a change.
    """
    if (trouble := background.trouble) is not None:
        yield trouble.text if blocked else trouble.explanation
    for failing in snapshot.troubles():
        yield " ".join(describe_trouble(failing))
    for member in snapshot.members:
        if member.leaving or not snapshot.is_current(member.place.pair):
            continue
        if member.life is Life.ENDED:
            yield f"{member.name} {_ended(member, snapshot, memory, background)}"
        elif member.note and member.life is Life.ABSENT:
            yield describe_missing(member)
        elif member.note:
            yield f"{member.name}: {member.note}"
        elif blocked and _is_silent(member, snapshot, background):
            yield f"{member.name} does not answer"


def _is_silent(member: MemberSnapshot, snapshot: Snapshot, background: Background) -> bool:
    """Whether a process is there that the operator cannot ask."""
    return member.life is Life.UP and member.silent_for(snapshot.now) >= background.limits.unheard


def _ended(
    member: MemberSnapshot, snapshot: Snapshot, memory: ControllerState, background: Background
) -> str:
    row = memory.crashes.get(member.name)
    times = f", {row.count} times in a row" if row is not None and row.count > 1 else ""
    how = f"{describe_exit(member)}{times}"
    if not background.one_machine:
        return f"{how}: {member.note}" if member.note else how
    wait = max(0.0, next_start(member, memory.crashes, background.limits) - snapshot.now)
    return f"{how}; restart in {wait:.0f} s"


def _paired(states: Mapping[str, PairState], whole: PairState) -> Statement:
    kind = ConditionType.PAIRED
    missing = sorted(pair for pair, state in states.items() if state is not whole)
    count = f"{len(states) - len(missing)} of {len(states)} pairs have all their replicas"
    if missing:
        others = f"a replica is missing, starting or catching up in: {_listed(missing, ', ')}"
        return Statement(kind, False, "NotPaired", f"{count}; {others}")
    return Statement(kind, True, "AllPaired", count)


def _catching_up(states: Mapping[str, PairState]) -> Statement:
    kind = ConditionType.CATCHING_UP
    if late := _pairs_in(states, PairState.CATCHING_UP):
        what = f"a replica catches up with its twin: {late}"
        return Statement(kind, True, "ReplicaCatchingUp", what)
    return Statement(kind, False, "NoReplicaCatchingUp", "no replica is catching up")


def _vulnerable(snapshot: Snapshot, names: Mapping[str, str]) -> Statement:
    kind = ConditionType.VULNERABLE
    if snapshot.lead is None:
        return Statement(
            kind,
            None,
            "NoLead",
            "no split reports to the operator that it leads: the number of copies is unknown",
        )
    if snapshot.lead.vulnerable:
        subjects = snapshot.lead.vulnerable
        single = ", ".join(with_member_names(each, snapshot, names) for each in subjects)
        what = f"these have one copy only, and the next failure may lose them: {single}"
        return Statement(kind, True, "UnderReplicated", what)
    what = "the header log, every lane and every pair have two copies"
    return Statement(kind, False, "FullyReplicated", what)


def _co_located(snapshot: Snapshot, background: Background) -> Statement:
    kind = ConditionType.CO_LOCATED
    if background.one_machine:
        return Statement(kind, True, "SharedMachine", "all members share this machine")
    shared = shared_nodes(snapshot)
    if shared:
        where = _listed([f"{name} on {node}" for name, node in sorted(shared.items())], ", ")
        what = f"each of these runs on a single node and would be lost with it: {where}"
        return Statement(kind, True, "SharedNode", what)
    what = "twins run on different nodes, and splits on more than one"
    return Statement(kind, False, "Spread", what)


def _data_lost(snapshot: Snapshot, memory: ControllerState) -> Statement:
    kind = ConditionType.DATA_LOST
    if memory.lost:
        losses = [describe_loss(lost, snapshot, memory.names) for lost in sorted(memory.lost)]
        return Statement(kind, True, "DataLost", _listed([" ".join(loss) for loss in losses]))
    return Statement(kind, False, "NoDataLoss", "no acknowledged row or result is lost")
