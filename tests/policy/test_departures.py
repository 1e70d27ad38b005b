"""Members whose place is no longer wanted: what is decided until they are gone."""

from dataclasses import replace
from typing import Any

import pytest

from tandem.policy.controller_state import ControllerState, Crashes
from tandem.policy.decide import decide
from tandem.policy.decisions import Decision, Dismiss, Kill, Remove, Restart, Start, Wait
from tandem.policy.recovery.departures import see_off
from tandem.policy.snapshot import Life, MemberPlace, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import FAILED, STOPPED, WIPED
from tandem_core.model.states import MemberKind

LIMITS = Timeouts()
NOW = 1000.0
SPLIT = MemberSnapshot(
    MemberPlace("split-1", MemberKind.SPLIT), Life.UP, "v", started=900.0, leaving=True
)
REPLICA = replace(SPLIT, place=MemberPlace("pair-1-a", MemberKind.REPLICA, pair="pair-1"))
MERGE = replace(SPLIT, place=MemberPlace("merge-2", MemberKind.MERGE, slot=1))


def told(member: MemberSnapshot, **changes: Any) -> Decision | None:
    """What is decided about a member, if anything."""
    snapshot = Snapshot(NOW, (replace(member, **changes),))
    memory = ControllerState(crashes={"split-1": Crashes(0, 5)})
    decisions = list(see_off(snapshot, memory, LIMITS))
    assert len(decisions) <= 1
    return decisions[0] if decisions else None


@pytest.mark.parametrize("member", [SPLIT, REPLICA, MERGE])
def test_running_member_is_asked_to_leave_once(member: MemberSnapshot) -> None:
    assert isinstance(told(member), Dismiss)
    assert told(member, dismissed=NOW - 1) is None


@pytest.mark.parametrize("member", [REPLICA, MERGE])
def test_replica_or_merge_that_does_not_leave_is_killed_and_removed(member: MemberSnapshot) -> None:
    assert isinstance(told(member, dismissed=NOW - LIMITS.hung), Kill)
    for ended in ({"exit_code": -9}, {"exit_code": STOPPED, "dismissed": NOW - 1}):
        removed = told(member, life=Life.ENDED, ended=NOW, **ended)
        assert isinstance(removed, Remove)
        assert removed.volume == "v"
    assert isinstance(told(member, life=Life.ABSENT), Remove)


def test_split_may_take_long_to_hand_over() -> None:
    assert told(SPLIT, dismissed=NOW - 10 * LIMITS.hung) is None
    assert told(SPLIT, life=Life.STARTING, started=NOW) is None
    assert isinstance(told(SPLIT, dismissed=NOW - 1, silent_since=NOW - LIMITS.hung), Kill)


def test_split_that_has_not_handed_over_is_started_again() -> None:
    ended = {"life": Life.ENDED, "ended": NOW - 100, "started": NOW - 200}
    assert isinstance(told(SPLIT, **ended, exit_code=FAILED, dismissed=NOW - 110), Restart)
    assert isinstance(told(SPLIT, **ended, exit_code=-9), Restart)
    # Stopped, but not because it was asked to leave.
    assert isinstance(told(SPLIT, **ended, exit_code=STOPPED), Restart)
    assert isinstance(told(SPLIT, life=Life.ABSENT), Start)
    crashing = {"life": Life.ENDED, "ended": NOW, "started": NOW - 1}
    assert isinstance(told(SPLIT, **crashing, exit_code=FAILED), Wait)


def test_split_that_has_left_is_removed_with_its_volume() -> None:
    left = told(SPLIT, life=Life.ENDED, ended=NOW, exit_code=STOPPED, dismissed=NOW - 1)
    assert left == Remove("split-1", "v", left.reason if left is not None else "")
    assert isinstance(told(SPLIT, life=Life.ENDED, ended=NOW, exit_code=WIPED), Remove)
    assert isinstance(told(SPLIT, life=Life.ENDED, ended=NOW, volume_there=False), Remove)
    assert isinstance(told(SPLIT, life=Life.ABSENT, volume=None), Remove)


def test_leaving_replica_is_of_no_pair_and_is_not_recovered() -> None:
    ended = replace(REPLICA, life=Life.ENDED, ended=NOW, exit_code=FAILED)
    snapshot = Snapshot(NOW, (ended,))
    assert snapshot.pairs() == ()
    (decision,) = decide(snapshot, ControllerState(), LIMITS).decisions
    assert isinstance(decision, Remove)
