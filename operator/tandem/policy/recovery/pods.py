"""What is done about pods. Kubernetes starts them, and starts them again when they end.

What is left to decide is which pod to give up, since that gives its volume up with it. A replica
goes only while its twin carries the pair, one that never held state as soon as its template has
changed; a split or a merge only if its volume is lost already, or if nothing is at risk and it is
to be moved.
"""

from collections.abc import Iterator

from tandem.policy.controller_state import Memory, Stage
from tandem.policy.decisions import Adopt, AssignSpare, Decision, Halt, Kill, Move, Replace, Wait
from tandem.policy.recovery.pairs import look_at
from tandem.policy.recovery.placement import OUTDATED, move, renewal, withheld
from tandem.policy.recovery.processes import ended_how, may_give_up, twin_goes_on, warm_spares
from tandem.policy.snapshot import Life, Member, Snapshot
from tandem.policy.timeouts import Limits
from tandem_core.model.states import MemberKind


def tend(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Decision]:
    """Decide about every pod; nobody is moved while anything is to be mended."""
    mended = tuple(_mend(snapshot, memory, limits))
    yield from mended
    yield from withheld(snapshot)
    if all(isinstance(decision, Wait) for decision in mended):
        yield from move(snapshot, memory, limits)


def _mend(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Decision]:
    spares = warm_spares(snapshot)
    for member in snapshot.members:
        if member.volume is not None and not member.volume_there:
            yield Replace(member.name, member.volume, member.note or "its volume has vanished")
        elif in_vain := _made_in_vain(member, snapshot, memory, limits):
            yield in_vain
        elif member.complaint is not None and not _well(member):
            if not twin_goes_on(member, snapshot, limits):
                yield Halt(member.name, member.complaint)
        elif pair := _joined(member):
            yield Adopt(member.name, pair, "it was a spare")
        elif member.kind is MemberKind.REPLICA:
            yield from _mend_replica(member, snapshot, memory, spares, limits)


def _made_in_vain(
    member: Member, snapshot: Snapshot, memory: Memory, limits: Limits
) -> Move | Replace | None:
    """Make a replica anew that never came to hold state, if its template has changed since.

    The lead has to know it, since its volume may hold what its process does not tell. One that
    answers is left to become whole: the changed template may be a wrong one.
    """
    lead, pair = snapshot.lead, member.place.pair or ""
    if not member.outdated or member.fits_nowhere or member.volume is None or lead is None:
        return None
    seat = snapshot.seat(member.volume)
    answers = member.life is Life.UP and member.complaint is None
    if answers or _well(member) or (seat is not None and seat.full):
        return None
    if memory.pair(pair).primary is None and not any(s.full for s in lead.seats_of(pair)):
        return Replace(member.name, member.volume, OUTDATED)
    return next(renewal(member, snapshot, limits), None)


def _well(member: Member) -> bool:
    """Whether it goes on in spite of what it complained of before it was started again."""
    if member.kind is MemberKind.REPLICA:
        return member.life is Life.UP and member.replica is not None and member.replica.verified
    return member.life is Life.UP and member.report is not None


def _mend_replica(
    member: Member, snapshot: Snapshot, memory: Memory, spares: list[Member], limits: Limits
) -> Iterator[Decision]:
    pair = member.place.pair or ""
    if _hung(member, snapshot, limits):
        if may_give_up(member, snapshot, limits):
            yield Kill(member.name, f"silent for {limits.hung:g} s")
        else:
            yield Wait(member.name, f"silent for {limits.hung:g} s, its twin does not carry {pair}")
    elif pair in map(_joined, snapshot.of_kind(MemberKind.SPARE)):
        return
    elif memory.pair(pair).stage is not Stage.WHOLE and _has_nothing(member):
        spare = _spare_for(member, snapshot, spares, limits)
        if spare is not None:
            spares.remove(spare)
            yield AssignSpare(spare.name, member.name, member.volume or "", _why_nothing(member))


def _joined(member: Member) -> str | None:
    """The pair that a spare has joined while its labels still call it a spare."""
    if member.kind is not MemberKind.SPARE or member.replica is None:
        return None
    return member.replica.pair


def _hung(member: Member, snapshot: Snapshot, limits: Limits) -> bool:
    """Whether neither the observer nor the lead has heard of it for long.

    The kubelet ends processes that hang, sooner than this; it cannot on a node that is lost.
    """
    if member.life is not Life.UP or member.silent_for(snapshot.now) < limits.hung:
        return False
    seat = snapshot.seat(member.volume)
    return seat is None or seat.silent


def _has_nothing(member: Member) -> bool:
    """Whether a replica has no state of its own to go on with soon."""
    if member.life in {Life.ABSENT, Life.ENDED}:
        return True
    return member.run == 0 and not member.warm


def _why_nothing(member: Member) -> str:
    """Why a replica has no state of its own."""
    if member.life is Life.ENDED:
        return ended_how(member)
    return "its pod is missing" if member.life is Life.ABSENT else "its pod is new and boots"


def _spare_for(
    member: Member, snapshot: Snapshot, spares: list[Member], limits: Limits
) -> Member | None:
    """A spare on another node than the survivor; on the same one if there is no other."""
    if not may_give_up(member, snapshot, limits):
        return None
    twin = look_at(snapshot, member.place.pair or "", limits).twin_of(member.name)
    node = twin.member.node if twin is not None else None
    apart = [spare for spare in spares if spare.node != node]
    together = [spare for spare in spares if not spare.hosts_beside(node)]
    return next(iter(apart + together), None)
