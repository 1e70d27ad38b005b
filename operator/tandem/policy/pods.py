"""What is done about pods. Kubernetes starts them, and starts them again when they end.

What is left to decide is which pod to give up, since that gives its volume up with it. A replica
goes only while its twin carries the pair; a split or a merge only if its volume is lost already,
or if nothing is at risk and it is to be moved.
"""

from collections.abc import Iterator

from tandem.model.states import MemberKind
from tandem.policy.decisions import Assign, AssignSpare, Decision, Halt, Kill, Replace
from tandem.policy.limits import Limits
from tandem.policy.memory import Memory, Stage
from tandem.policy.pairs import look_at
from tandem.policy.placement import move
from tandem.policy.recovery import ended_how, may_give_up, twin_goes_on, warm_spares
from tandem.policy.snapshot import Life, Member, Snapshot


def tend(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Decision]:
    """Decide about every pod; nobody is moved while anything is to be mended."""
    mended = tuple(_mend(snapshot, memory, limits))
    yield from mended
    if not mended:
        yield from move(snapshot, memory, limits)


def _mend(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Decision]:
    spares = warm_spares(snapshot)
    for member in snapshot.members:
        if member.volume is not None and not member.volume_there:
            yield Replace(member.name, member.volume, member.note or "its volume has vanished")
        elif member.complaint is not None and not _well(member):
            yield from _refused(member, snapshot, memory, limits)
        elif member.kind is MemberKind.REPLICA:
            yield from _mend_replica(member, snapshot, memory, spares, limits)


def _well(member: Member) -> bool:
    """Whether it goes on in spite of what it complained of before it was started again."""
    if member.kind is MemberKind.REPLICA:
        return member.life is Life.UP and member.replica is not None and member.replica.verified
    return member.life is Life.UP and member.report is not None


def _refused(
    member: Member, snapshot: Snapshot, memory: Memory, limits: Limits
) -> Iterator[Decision]:
    """One that cannot go on is tried again when the manifest has changed, if it has no state."""
    begun = member.place.pair is not None and memory.pair(member.place.pair).primary is not None
    if member.outdated and not begun and member.volume is not None:
        yield Replace(member.name, member.volume, "the manifest has changed since it refused")
    elif member.complaint is not None and not twin_goes_on(member, snapshot, limits):
        yield Halt(member.name, member.complaint)


def _mend_replica(
    member: Member, snapshot: Snapshot, memory: Memory, spares: list[Member], limits: Limits
) -> Iterator[Decision]:
    pair = member.place.pair or ""
    if member.life is Life.UP and member.replica is not None and member.replica.state == "spare":
        yield Assign(member.name, pair, "it was a spare")
    elif _hung(member, snapshot, limits):
        if may_give_up(member, snapshot, limits):
            yield Kill(member.name, f"silent for {limits.hung:g} s")
    elif memory.pair(pair).stage is not Stage.WHOLE and _has_nothing(member):
        spare = _spare_for(member, snapshot, spares, limits)
        if spare is not None:
            spares.remove(spare)
            yield AssignSpare(spare.name, member.name, member.volume or "", ended_how(member))


def _hung(member: Member, snapshot: Snapshot, limits: Limits) -> bool:
    """Whether neither the observer nor the lead has heard of it for long.

    The kubelet ends processes that hang, sooner than this; it cannot on a node that is lost.
    """
    if member.life is not Life.UP or member.silent_for(snapshot.now) < limits.hung:
        return False
    seat = snapshot.lead.seat(member.volume) if snapshot.lead is not None else None
    return seat is None or seat.silent


def _has_nothing(member: Member) -> bool:
    """Whether a replica has no state of its own to go on with soon."""
    if member.life in {Life.ABSENT, Life.ENDED}:
        return True
    return member.run == 0 and not member.warm


def _spare_for(
    member: Member, snapshot: Snapshot, spares: list[Member], limits: Limits
) -> Member | None:
    """A spare on another node than the survivor; on the same one if there is no other."""
    if not may_give_up(member, snapshot, limits):
        return None
    twin = look_at(snapshot, member.place.pair or "", limits).twin_of(member.name)
    node = twin.member.node if twin is not None else None
    apart = [spare for spare in spares if spare.node != node]
    together = [spare for spare in spares if not spare.hosts - {node}]
    return next(iter(apart + together), None)
