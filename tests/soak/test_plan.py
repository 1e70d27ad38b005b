import pytest
from tests.soak.changes import COVERED as COVERED_CHANGES
from tests.soak.changes import MOST, Change, interleaved, planned_changes
from tests.soak.plan import COVERED, FREEZE, PAUSE, Fault, planned


def test_plan_is_determined_by_seed() -> None:
    assert planned(40, seed=5, pairs=2) == planned(40, seed=5, pairs=2)
    assert planned(40, seed=5, pairs=2) != planned(40, seed=6, pairs=2)


def test_every_plan_starts_with_each_process_kind() -> None:
    plan = planned(len(COVERED), seed=3, pairs=2)
    assert [(fault.act, fault.target) for fault in plan] == list(COVERED)


def test_at_most_three_faults_coincide() -> None:
    together, most = 1, 1
    plan = planned(500, seed=1, pairs=2)
    for fault in plan:
        together = together + 1 if fault.together else 1
        most = max(most, together)
    assert most == 3
    assert all(fault.after <= PAUSE[1] for fault in plan)
    assert all(FREEZE[0] <= fault.frozen <= FREEZE[1] for fault in plan)


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
    plan = list(interleaved(planned(faults, 1, 2), planned_changes(changes, 1)))
    assert [act for act in plan if isinstance(act, Fault)] == planned(faults, 1, 2)
    assert [act for act in plan if isinstance(act, Change)] == planned_changes(changes, 1)
    assert not changes or isinstance(plan[0], Change)
    between = "".join("c" if isinstance(act, Change) else "f" for act in plan).strip("c").split("c")
    if changes and faults >= changes:
        assert max(map(len, between)) <= -(-faults // changes)
