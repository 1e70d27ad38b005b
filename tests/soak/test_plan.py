from tests.soak.plan import COVERED, FREEZE, PAUSE, planned


def test_a_plan_is_what_its_seed_says() -> None:
    assert planned(40, seed=5, pairs=2) == planned(40, seed=5, pairs=2)
    assert planned(40, seed=5, pairs=2) != planned(40, seed=6, pairs=2)


def test_every_plan_begins_with_each_kind_of_process() -> None:
    plan = planned(len(COVERED), seed=3, pairs=2)
    assert [(fault.act, fault.target) for fault in plan] == list(COVERED)


def test_faults_come_alone_and_together_but_never_more_than_three() -> None:
    together, most = 1, 1
    plan = planned(500, seed=1, pairs=2)
    for fault in plan:
        together = together + 1 if fault.together else 1
        most = max(most, together)
    assert most == 3
    assert all(fault.after <= PAUSE[1] for fault in plan)
    assert all(FREEZE[0] <= fault.frozen <= FREEZE[1] for fault in plan)
