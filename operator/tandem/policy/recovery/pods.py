"""Recovery of pods, which Kubernetes starts and restarts.

What is left to decide is which pod to delete, since its volume is deleted with it. A replica is
deleted only while its twin serves the pair, one that never held state as soon as its template has
changed; a split or a merge only if its volume is lost already, or, to move it, while everything has
two copies.
"""

from collections.abc import Iterator

from tandem.policy.controller_state import ControllerState, RecoveryStage
from tandem.policy.decisions import (
    Adopt,
    AssignSpare,
    Decision,
    EvictPod,
    Halt,
    Kill,
    Replace,
    Wait,
)
from tandem.policy.recovery.pairs import look_at
from tandem.policy.recovery.placement import (
    OUTDATED,
    evict_one,
    eviction_for_rollout,
    withhold_unplaceable,
)
from tandem.policy.recovery.processes import (
    can_discard,
    current_first,
    describe_exit,
    has_serving_twin,
    warm_spares,
)
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.model.states import MemberKind, PairStanding


def recover_pods(
    snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> Iterator[Decision]:
    """Decides about every pod; none is evicted while another one recovers."""
    repairs = tuple(_repair(snapshot, memory, limits))
    yield from repairs
    yield from withhold_unplaceable(snapshot)
    if all(isinstance(decision, Wait) for decision in repairs):
        yield from evict_one(snapshot, memory, limits)


def _repair(snapshot: Snapshot, memory: ControllerState, limits: Timeouts) -> Iterator[Decision]:
    """Repairs current pairs first. A shadow that refuses ends a change, not the pipeline."""
    spares = warm_spares(snapshot)
    for member in current_first(snapshot):
        if snapshot.standing(member.place.pair) is PairStanding.GONE:
            continue
        if member.volume is not None and not member.volume_there:
            yield Replace(member.name, member.volume, member.note or "its volume is gone")
        elif in_vain := _replace_outdated(member, snapshot, memory, limits):
            yield in_vain
        elif member.complaint is not None and not _is_healthy(member):
            is_current = snapshot.is_current(member.place.pair)
            if is_current and not has_serving_twin(member, snapshot, limits):
                yield Halt(member.name, member.complaint)
        elif pair := _pair_joined(member):
            yield Adopt(member.name, pair, "it was a warm spare")
        elif member.kind is MemberKind.REPLICA:
            yield from _repair_replica(member, snapshot, memory, spares, limits)


def _replace_outdated(
    member: MemberSnapshot, snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> EvictPod | Replace | None:
    """Replaces a replica that never held state, if its template has changed since.

    Requires a lead's report, since the volume may hold state that the process does not report. A
    replica that answers may finish its catch-up: the changed template may be wrong.
    """
    lead, pair = snapshot.lead, member.place.pair or ""
    if not member.outdated or member.fits_nowhere or member.volume is None or lead is None:
        return None
    seat = snapshot.seat(member.volume)
    answers = member.life is Life.UP and member.complaint is None
    if answers or _is_healthy(member) or (seat is not None and seat.full):
        return None
    if memory.pair(pair).primary is None and not any(s.full for s in lead.seats_of(pair)):
        return Replace(member.name, member.volume, OUTDATED)
    return next(eviction_for_rollout(member, snapshot, limits), None)


def _is_healthy(member: MemberSnapshot) -> bool:
    """Whether a member works again after a restart, in spite of its earlier complaint."""
    if member.kind is MemberKind.REPLICA:
        return member.life is Life.UP and member.replica is not None and member.replica.verified
    return member.life is Life.UP and member.report is not None


def _repair_replica(
    member: MemberSnapshot,
    snapshot: Snapshot,
    memory: ControllerState,
    spares: list[MemberSnapshot],
    limits: Timeouts,
) -> Iterator[Decision]:
    pair = member.place.pair or ""
    if _is_hung(member, snapshot, limits):
        if can_discard(member, snapshot, limits):
            yield Kill(member.name, f"no answer for {limits.hung:g} s")
        else:
            yield Wait(
                member.name,
                f"no answer for {limits.hung:g} s, but its twin does not hold the state of {pair}",
            )
    elif pair in map(_pair_joined, snapshot.of_kind(MemberKind.SPARE)):
        return
    elif _is_broken(pair, snapshot, memory) and _has_no_state(member):
        spare = _choose_spare(member, snapshot, spares, limits)
        if spare is not None:
            spares.remove(spare)
            yield AssignSpare(spare.name, member.name, member.volume or "", _why_no_state(member))


def _is_broken(pair: str, snapshot: Snapshot, memory: ControllerState) -> bool:
    """Whether a current pair has lost a replica; spares are for no others."""
    return snapshot.is_current(pair) and memory.pair(pair).stage is not RecoveryStage.WHOLE


def _pair_joined(member: MemberSnapshot) -> str | None:
    """The pair that a spare has joined while its labels still say spare."""
    if member.kind is not MemberKind.SPARE or member.replica is None:
        return None
    return member.replica.pair


def _is_hung(member: MemberSnapshot, snapshot: Snapshot, limits: Timeouts) -> bool:
    """Whether a member has long answered neither the operator nor the lead.

    Comes before the kubelet's kill, which takes a minute and does not happen on a lost node.
    """
    if member.life is not Life.UP or member.silent_for(snapshot.now) < limits.hung:
        return False
    seat = snapshot.seat(member.volume)
    return seat is None or seat.silent


def _has_no_state(member: MemberSnapshot) -> bool:
    """Whether a replica has no state to resume from."""
    if member.life in {Life.ABSENT, Life.ENDED}:
        return True
    return member.run == 0 and not member.warm


def _why_no_state(member: MemberSnapshot) -> str:
    """Why a replica has no state of its own."""
    if member.life is Life.ENDED:
        return describe_exit(member)
    return "its pod is missing" if member.life is Life.ABSENT else "its pod is new and starting"


def _choose_spare(
    member: MemberSnapshot, snapshot: Snapshot, spares: list[MemberSnapshot], limits: Timeouts
) -> MemberSnapshot | None:
    """A spare on another node than the survivor; on the same one if there is no other."""
    if not can_discard(member, snapshot, limits):
        return None
    twin = look_at(snapshot, member.place.pair or "", limits).twin_of(member.name)
    node = twin.member.node if twin is not None else None
    apart = [spare for spare in spares if spare.node != node]
    together = [spare for spare in spares if not spare.hosts_beside(node)]
    return next(iter(apart + together), None)
