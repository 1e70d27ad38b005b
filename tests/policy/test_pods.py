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


def test_pods_are_neither_started_nor_started_again() -> None:
    crashed = replica("pair-0-b", **ended(-9))
    assert decided(everybody(A, crashed)) == []
    assert decided(look(replica(**NOBODY), split(**ended(1)), lead=None)) == []
    booting = replica("pair-0-b", life=Life.STARTING, says=None, started=NOW - 1000)
    assert decided(everybody(A, booting)) == []


def test_a_pod_whose_volume_is_gone_is_cleared_away_whoever_it_was() -> None:
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
def test_one_that_hangs_is_given_up_if_its_twin_carries_the_pair(
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


def test_splits_and_merges_that_hang_are_the_kubelets() -> None:
    silent = {"silent_since": NOW - 1000}
    assert decided(look(split(**silent), split("split-1"), merge(**silent), A, B)) == []


def test_one_that_refuses_halts_the_pipeline_unless_its_twin_goes_on() -> None:
    why = Complaint("UnknownColumn", "there is none")
    refused: dict[str, Any] = {**ended(REFUSED), "complaint": why, "says": None}
    one, other = replica(**refused), replica("pair-0-b", **refused)
    assert decided(everybody(one, other)) == [Halt("pair-0-a", why), Halt("pair-0-b", why)]
    assert decided(everybody(A, other)) == []
    again = {**refused, "life": Life.STARTING}
    assert decided(everybody(replica(**again), other))[0] == Halt("pair-0-a", why)
    well = replace(replica(), complaint=why)
    assert decided(everybody(well, B)) == []
    stuck = merge(**refused)
    assert decided(look(stuck, A, B)) == [Halt("merge-0", why)]


def test_one_that_refused_an_older_manifest_is_tried_anew_unless_it_has_state() -> None:
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
def test_a_warm_spare_takes_the_place_of_one_that_has_nothing(missing: dict[str, Any]) -> None:
    lost = replica("pair-0-b", **missing)
    near, far = (on(node, spare(name)) for name, node in (("spare-0", "n0"), ("spare-1", "n1")))
    snapshot = everybody(A, lost, near, far)
    (decision,) = decided(snapshot, BROKEN)
    assert isinstance(decision, AssignSpare)
    assert (decision.spare, decision.name) == ("spare-1", "pair-0-b")
    assert decided(snapshot, WHOLE) == []
    cold = replace(far, report=None)
    assert decided(everybody(A, lost, near, cold), BROKEN) == []


def test_on_one_node_a_spare_beside_the_survivor_is_better_than_none() -> None:
    lost = replica("pair-0-b", **NOBODY)
    near = replace(on("n0", spare()), hosts=frozenset({"n0"}))
    (decision,) = decided(everybody(A, lost, near), BROKEN)
    assert isinstance(decision, AssignSpare)


def test_a_replica_that_comes_back_to_its_own_state_needs_no_spare() -> None:
    coming = replica("pair-0-b", life=Life.STARTING, says=None, run=1)
    assert decided(everybody(A, coming, on("n1", spare())), BROKEN) == []


def test_one_spare_is_given_to_one_replica() -> None:
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


def test_a_spare_that_has_joined_is_counted_among_the_pairs_pods() -> None:
    lost = replica("pair-0-b", **NOBODY)
    joined = on("n1", spare(says=ReplicaState(state=DriverState.JOINING, pair="pair-0")))
    another = on("n1", spare("spare-1"))
    assert decided(everybody(A, lost, joined, another), BROKEN) == [
        Adopt("spare-0", "pair-0", "it was a warm spare")
    ]


# --- placement ---------------------------------------------------------------------------------

TOGETHER = on("n0", replica("pair-0-b"))


def test_twins_and_splits_that_would_be_lost_together() -> None:
    assert shared_nodes(everybody(A, B)) == {}
    assert shared_nodes(everybody(A, TOGETHER)) == {"pair-0": "n0"}
    joining = on("n0", replica("pair-0-b", life=Life.STARTING, says=None))
    assert shared_nodes(everybody(A, joining)) == {"pair-0": "n0"}
    assert shared_nodes(everybody(A, replace(TOGETHER, life=Life.ENDED))) == {}
    splits = [on(node, split(f"split-{n}")) for n, node in enumerate(("n0", "n0", "n1"))]
    assert shared_nodes(look(*splits)) == {}
    assert shared_nodes(look(*splits[:2])) == {"splits": "n0"}
    assert shared_nodes(look(split(), split("split-1"))) == {}


def test_the_secondary_is_moved_when_everything_is_well_and_there_is_another_node() -> None:
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
def test_nobody_is_moved_in_vain_or_while_anything_is_at_risk(snapshot: Snapshot) -> None:
    assert not [each for each in decided(snapshot) if isinstance(each, EvictPod)]


def test_nobody_is_moved_while_a_pair_is_not_whole() -> None:
    apart = lead(seat("pair-0-a", committed=20), seat("pair-0-b", committed=10, synced=False))
    assert decided(everybody(A, TOGETHER, lead=apart), replace(WHOLE, paired=False)) == []


def test_splits_are_parted_but_not_by_moving_the_lead() -> None:
    splits = (on("n0", split()), on("n0", split("split-1")))
    (decision,) = decided(look(*splits, A, B, merge()))
    assert isinstance(decision, EvictPod)
    assert decision.name == "split-1"


def test_moves_that_do_not_help_come_more_and_more_seldom() -> None:
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


def test_outdated_drivers_are_made_anew_one_at_a_time_the_primary_last() -> None:
    old_a, old_b = replace(A, outdated=True), replace(B, outdated=True)
    for twins, expected in (((old_a, old_b), "pair-0-b"), ((old_a, B), "pair-0-a")):
        (decision,) = decided(everybody(*twins))
        assert isinstance(decision, EvictPod)
        assert decision.name == expected
    behind = lead(seat("pair-0-a"), seat("pair-0-b"), vulnerable=("pair-0",))
    assert decided(everybody(old_a, old_b, lead=behind)) == []


def test_nobody_is_given_up_for_a_template_that_no_node_takes() -> None:
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
def test_one_that_never_held_state_is_made_anew_when_its_template_has_changed(
    twin: dict[str, Any], renewed: bool
) -> None:
    waiting = replica("pair-0-b", **{"outdated": True, "hosts": BOTH, **twin})
    alone = lead(seat("pair-0-a"), vulnerable=("pair-0",))
    moves = [
        d.name for d in decided(everybody(A, waiting, lead=alone), BROKEN) if type(d) is EvictPod
    ]
    assert moves == ["pair-0-b"] * renewed
    assert EvictPod not in map(type, decided(everybody(A, waiting, lead=None), BROKEN))


def test_one_that_may_come_back_to_its_state_is_not_given_up_for_a_template() -> None:
    down = replica("pair-0-b", **ended(-9), outdated=True, hosts=BOTH)
    assert decided(everybody(A, down), BROKEN) == []


# --- status on a cluster -----------------------------------------------------------------------


def test_conditions_on_a_cluster_say_what_kubernetes_says() -> None:
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


def test_an_empty_place_is_nobodys_name() -> None:
    snapshot = everybody(A, replica("pair-0/missing-1", **NOBODY))
    memory = decide(snapshot, ControllerState(), LIMITS, recover_pods).memory
    background = Background("2024-01-01T00:00:00Z", LIMITS, one_machine=False)
    (pair,) = status_of(snapshot, memory, background, Status()).pairs
    assert (pair.primary, pair.secondary) == ("pair-0-a", None)
