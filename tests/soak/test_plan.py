from tests.soak.plan import COVERED, FREEZE, PAUSE, planned


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
