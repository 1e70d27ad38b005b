"""What keeps new pairs from being built: reasons to give a change up, and reasons to wait.

A new pair's member that fails is repaired like any other, with back-off, and nothing of the current
pairs depends on it. So a change is given up only for what time does not mend.
"""

from collections.abc import Mapping

from tandem.policy.controller_state import ControllerState
from tandem.policy.recovery.processes import UNEXPLAINED, describe_exit, describe_missing
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem_core.contract.exit_codes import REFUSED, STOPPED

CRASHES = 3
"""Crashes in a row after which a new pair counts as impossible to build."""


def build_failures(snapshot: Snapshot, memory: ControllerState) -> Mapping[str, str]:
    """New pairs that cannot be built, with the reason: refused, or crashing again and again."""
    reasons = (
        (member.place.pair or "", _why_hopeless(member, memory)) for member in _shadows(snapshot)
    )
    return {pair: reason for pair, reason in reasons if reason}


def build_obstacles(snapshot: Snapshot) -> Mapping[str, str]:
    """New pairs that cannot be built at the moment, with the reason: no node has room for them."""
    obstacles = ((member.place.pair or "", _obstacle(member)) for member in _shadows(snapshot))
    return {pair: obstacle for pair, obstacle in obstacles if obstacle}


def _shadows(snapshot: Snapshot) -> list[MemberSnapshot]:
    standings = snapshot.standings
    pairs = standings.shadows if standings is not None else ()
    return [member for pair in pairs for member in snapshot.replicas_of(pair)]


def _why_hopeless(member: MemberSnapshot, memory: ControllerState) -> str:
    if member.life is not Life.ENDED or member.exit_code == STOPPED:
        return ""
    if member.exit_code == REFUSED:
        return f"{member.name}: {(member.complaint or UNEXPLAINED).text}"
    row = memory.crashes.get(member.name)
    if row is None or row.count < CRASHES:
        return ""
    note = f" ({member.note})" if member.note else ""
    return f"{member.name} {describe_exit(member)}, {row.count} times in a row{note}"


def _obstacle(member: MemberSnapshot) -> str:
    """Why a member that has no process yet cannot get one."""
    if member.life is Life.ABSENT and member.note:
        return describe_missing(member)
    if member.life not in {Life.ABSENT, Life.STARTING}:
        return ""
    why = member.note or ("no node accepts it" if member.fits_nowhere else "")
    return f"{member.name} cannot start: {why}" if why else ""
