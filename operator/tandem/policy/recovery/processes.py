"""Recovery of processes on one machine: start, kill, restart, replace.

The last copy of data is never discarded. A replica's volume is discarded only while the lead counts
its twin as a full member that is not silent, and the twin's process answers; a volume that its own
process reports as unusable, only if the lead does not count on it either; a split's volume, only
when it has vanished or its process reports it as unusable.
"""

from collections.abc import Iterator, Mapping

from tandem.policy.controller_state import ControllerState, Crashes
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
from tandem.policy.snapshot import Complaint, Life, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import COMPLETED, REFUSED, RETIRED, STOPPED, WIPED
from tandem_core.model.states import MemberKind, PairStanding, SeatState


def count_crashes(
    snapshot: Snapshot, before: Mapping[str, Crashes], limits: Timeouts
) -> dict[str, Crashes]:
    """Counts each end of a process once; a long healthy run resets the crash counter."""
    counted = {m.name: before[m.name] for m in snapshot.members if m.name in before}
    for member in snapshot.members:
        known = before.get(member.name, Crashes(run=-1, count=0))
        if member.life is Life.ENDED and member.run != known.run:
            lasted = (member.ended or member.started) - member.started
            row = 0 if lasted >= limits.healthy else known.count
            counted[member.name] = Crashes(member.run, row + 1)
        elif member.life is Life.UP and snapshot.now - member.started >= limits.healthy:
            counted.pop(member.name, None)
    return counted


def next_start(member: MemberSnapshot, crashes: Mapping[str, Crashes], limits: Timeouts) -> float:
    """The time from which a member that has ended may be started again."""
    row = crashes.get(member.name)
    apart = limits.delay_after(row.count if row is not None else 1)
    ended = member.ended or 0.0
    if member.exit_code == STOPPED:
        ended += limits.leaving
    return max(ended, member.started + apart)


def recover_processes(
    snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> Iterator[Decision]:
    """Decides about every member that is wanted: current pairs come before others, and spares last.

    A shadow that its query, source or sink refuses is left ended: a change fails, not the pipeline.
    """
    crashes = memory.crashes
    spares = warm_spares(snapshot)
    for member in current_first(snapshot):
        is_current = snapshot.is_current(member.place.pair)
        if member.leaving or snapshot.standing(member.place.pair) is PairStanding.GONE:
            continue
        if member.running:
            yield from kill_hung(member, snapshot.now, limits)
        elif member.kind is MemberKind.SPARE:
            continue
        elif member.life is Life.ABSENT:
            yield _start_first(member, "the pipeline starts" if is_current else "its pair is built")
        elif member.exit_code == RETIRED or (member.exit_code == REFUSED and not is_current):
            continue
        elif member.exit_code == REFUSED and not has_serving_twin(member, snapshot, limits):
            yield Halt(member.name, member.complaint or UNEXPLAINED)
        elif snapshot.now >= next_start(member, crashes, limits):
            yield _restart_or_replace(member, snapshot, spares if is_current else [], limits)
        else:
            yield from _defer_restart(member, crashes, limits)
    if _is_calm(snapshot, limits):
        yield from _start_spares(snapshot, crashes, limits)


def current_first(snapshot: Snapshot) -> list[MemberSnapshot]:
    """All members, those of other than the current pairs last."""
    return sorted(snapshot.members, key=lambda m: not snapshot.is_current(m.place.pair))


def _defer_restart(
    member: MemberSnapshot, crashes: Mapping[str, Crashes], limits: Timeouts
) -> Iterator[Decision]:
    """Explains why a member that has ended is not restarted yet.

    Yields nothing without a delay: the member ended during this turn, and the next one restarts it.
    """
    row = crashes.get(member.name)
    count = row.count if row is not None else 1
    how, delay = describe_exit(member), limits.delay_after(count)
    if member.exit_code == STOPPED:
        yield Wait(member.name, f"{how}: restart after {limits.leaving:g} s")
    elif delay:
        yield Wait(member.name, f"{how}, crash {count} in a row: back-off {delay:g} s")


def restart_or_wait(
    member: MemberSnapshot, now: float, crashes: Mapping[str, Crashes], limits: Timeouts
) -> Iterator[Decision]:
    """Restarts a member that has ended, on its volume, once its back-off is over."""
    if member.volume is not None and now >= next_start(member, crashes, limits):
        yield Restart(member.name, member.volume, describe_exit(member))
    else:
        yield from _defer_restart(member, crashes, limits)


def can_discard(member: MemberSnapshot, snapshot: Snapshot, limits: Timeouts) -> bool:
    """Whether a replica's volume can be discarded because its twin serves the pair.

    A seat that is called, or of a pair that the lead reports as vulnerable, may be about to lapse.
    So while this volume counts as full, the pair must have two full members and not be vulnerable.
    """
    pair, lead = member.place.pair, snapshot.lead
    if pair is None or lead is None:
        return False
    twin = look_at(snapshot, pair, limits).twin_of(member.name)
    if twin is None or not twin.carries or twin.seat is None:
        return False
    own = snapshot.seat(member.volume)
    own_counts = own is not None and own.full
    at_risk = pair in lead.vulnerable or twin.seat.state is not SeatState.VERIFIED
    return twin.seat.full and not twin.seat.silent and not (own_counts and at_risk)


def kill_hung(member: MemberSnapshot, now: float, limits: Timeouts) -> Iterator[Decision]:
    """Kills a process that does not answer, or whose volume is gone."""
    if not member.volume_there:
        yield Kill(member.name, "its volume is gone")
    elif member.life is Life.STARTING and now - member.started >= limits.boot:
        yield Kill(member.name, f"no answer within {limits.boot:g} s of its start")
    elif member.life is Life.UP and member.silent_for(now) >= limits.hung:
        yield Kill(member.name, f"no answer for {limits.hung:g} s")


def _start_first(member: MemberSnapshot, reason: str = "the pipeline starts") -> Decision:
    """Starts the first process of a place, which may have a volume of an earlier run."""
    if member.volume is not None and not member.volume_there:
        return Replace(member.name, member.volume, "its volume is gone")
    return Start(member.name, member.volume, reason)


def _restart_or_replace(
    member: MemberSnapshot, snapshot: Snapshot, spares: list[MemberSnapshot], limits: Timeouts
) -> Decision:
    """Restarts or replaces a member that has ended; a spare that is used leaves `spares`."""
    how = describe_exit(member)
    if member.volume is None:
        return Start(member.name, None, how)
    if not member.volume_there:
        return Replace(member.name, member.volume, f"{how}, its volume is gone")
    carried = can_discard(member, snapshot, limits)
    if carried and spares:
        return AssignSpare(spares.pop(0).name, member.name, member.volume, how)
    if member.exit_code == WIPED and (carried or _is_unneeded(member, snapshot)):
        return Replace(member.name, member.volume, how)
    return Restart(member.name, member.volume, how)


def _is_unneeded(member: MemberSnapshot, snapshot: Snapshot) -> bool:
    """Whether an unusable volume is not a replica's, or is no copy that the lead counts."""
    if member.kind is not MemberKind.REPLICA:
        return True
    if snapshot.lead is None:
        return False
    seat = snapshot.seat(member.volume)
    return seat is None or not seat.full


def has_serving_twin(member: MemberSnapshot, snapshot: Snapshot, limits: Timeouts) -> bool:
    """Whether the twin of a member serves the pair, or the member is not needed at all."""
    if member.kind is MemberKind.SPARE:
        return True
    if member.place.pair is None:
        return False
    twin = look_at(snapshot, member.place.pair, limits).twin_of(member.name)
    return twin is not None and twin.carries


def warm_spares(snapshot: Snapshot) -> list[MemberSnapshot]:
    """Spares that answer, whose Spark is up, and that have joined no pair yet."""
    return [
        member
        for member in snapshot.of_kind(MemberKind.SPARE)
        if member.life is Life.UP and member.silent_for(snapshot.now) == 0
        if member.replica is not None and member.warm and member.replica.pair is None
    ]


def _is_calm(snapshot: Snapshot, limits: Timeouts) -> bool:
    """Whether no current pair recovers: a new spare would take CPU from one that does."""
    pairs = (look_at(snapshot, pair, limits) for pair in snapshot.pairs())
    return all(len(pair.holders) == len(pair.replicas) for pair in pairs)


def _start_spares(
    snapshot: Snapshot, crashes: Mapping[str, Crashes], limits: Timeouts
) -> Iterator[Decision]:
    for member in snapshot.of_kind(MemberKind.SPARE):
        if member.life is Life.ABSENT:
            yield _start_first(member)
        elif member.life is Life.ENDED and snapshot.now >= next_start(member, crashes, limits):
            yield _restart_or_replace(member, snapshot, [], limits)


def describe_exit(member: MemberSnapshot) -> str:
    """How a process ended, as a predicate that follows its name."""
    code = member.exit_code
    if code is None:
        return "has ended"
    if code < 0:
        return f"was killed (signal {-code})"
    return {
        STOPPED: "stopped cleanly",
        REFUSED: "rejected the query, a source or a sink (exit code 3)",
        WIPED: "exited: its volume is unusable",
        COMPLETED: "exited: all results are delivered",
        RETIRED: "exited: its pair is retired",
    }.get(code, f"crashed (exit code {code})")


def describe_missing(member: MemberSnapshot) -> str:
    """Why an empty place has no pod, for a note of its environment."""
    place = member.place
    group = "the splits" if place.slot is None else f"merge slot {place.slot}"
    return f"a pod of {place.pair or group} cannot be created: {member.note}"


UNEXPLAINED = Complaint("Refused", "exited with code 3 and gave no reason", "read its log")
"""The complaint of a member that left no termination message."""
