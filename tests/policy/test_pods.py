"""What is decided about pods, which Kubernetes starts."""

from dataclasses import replace
from typing import Any

import pytest
from tests.policy.builders import (
    BOTH_SEATS,
    NOW,
    ended,
    lead,
    look,
    merge,
    replica,
    seat,
    spare,
    split,
)

from tandem.policy.controller_state import ControllerState, PairMemory, PodEvictions, RecoveryStage
from tandem.policy.decide import decide
from tandem.policy.decisions import (
    Adopt,
    AssignSpare,
    Decision,
    EvictPod,
    Halt,
    Kill,
    Promote,
    RecordEvent,
    Replace,
    Wait,
    Withhold,
)
from tandem.policy.recovery.placement import shared_nodes
from tandem.policy.recovery.pods import recover_pods
from tandem.policy.snapshot import Complaint, Life, MemberSnapshot, Snapshot
from tandem.policy.status.conditions import Background
from tandem.policy.status.status import status_of
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import REFUSED
from tandem_core.contract.reports import DriverState, ReplicaState
from tandem_core.model.states import ConditionStatus, ConditionType
from tandem_core.model.status import Status

LIMITS = Timeouts(hung=30.0)
BOTH = frozenset({"n0", "n1"})
WHOLE = PairMemory(primary="v-pair-0-a", formed=True, paired=True)
BROKEN = replace(WHOLE, stage=RecoveryStage.BROKEN, paired=False)
NOBODY: dict[str, Any] = {"life": Life.ABSENT, "volume": None, "says": None}
COLD: dict[str, Any] = {"run": 0, "life": Life.STARTING, "says": None}


def decided(snapshot: Snapshot, pair: PairMemory = WHOLE, **memory: Any) -> list[Decision]:
    """What is to be done about pods."""
    outcome = decide(
        snapshot, ControllerState(pairs={"pair-0": pair}, **memory), LIMITS, recover_pods
    )
    return [
        each for each in outcome.decisions if not isinstance(each, Promote | RecordEvent | Wait)
    ]


def on(node: str, member: MemberSnapshot) -> MemberSnapshot:
    return replace(member, node=node, hosts=BOTH)


def everybody(*twins: MemberSnapshot, **more: Any) -> Snapshot:
    splits = (on("n0", split()), on("n1", split("split-1")))
    return look(*splits, *twins, merge(), merge("merge-1"), **more)


A, B = on("n0", replica()), on("n1", replica("pair-0-b"))


def test_pods_are_never_started_or_restarted_by_operator() -> None:
    crashed = replica("pair-0-b", **ended(-9))
    assert decided(everybody(A, crashed)) == []
    assert decided(look(replica(**NOBODY), split(**ended(1)), lead=None)) == []
    booting = replica("pair-0-b", life=Life.STARTING, says=None, started=NOW - 1000)
    assert decided(everybody(A, booting)) == []


def test_pod_without_volume_is_replaced_whatever_its_kind() -> None:
    for lost in (split(), merge(), replica()):
        gone = replace(lost, volume_there=False, life=Life.ENDED, note="Evicted")
        (decision,) = decided(look(gone, lead=None))
        assert decision == Replace(lost.name, f"v-{lost.name}", "Evicted")


@pytest.mark.parametrize(
    ("silent", "seats", "killed"),
    [
        (29.0, {"silent": True}, False),
        (30.0, {"silent": True}, True),
        # The lead hears it: only the way from here to there is cut.
        (30.0, {"silent": False}, False),
    ],
)
def test_hung_replica_is_killed_only_if_twin_carries_the_pair(
    silent: float, seats: dict[str, bool], killed: bool
) -> None:
    frozen = replica("pair-0-b", silent_since=NOW - silent)
    heard = lead(seat("pair-0-a"), seat("pair-0-b", **seats))
    snapshot = everybody(A, frozen, lead=heard)
    assert [type(each) for each in decided(snapshot)] == ([Kill] if killed else [])
    assert decided(everybody(A, frozen, lead=None)) == []
    unsure = lead(seat("pair-0-a"), seat("pair-0-b", **seats), vulnerable=("pair-0",))
    assert decided(everybody(A, frozen, lead=unsure)) == []
    both = replica(silent_since=NOW - 40)
    assert decided(everybody(both, frozen, lead=heard)) == []
    waiting = decide(
        everybody(A, frozen, lead=unsure), ControllerState(), LIMITS, recover_pods
    ).decisions
    held = [each.name for each in waiting if isinstance(each, Wait)]
    assert held == (["pair-0-b"] if killed else [])


def test_hung_splits_and_merges_are_left_to_kubelet() -> None:
    silent = {"silent_since": NOW - 1000}
    assert decided(look(split(**silent), split("split-1"), merge(**silent), A, B)) == []


def test_refusal_halts_pipeline_unless_twin_continues() -> None:
    why = Complaint("UnknownColumn", "there is none")
    refused: dict[str, Any] = {**ended(REFUSED), "complaint": why, "says": None}
    one, other = replica(**refused), replica("pair-0-b", **refused)
    assert decided(everybody(one, other)) == [Halt("pair-0-a", why), Halt("pair-0-b", why)]
    assert Halt("pair-0-a", why).named.text == "UnknownColumn: pair-0-a: there is none"
    assert decided(everybody(A, other)) == []
    again = {**refused, "life": Life.STARTING}
    assert decided(everybody(replica(**again), other))[0] == Halt("pair-0-a", why)
    well = replace(replica(), complaint=why)
    assert decided(everybody(well, B)) == []
    stuck = merge(**refused)
    assert decided(look(stuck, A, B)) == [Halt("merge-0", why)]


def test_refusal_of_older_manifest_is_retried_unless_replica_has_state() -> None:
    why = Complaint("NoSuchFile", "there is none")
    refused: dict[str, Any] = {**ended(REFUSED), "complaint": why, "says": None, "outdated": True}
    snapshot = everybody(replica(**refused), replica("pair-0-b", **refused), lead=lead())
    assert [type(each) for each in decided(snapshot, PairMemory())] == [Replace, Replace]
    pending = replica(**{**NOBODY, "life": Life.STARTING, "volume": "v", "outdated": True})
    nothing = look(pending, lead=lead())
    assert [type(each) for each in decided(nothing, PairMemory())] == [Replace]
    # It may hold the pair's state, whatever is remembered.
    assert decided(look(pending, lead=None), PairMemory()) == []
    assert decided(look(pending, lead=lead(seat("pair-0-b"))), PairMemory()) == []
    assert [type(each) for each in decided(snapshot, WHOLE)] == [Halt, Halt]


@pytest.mark.parametrize("missing", [NOBODY, COLD, {**ended(1), "run": 3}])
def test_warm_spare_replaces_replica_without_state(missing: dict[str, Any]) -> None:
    lost = replica("pair-0-b", **missing)
    near, far = (on(node, spare(name)) for name, node in (("spare-0", "n0"), ("spare-1", "n1")))
    snapshot = everybody(A, lost, near, far)
    (decision,) = decided(snapshot, BROKEN)
    assert isinstance(decision, AssignSpare)
    assert (decision.spare, decision.name) == ("spare-1", "pair-0-b")
    assert decided(snapshot, WHOLE) == []
    cold = replace(far, report=None)
    assert decided(everybody(A, lost, near, cold), BROKEN) == []


def test_spare_beside_survivor_is_used_when_no_other_node_exists() -> None:
    lost = replica("pair-0-b", **NOBODY)
    near = replace(on("n0", spare()), hosts=frozenset({"n0"}))
    (decision,) = decided(everybody(A, lost, near), BROKEN)
    assert isinstance(decision, AssignSpare)


def test_restarting_replica_with_own_state_gets_no_spare() -> None:
    coming = replica("pair-0-b", life=Life.STARTING, says=None, run=1)
    assert decided(everybody(A, coming, on("n1", spare())), BROKEN) == []


def test_spare_is_assigned_to_one_replica_only() -> None:
    lost = [replica(f"{pair}-b", pair, **NOBODY) for pair in ("pair-0", "pair-1")]
    holders = [replica(f"{pair}-a", pair) for pair in ("pair-0", "pair-1")]
    said = lead(seat("pair-0-a"), seat("pair-1-a"))
    snapshot = look(*holders, *lost, spare(), lead=said)
    memory = ControllerState(
        pairs={"pair-0": BROKEN, "pair-1": replace(BROKEN, primary="v-pair-1-a")}
    )
    assigned = [
        each for each in recover_pods(snapshot, memory, LIMITS) if isinstance(each, AssignSpare)
    ]
    assert len(assigned) == 1


def test_joined_spare_is_adopted_by_pair() -> None:
    lost = replica("pair-0-b", **NOBODY)
    joined = on("n1", spare(says=ReplicaState(state=DriverState.JOINING, pair="pair-0")))
    another = on("n1", spare("spare-1"))
    assert decided(everybody(A, lost, joined, another), BROKEN) == [
        Adopt("spare-0", "pair-0", "it was a warm spare")
    ]


# --- placement ---------------------------------------------------------------------------------

TOGETHER = on("n0", replica("pair-0-b"))


def test_shared_nodes_lists_colocated_twins_and_splits() -> None:
    assert shared_nodes(everybody(A, B)) == {}
    assert shared_nodes(everybody(A, TOGETHER)) == {"pair-0": "n0"}
    joining = on("n0", replica("pair-0-b", life=Life.STARTING, says=None))
    assert shared_nodes(everybody(A, joining)) == {"pair-0": "n0"}
    assert shared_nodes(everybody(A, replace(TOGETHER, life=Life.ENDED))) == {}
    splits = [on(node, split(f"split-{n}")) for n, node in enumerate(("n0", "n0", "n1"))]
    assert shared_nodes(look(*splits)) == {}
    assert shared_nodes(look(*splits[:2])) == {"splits": "n0"}
    assert shared_nodes(look(split(), split("split-1"))) == {}


def test_secondary_is_evicted_when_pipeline_is_whole_and_node_is_free() -> None:
    (decision,) = decided(everybody(A, TOGETHER))
    assert isinstance(decision, EvictPod)
    assert decision.name == "pair-0-b"
    other = replace(WHOLE, primary="v-pair-0-b")
    (decision,) = decided(everybody(A, TOGETHER), other)
    assert isinstance(decision, EvictPod)
    assert decision.name == "pair-0-a"


@pytest.mark.parametrize(
    "snapshot",
    [
        everybody(A, replace(TOGETHER, hosts=frozenset({"n0"}))),
        everybody(A, replace(TOGETHER, hosts=frozenset())),
        everybody(A, TOGETHER, lead=None),
        everybody(A, TOGETHER, lead=BOTH_SEATS.replace(vulnerable=("lane",))),
        everybody(A, replace(TOGETHER, silent_since=NOW)),
        everybody(A, TOGETHER, replica("pair-1-b", "pair-1", **NOBODY)),
        look(split(**ended(1)), A, TOGETHER, merge()),
    ],
)
def test_no_pod_is_evicted_without_target_node_or_at_risk(snapshot: Snapshot) -> None:
    assert not [each for each in decided(snapshot) if isinstance(each, EvictPod)]


def test_no_pod_is_evicted_while_pair_is_unsynced() -> None:
    apart = lead(seat("pair-0-a", committed=20), seat("pair-0-b", committed=10, synced=False))
    assert decided(everybody(A, TOGETHER, lead=apart), replace(WHOLE, paired=False)) == []


def test_colocated_splits_separate_without_evicting_lead() -> None:
    splits = (on("n0", split()), on("n0", split("split-1")))
    (decision,) = decided(look(*splits, A, B, merge()))
    assert isinstance(decision, EvictPod)
    assert decision.name == "split-1"


def test_evictions_without_effect_back_off() -> None:
    snapshot = everybody(A, TOGETHER)
    outcome = decide(snapshot, ControllerState(pairs={"pair-0": WHOLE}), LIMITS, recover_pods)
    assert outcome.memory.moves == PodEvictions(NOW, 1)
    pauses = []
    for count in (1, 2, 3, 20):
        moved = PodEvictions(NOW, count)
        waits = [
            seconds
            for seconds in range(1000)
            if not decided(replace(snapshot, now=NOW + seconds), moves=moved)
        ]
        pauses.append(len(waits))
    assert pauses == [60, 120, 240, 960]
    paused = ControllerState(pairs={"pair-0": WHOLE}, moves=PodEvictions(NOW, 1))
    waiting = [
        decide(replace(snapshot, now=NOW + seconds), paused, LIMITS, recover_pods).decisions
        for seconds in (1, 59)
    ]
    # The reason does not count down: it is logged once.
    assert waiting[0] == waiting[1]
    assert [type(each) for each in waiting[0]] == [Wait]
    parted = decide(
        everybody(A, B), ControllerState(pairs={"pair-0": WHOLE}, moves=moved), LIMITS, recover_pods
    )
    assert parted.memory.moves is None


def test_outdated_drivers_are_evicted_one_at_a_time_primary_last() -> None:
    old_a, old_b = replace(A, outdated=True), replace(B, outdated=True)
    for twins, expected in (((old_a, old_b), "pair-0-b"), ((old_a, B), "pair-0-a")):
        (decision,) = decided(everybody(*twins))
        assert isinstance(decision, EvictPod)
        assert decision.name == expected
    behind = lead(seat("pair-0-a"), seat("pair-0-b"), vulnerable=("pair-0",))
    assert decided(everybody(old_a, old_b, lead=behind)) == []


def test_no_replica_is_evicted_for_unschedulable_template() -> None:
    nowhere: dict[str, Any] = {"outdated": True, "hosts": frozenset[str]()}
    old_a, old_b = replace(A, **nowhere), replace(B, **nowhere)
    (decision,) = decided(everybody(old_a, old_b))
    assert isinstance(decision, Withhold)
    # Who may not see the nodes does what is asked for.
    unseen = replace(B, outdated=True, hosts=None)
    assert [type(each) for each in decided(everybody(A, unseen))] == [EvictPod]


PENDING: dict[str, Any] = {"life": Life.STARTING, "says": None, "run": 0}
WHY = Complaint("NoSuchFile", "there is none")


@pytest.mark.parametrize(
    ("twin", "renewed"),
    [
        (PENDING, True),
        ({**ended(1), "says": None}, True),
        ({**ended(REFUSED), "says": None, "complaint": WHY}, True),
        # It answers: it may become whole before the changed template turns out to be wrong.
        ({"says": ReplicaState(state=DriverState.JOINING)}, False),
        ({**PENDING, "outdated": False}, False),
        ({**PENDING, "hosts": frozenset()}, False),
    ],
)
def test_stateless_outdated_replica_is_evicted(twin: dict[str, Any], renewed: bool) -> None:
    waiting = replica("pair-0-b", **{"outdated": True, "hosts": BOTH, **twin})
    alone = lead(seat("pair-0-a"), vulnerable=("pair-0",))
    moves = [
        d.name for d in decided(everybody(A, waiting, lead=alone), BROKEN) if type(d) is EvictPod
    ]
    assert moves == ["pair-0-b"] * renewed
    assert EvictPod not in map(type, decided(everybody(A, waiting, lead=None), BROKEN))


def test_crashed_replica_with_state_is_not_evicted_for_new_template() -> None:
    down = replica("pair-0-b", **ended(-9), outdated=True, hosts=BOTH)
    assert decided(everybody(A, down), BROKEN) == []


# --- status on a cluster -----------------------------------------------------------------------


def test_conditions_include_kubernetes_messages() -> None:
    pending = replica("pair-0-b", **{**COLD, "note": "Unschedulable: no room"})
    crashed = merge("merge-1", **{**ended(-9), "note": "OOMKilled"})
    snapshot = look(on("n0", split()), A, pending, merge(), crashed)
    memory = decide(snapshot, ControllerState(), LIMITS, recover_pods).memory
    background = Background("2024-01-01T00:00:00Z", LIMITS, one_machine=False)
    status = status_of(snapshot, memory, background, Status())
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    assert ready.message == (
        "pair-0-b: Unschedulable: no room; merge-1 was killed (signal 9): OOMKilled"
    )
    assert {member.name: member.node for member in status.members}["pair-0-a"] == "n0"
    trouble = Complaint("InvalidSpec", "spec.x is wrong")
    status = status_of(snapshot, memory, replace(background, trouble=trouble), Status())
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    assert (ready.status, ready.reason) == (ConditionStatus.TRUE, "InvalidSpec")
    assert ready.message.startswith("spec.x is wrong; ")


def test_empty_place_is_not_shown_as_replica() -> None:
    snapshot = everybody(A, replica("pair-0/missing-1", **NOBODY))
    memory = decide(snapshot, ControllerState(), LIMITS, recover_pods).memory
    background = Background("2024-01-01T00:00:00Z", LIMITS, one_machine=False)
    (pair,) = status_of(snapshot, memory, background, Status()).pairs
    assert (pair.primary, pair.secondary) == ("pair-0-a", None)
