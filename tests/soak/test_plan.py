from collections import Counter
from typing import Any

import pytest
from tests.soak.campaign import Made
from tests.soak.changes import COVERED as COVERED_CHANGES
from tests.soak.changes import MOST, Change, ChangeMade, interleaved, planned_changes
from tests.soak.plan import COVERED, FREEZE, PAUSE, Act, Fault, Target, planned
from tests.soak.report import Soak
from tests.soak.targets import choose
from tests.soak.verdict import Verdict

REPLICAS = [
    {"kind": "replica", "name": f"{pair}-{letter}", "pair": pair, "role": role, "state": "Running"}
    for pair, roles in (
        ("pair-0", ("secondary", "primary")),
        ("pair-1", ("primary", "secondary")),
        ("pair-2", (None, None)),
        ("pair-3", (None, None)),
    )
    for letter, role in zip("ab", roles, strict=True)
]
SPLITS = [{"kind": "split", "name": f"split-{number}", "state": "Running"} for number in range(4)]
MERGES = [
    {"kind": "merge", "name": f"merge-{number}", "state": state}
    for number, state in enumerate(("Running", "Standby", "Running", "Starting"))
]
MEMBERS: list[dict[str, Any]] = [*REPLICAS, *SPLITS, *MERGES]
MEANT = {
    Target.PRIMARY: ["pair-0-b", "pair-1-a", "pair-2-a", "pair-3-a"],
    Target.SECONDARY: ["pair-0-a", "pair-1-b", "pair-2-b", "pair-3-b"],
    Target.LEAD: ["split-1"],
    Target.FOLLOWER: ["split-0", "split-2", "split-3"],
    Target.ACTIVE: ["merge-0", "merge-2"],
    Target.STANDBY: ["merge-1", "merge-3"],
}


def test_plan_is_determined_by_seed() -> None:
    assert planned(40, seed=5) == planned(40, seed=5)
    assert planned(40, seed=5) != planned(40, seed=6)


def test_every_plan_starts_with_each_process_kind() -> None:
    plan = planned(len(COVERED), seed=3)
    assert [(fault.act, fault.target) for fault in plan] == list(COVERED)


def test_at_most_three_faults_coincide() -> None:
    together, most = 1, 1
    plan = planned(500, seed=1)
    for fault in plan:
        together = together + 1 if fault.together else 1
        most = max(most, together)
    assert most == 3
    assert all(fault.after <= PAUSE[1] for fault in plan)
    assert all(FREEZE[0] <= fault.frozen <= FREEZE[1] for fault in plan)


@pytest.mark.parametrize("target", MEANT)
def test_everybody_old_and_new_is_hit(target: Target) -> None:
    hit = Counter(
        choose(target, fault.index, MEMBERS, lead="split-1") for fault in planned(400, seed=1)
    )
    assert sorted(hit, key=str) == MEANT[target]
    # About equally often: the index is not that of a pair of the first ones.
    assert min(hit.values()) > 400 / len(hit) * 0.7


@pytest.mark.parametrize("target", [*MEANT, Target.SUPERVISOR])
def test_target_without_member_is_nobody(target: Target) -> None:
    assert choose(target, 7, [], lead=None) is None


def test_only_split_stands_in_for_other_one() -> None:
    assert choose(Target.FOLLOWER, 3, SPLITS[:1], lead="split-0") == "split-0"


@pytest.mark.parametrize(("given_up", "good"), [(0, True), (2, True), (3, False), (4, False)])
def test_soak_is_good_only_if_changes_were_carried_out(given_up: int, good: bool) -> None:
    ways = ["timeout"] * given_up + [""] * (4 - given_up)
    changed = [ChangeMade(Change({"pairs": 1}), 0.0, "", given_up=way) for way in ways]
    verdict = Verdict(rows=1, lost=0, doubled=0, foreign=0, misordered=0)
    fault = Fault(Act.KILL, Target.LEAD, 0, 3.0, 1.0)
    found = Soak(
        seed=1,
        asked=1,
        made=[Made(fault, "split-0", 1.0, 1)],
        asked_changes=4,
        changed=changed,
        rows_in=1,
        verdict=verdict,
        take_overs=0,
        starts=1,
        epochs=1,
        longest_gap=0.0,
        seconds=1.0,
    )
    assert (found.good, found.completed) == (good, 4 - given_up)


def test_changes_are_determined_by_seed_and_each_makes_a_difference() -> None:
    plan = planned_changes(40, seed=5)
    assert plan == planned_changes(40, seed=5)
    assert plan != planned_changes(40, seed=6)
    assert tuple(plan[: len(COVERED_CHANGES)]) == COVERED_CHANGES
    sizes = {"pairs": 2, "splits": 2, "merges": 1}
    for change in plan:
        assert change.keys or any(sizes[name] != count for name, count in change.sizes.items())
        sizes.update(change.sizes)
        assert all(1 <= sizes[name] <= MOST[name] for name in sizes)
    assert {kind for change in plan for kind in (change.sizes or ["keys"])} == {*MOST, "keys"}


@pytest.mark.parametrize(("faults", "changes"), [(6, 3), (120, 30), (5, 5), (3, 7), (0, 2), (4, 0)])
def test_changes_are_spread_among_faults(faults: int, changes: int) -> None:
    plan = list(interleaved(planned(faults, 1), planned_changes(changes, 1)))
    assert [act for act in plan if isinstance(act, Fault)] == planned(faults, 1)
    assert [act for act in plan if isinstance(act, Change)] == planned_changes(changes, 1)
    assert not changes or isinstance(plan[0], Change)
    between = "".join("c" if isinstance(act, Change) else "f" for act in plan).strip("c").split("c")
    if changes and faults >= changes:
        assert max(map(len, between)) <= -(-faults // changes)
