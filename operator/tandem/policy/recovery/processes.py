"""Which members on one machine are started, ended, started again or replaced.

The last copy of something is never given up on the policy's own account. A replica's volume goes
only while the lead counts its twin as a full member that speaks and the twin's process answers; a
volume that its own process calls useless goes only if the lead does not count on it either; a
split's volume goes only when it has vanished or its process calls it useless.
"""

from collections.abc import Iterator, Mapping

from tandem.policy.controller_state import Crashes, Memory
from tandem.policy.decisions import (
    AssignSpare,
    Decision,
    Halt,
    Kill,
    Replace,
    Restart,
    Start,
    Wait,
)
from tandem.policy.recovery.pairs import look_at
from tandem.policy.snapshot import Complaint, Life, Member, Snapshot
from tandem.policy.timeouts import Limits
from tandem_core.contract.exit_codes import COMPLETED, REFUSED, STOPPED, WIPED
from tandem_core.model.states import MemberKind


def count_crashes(
    snapshot: Snapshot, before: Mapping[str, Crashes], limits: Limits
) -> dict[str, Crashes]:
    """Count each end of a process once; a long healthy run begins the row anew."""
    counted = dict(before)
    for member in snapshot.members:
        known = before.get(member.name, Crashes(run=-1, count=0))
        if member.life is Life.ENDED and member.run != known.run:
            lasted = (member.ended or member.started) - member.started
            row = 0 if lasted >= limits.healthy else known.count
            counted[member.name] = Crashes(member.run, row + 1)
        elif member.life is Life.UP and snapshot.now - member.started >= limits.healthy:
            counted.pop(member.name, None)
    return counted


def next_start(member: Member, crashes: Mapping[str, Crashes], limits: Limits) -> float:
    """The time from which a member that has ended may be started again."""
    row = crashes.get(member.name)
    apart = limits.delay_after(row.count if row is not None else 1)
    ended = member.ended or 0.0
    if member.exit_code == STOPPED:
        ended += limits.leaving
    return max(ended, member.started + apart)


def recover(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Decision]:
    """Decide about every member, those that rows wait for before spares."""
    crashes = memory.crashes
    spares = warm_spares(snapshot)
    for member in snapshot.members:
        if member.running:
            yield from _hung(member, snapshot.now, limits)
        elif member.kind is MemberKind.SPARE:
            continue
        elif member.life is Life.ABSENT:
            yield _begin(member)
        elif member.exit_code == REFUSED and not twin_goes_on(member, snapshot, limits):
            yield Halt(member.name, member.complaint or UNEXPLAINED)
        elif snapshot.now >= next_start(member, crashes, limits):
            yield _revive(member, snapshot, spares, limits)
        else:
            yield from _hold_back(member, crashes, limits)
    if _calm(snapshot, limits):
        yield from _fill_up_spares(snapshot, crashes, limits)


def _hold_back(
    member: Member, crashes: Mapping[str, Crashes], limits: Limits
) -> Iterator[Decision]:
    """Say why a member that has ended is not started again yet.

    One that ended while the others were looked at is just not looked at again yet.
    """
    row = crashes.get(member.name)
    count = row.count if row is not None else 1
    how, delay = ended_how(member), limits.delay_after(count)
    if member.exit_code == STOPPED:
        yield Wait(member.name, f"{how}: restart after {limits.leaving:g} s")
    elif delay:
        yield Wait(member.name, f"{how}, crash {count} in a row: back-off {delay:g} s")


def may_give_up(member: Member, snapshot: Snapshot, limits: Limits) -> bool:
    """May a replica's volume be given up because its twin carries the pair?

    What the lead calls vulnerable may be about to lapse. So while this volume counts as full, the
    pair must have two full members of which none is called on to lapse.
    """
    pair, lead = member.place.pair, snapshot.lead
    if pair is None or lead is None:
        return False
    twin = look_at(snapshot, pair, limits).twin_of(member.name)
    if twin is None or not twin.carries or twin.seat is None:
        return False
    own = snapshot.seat(member.volume)
    own_counts = own is not None and own.full
    return twin.seat.full and not twin.seat.silent and not (own_counts and pair in lead.vulnerable)


def _hung(member: Member, now: float, limits: Limits) -> Iterator[Decision]:
    if not member.volume_there:
        yield Kill(member.name, "its volume has vanished")
    elif member.life is Life.STARTING and now - member.started >= limits.boot:
        yield Kill(member.name, f"no answer within {limits.boot:g} s of its start")
    elif member.life is Life.UP and member.silent_for(now) >= limits.hung:
        yield Kill(member.name, f"silent for {limits.hung:g} s")


def _begin(member: Member) -> Decision:
    """Start the first process of a place, which may have a volume of an earlier run."""
    if member.volume is not None and not member.volume_there:
        return Replace(member.name, member.volume, "its volume has vanished")
    return Start(member.name, member.volume, "it is part of the pipeline")


def _revive(member: Member, snapshot: Snapshot, spares: list[Member], limits: Limits) -> Decision:
    """Bring a member back that has ended; a spare that is used leaves `spares`."""
    how = ended_how(member)
    if member.volume is None:
        return Start(member.name, None, how)
    if not member.volume_there:
        return Replace(member.name, member.volume, f"{how}, its volume has vanished")
    carried = may_give_up(member, snapshot, limits)
    if carried and spares:
        return AssignSpare(spares.pop(0).name, member.name, member.volume, how)
    if member.exit_code == WIPED and (carried or _nobody_counts_on(member, snapshot)):
        return Replace(member.name, member.volume, how)
    return Restart(member.name, member.volume, how)


def _nobody_counts_on(member: Member, snapshot: Snapshot) -> bool:
    """Whether a volume that is called useless by its process is no replica's, or not counted."""
    if member.kind is not MemberKind.REPLICA:
        return True
    if snapshot.lead is None:
        return False
    seat = snapshot.seat(member.volume)
    return seat is None or not seat.full


def twin_goes_on(member: Member, snapshot: Snapshot, limits: Limits) -> bool:
    """Whether a pair does without a member, or a member is not needed at all."""
    if member.kind is MemberKind.SPARE:
        return True
    if member.place.pair is None:
        return False
    twin = look_at(snapshot, member.place.pair, limits).twin_of(member.name)
    return twin is not None and twin.carries


def warm_spares(snapshot: Snapshot) -> list[Member]:
    """Spares that answer, whose Spark is up, and that have joined no pair yet."""
    return [
        member
        for member in snapshot.of_kind(MemberKind.SPARE)
        if member.life is Life.UP and member.silent_for(snapshot.now) == 0
        if member.replica is not None and member.warm and member.replica.pair is None
    ]


def _calm(snapshot: Snapshot, limits: Limits) -> bool:
    """Whether nobody recovers: a new spare would take the processor from those who do."""
    pairs = (look_at(snapshot, pair, limits) for pair in snapshot.pairs())
    return all(len(pair.holders) == len(pair.replicas) for pair in pairs)


def _fill_up_spares(
    snapshot: Snapshot, crashes: Mapping[str, Crashes], limits: Limits
) -> Iterator[Decision]:
    for member in snapshot.of_kind(MemberKind.SPARE):
        if member.life is Life.ABSENT:
            yield _begin(member)
        elif member.life is Life.ENDED and snapshot.now >= next_start(member, crashes, limits):
            yield _revive(member, snapshot, [], limits)


def ended_how(member: Member) -> str:
    """How a process ended, in a few words."""
    code = member.exit_code
    if code is None:
        return "it has ended"
    if code < 0:
        return f"ended by signal {-code}"
    return {
        STOPPED: "it has stopped in good order",
        REFUSED: "it cannot go on with the query",
        WIPED: "its volume holds nothing of use",
        COMPLETED: "everything is delivered",
    }.get(code, f"crashed with exit code {code}")


UNEXPLAINED = Complaint("Refused", "a member cannot go on and left no explanation", "see its log")
"""What a member that wrote no reason down complains of."""
