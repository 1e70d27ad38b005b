"""Pairs that are built or retired: repaired without events, never at the cost of current ones."""

from dataclasses import replace
from typing import Any

import pytest
from tests.policy.builders import NOW, ended, look, replica, spare, split
from tests.policy.generations import (
    ABANDONED,
    BUILDING,
    CUTTING,
    LATE,
    NEW,
    OLD,
    RETIRING,
    leading,
    pair,
)

from tandem.policy.controller_state import ControllerState, Crashes, PairMemory, RecoveryStage
from tandem.policy.decide import RecoverMembers, decide, low_priority_members
from tandem.policy.decisions import (
    AssignSpare,
    Decision,
    EvictPod,
    Halt,
    Promote,
    RecordEvent,
    Restart,
    Start,
    Withhold,
)
from tandem.policy.recovery.placement import shared_nodes
from tandem.policy.recovery.pods import recover_pods
from tandem.policy.recovery.processes import can_discard, recover_processes
from tandem.policy.recovery.shadows import build_failures, build_obstacles
from tandem.policy.snapshot import Complaint, Life, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import REFUSED, STOPPED
from tandem_core.contract.reports import DriverState, LeadReport, ReplicaState
from tandem_core.model.states import SeatState

LIMITS = Timeouts()
TOO_LARGE = Complaint("OutOfMemory", "the state does not fit", "raise spec.spark.memory")
REFUSING: dict[str, Any] = ended(REFUSED, at=NOW - 60) | {"complaint": TOO_LARGE, "says": None}
KNOWN = PairMemory(primary="v-pair-0-a", formed=True, paired=True)
BOTH_SHELLS = pytest.mark.parametrize("recover", [recover_processes, recover_pods])


def built(*others: MemberSnapshot, lead: LeadReport | None = None, **late: Any) -> Snapshot:
    """Pair-0 is whole, pair-1 and pair-2 are built; `others` take the place of members."""
    there = {each.name: each for each in others}
    members = (split(), *pair(OLD), *pair("pair-1"), *pair("pair-2"))
    known = [there.pop(each.name, each) for each in members]
    lead = lead or leading(OLD, *NEW, **late)
    return look(*known, *there.values(), lead=lead, intent=BUILDING)


def decided(
    snapshot: Snapshot, recover: RecoverMembers = recover_processes, **memory: Any
) -> tuple[Decision, ...]:
    pairs = memory.pop("pairs", {OLD: KNOWN})
    return decide(snapshot, ControllerState(pairs=pairs, **memory), LIMITS, recover).decisions


# --- recovery ---------------------------------------------------------------------------------


@BOTH_SHELLS
def test_refusing_shadow_neither_halts_nor_restarts(recover: RecoverMembers) -> None:
    refusing = [replica(f"pair-1-{n}", "pair-1", **REFUSING) for n in "ab"]
    assert decided(built(*refusing), recover) == ()
    current = [replica(f"pair-0-{n}", OLD, **REFUSING) for n in "ab"]
    assert any(isinstance(each, Halt) for each in decided(built(*current), recover))


def test_crashed_shadow_restarts_on_its_volume_without_a_spare() -> None:
    crashed = replica("pair-1-b", "pair-1", **ended(1))
    assert decided(built(crashed, spare())) == (
        Restart("pair-1-b", "v-pair-1-b", "crashed (exit code 1)"),
    )
    current = replica("pair-0-b", **ended(1))
    (used,) = [each for each in decided(built(current, spare())) if type(each) is AssignSpare]
    assert used.name == "pair-0-b"


def test_new_pod_of_a_shadow_gets_no_spare() -> None:
    cold = replica("pair-1-b", "pair-1", run=0, life=Life.STARTING, says=None)
    broken = {OLD: KNOWN, "pair-1": replace(KNOWN, stage=RecoveryStage.BROKEN)}
    assert decided(built(cold, spare()), recover_pods, pairs=broken) == ()


def test_current_pairs_are_repaired_before_shadows() -> None:
    absent: dict[str, Any] = {"life": Life.ABSENT, "volume": None, "says": None}
    members = (*pair("pair-1", **absent), *pair(OLD, **ended(1)), split())
    snapshot = look(*members, lead=leading(OLD), intent=BUILDING)
    done = list(recover_processes(snapshot, ControllerState(), LIMITS))
    order = [(type(each), each.name) for each in done if isinstance(each, Start | Restart)]
    assert order == [
        (Restart, "pair-0-a"),
        (Restart, "pair-0-b"),
        (Start, "pair-1-a"),
        (Start, "pair-1-b"),
    ]


def test_muted_pair_is_repaired_until_the_lead_has_retired_it() -> None:
    members = (split(), *pair(OLD, **ended(1)), *pair("pair-1"), *pair("pair-2"))
    muted = look(*members, lead=leading(OLD, *NEW, generation=2), intent=RETIRING)
    assert [type(each) for each in decided(muted, pairs={})].count(Restart) == 2
    retired = look(*members, lead=leading(*NEW, generation=2), intent=RETIRING)
    assert Restart not in map(type, decided(retired, pairs={}))


@BOTH_SHELLS
def test_members_of_an_abandoned_generation_are_left_alone(recover: RecoverMembers) -> None:
    lost = replica("pair-1-a", "pair-1", **ended(1), volume_there=False)
    members = (split(), *pair(OLD), lost, replica("pair-1-b", "pair-1", silent_since=NOW - 99))
    given_up = look(*members, lead=leading(OLD, *NEW), intent=ABANDONED)
    assert decided(given_up, recover) == ()


def test_called_twin_is_no_reason_to_discard_a_copy() -> None:
    def discards(state: SeatState) -> bool:
        lead = leading(OLD, *NEW, state=state)
        return can_discard(replica("pair-1-b", "pair-1"), built(lead=lead), LIMITS)

    assert discards(SeatState.VERIFIED)
    assert not discards(SeatState.VERIFIED_CALLED)


def test_shadows_run_at_low_priority_until_they_are_synced() -> None:
    late = built(**LATE)
    known = ControllerState(pairs={OLD: KNOWN})
    assert low_priority_members(late, known, LIMITS) == {
        "pair-1-a",
        "pair-1-b",
        "pair-2-a",
        "pair-2-b",
    }
    assert low_priority_members(built(), known, LIMITS) == frozenset()


@pytest.mark.parametrize("other", ["pair-1-b", "pair-0-b"])
def test_no_pod_is_evicted_while_a_change_is_under_way(other: str) -> None:
    def evicted(snapshot: Snapshot) -> list[str]:
        done = decided(snapshot, recover_pods, pairs={OLD: KNOWN})
        return [each.name for each in done if isinstance(each, EvictPod)]

    outdated = replica(other, other[:6], outdated=True, hosts=frozenset({"n1"}), node="n0")
    snapshot = built(outdated)
    assert evicted(snapshot) == []
    if other == "pair-0-b":
        assert evicted(replace(snapshot, members=snapshot.members[:3], intent=None)) == [other]


def test_shadows_count_neither_as_shared_nor_as_unplaceable() -> None:
    nowhere = replica("pair-1-a", "pair-1", node="n0", outdated=True, hosts=frozenset())
    snapshot = built(nowhere, replica("pair-1-b", "pair-1", node="n0"))
    assert shared_nodes(snapshot) == {}
    assert Withhold not in map(type, decided(snapshot, recover_pods))


# --- roles and events -------------------------------------------------------------------------


def test_shadows_have_no_roles_and_no_events_until_they_are_current() -> None:
    assert decided(built()) == ()
    crashed = replica("pair-1-a", "pair-1", **ended(1))
    known = PairMemory("v-pair-1-a", frozenset({("pair-1-a", 1)}), formed=True, paired=True)
    done = decided(built(crashed), pairs={OLD: KNOWN, "pair-1": known})
    assert [type(each) for each in done] == [Restart]


def test_new_pairs_get_primaries_at_the_cut_without_a_failover() -> None:
    cut = replace(built(), lead=leading(OLD, *NEW, generation=2), intent=CUTTING)
    outcome = decide(cut, ControllerState(pairs={OLD: KNOWN}), LIMITS)
    promoted = [each for each in outcome.decisions if isinstance(each, Promote)]
    assert [(each.pair, each.name) for each in promoted] == [
        ("pair-1", "pair-1-a"),
        ("pair-2", "pair-2-a"),
    ]
    assert not [each for each in outcome.decisions if isinstance(each, RecordEvent)]
    assert outcome.memory.pairs.keys() == set(NEW)
    assert outcome.memory.totals.counters.take_overs == 0


def test_late_rows_are_counted_for_current_pairs_only() -> None:
    def late(rows: int) -> Snapshot:
        says = ReplicaState(state=DriverState.RUNNING, verified=True, late_dropped=rows)
        members = [replica(f"{name}-a", name, says=says) for name in (OLD, "pair-1")]
        return look(split(), *members, lead=leading(OLD, *NEW), intent=BUILDING)

    memory = ControllerState(pairs={OLD: KNOWN, "pair-1": PairMemory(primary="v-pair-1-a")})
    for rows in (5, 9):
        memory = decide(late(rows), memory, LIMITS).memory
    assert memory.totals.counters.late_dropped == 4


# --- why a change fails -----------------------------------------------------------------------


def test_refused_shadow_is_a_failure_of_its_pair() -> None:
    found = build_failures(built(replica("pair-1-b", "pair-1", **REFUSING)), ControllerState())
    assert found.keys() == {"pair-1"}
    assert found["pair-1"] == f"pair-1-b: {TOO_LARGE.text}"
    current = built(replica("pair-0-b", **REFUSING))
    assert build_failures(current, ControllerState()) == {}


def test_pod_that_cannot_be_created_is_named_by_its_pair() -> None:
    quota: dict[str, Any] = {"life": Life.ABSENT, "says": None, "note": "exceeded quota"}
    snapshot = built(*pair("pair-2", **quota))
    (obstacle,) = build_obstacles(snapshot).values()
    assert "pair-2 " in obstacle
    assert "pair-2-" not in obstacle
    assert "exceeded quota" in obstacle


@pytest.mark.parametrize(("code", "times", "fails"), [(1, 3, True), (-9, 3, True), (1, 2, False)])
def test_shadow_fails_after_three_crashes_in_a_row(code: int, times: int, fails: bool) -> None:
    snapshot = built(replica("pair-2-a", "pair-2", **ended(code)))
    known = ControllerState(crashes={"pair-2-a": Crashes(1, times)})
    assert bool(build_failures(snapshot, known)) is fails
    running = built(replica("pair-2-a", "pair-2"))
    assert build_failures(running, known) == {}


def test_shadow_that_stopped_cleanly_has_not_crashed() -> None:
    snapshot = built(replica("pair-2-a", "pair-2", **ended(STOPPED)))
    known = ControllerState(crashes={"pair-2-a": Crashes(1, 9)})
    assert build_failures(snapshot, known) == {}


def test_shadow_without_room_is_an_obstacle_and_no_failure() -> None:
    nowhere = replica("pair-1-a", "pair-1", life=Life.STARTING, hosts=frozenset(), says=None)
    quota = replica("pair-2-a", "pair-2", life=Life.ABSENT, note="exceeded quota", says=None)
    snapshot = built(nowhere, quota)
    assert build_obstacles(snapshot).keys() == {"pair-1", "pair-2"}
    assert "exceeded quota" in build_obstacles(snapshot)["pair-2"]
    assert build_failures(snapshot, ControllerState()) == {}
    assert build_obstacles(built()) == {}
