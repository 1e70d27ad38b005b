"""Departures on one machine: members whose place is no longer wanted leave, then their volumes go.

A split hands its lane, its partitions and the lead over before it exits by itself; until then it is
restarted like any other, since peers may need its lane. Nothing needs a replica or a merge whose
place is given up: the lead has retired its pair, or every sink has sealed its slot.
"""

from collections.abc import Iterator, Mapping

from tandem.policy.controller_state import ControllerState, Crashes
from tandem.policy.decisions import Decision, Dismiss, Kill, Remove, Start
from tandem.policy.recovery.processes import kill_hung, restart_or_wait
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import STOPPED, WIPED
from tandem_core.model.states import MemberKind

_UNWANTED = "its place is no longer wanted"


def see_off(snapshot: Snapshot, memory: ControllerState, limits: Timeouts) -> Iterator[Decision]:
    """Decides about the members that are leaving."""
    for member in snapshot.members:
        if not member.leaving:
            continue
        if member.kind is MemberKind.SPLIT:
            yield from _see_split_off(member, snapshot.now, memory.crashes, limits)
        elif member.running:
            yield from _ask_to_leave(member, snapshot.now, limits)
        else:
            yield Remove(member.name, member.volume, _UNWANTED)


def _ask_to_leave(member: MemberSnapshot, now: float, limits: Timeouts) -> Iterator[Decision]:
    if member.dismissed is None:
        yield Dismiss(member.name, _UNWANTED)
    elif now - member.dismissed >= limits.hung:
        yield Kill(member.name, f"has not left within {limits.hung:g} s")


def _see_split_off(
    member: MemberSnapshot, now: float, crashes: Mapping[str, Crashes], limits: Timeouts
) -> Iterator[Decision]:
    if member.running:
        yield from kill_hung(member, now, limits)
        # Before it answers it may not heed the signal yet.
        if member.life is Life.UP and member.dismissed is None:
            yield Dismiss(member.name, _UNWANTED)
    elif _has_left(member):
        yield Remove(member.name, member.volume, _UNWANTED)
    elif member.life is Life.ABSENT:
        yield Start(member.name, member.volume, "it has yet to hand over its lane")
    else:
        yield from restart_or_wait(member, now, crashes, limits)


def _has_left(member: MemberSnapshot) -> bool:
    """Whether a split that does not run has handed over its lane, or has nothing to hand over."""
    if member.volume is None or not member.volume_there or member.exit_code == WIPED:
        return True
    return (
        member.life is Life.ENDED and member.exit_code == STOPPED and member.dismissed is not None
    )
