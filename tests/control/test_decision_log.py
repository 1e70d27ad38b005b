"""What the operator logs about one pipeline. That each turn is logged once: see `conftest.py`."""

import pytest
from tests.control.test_servers import Busy
from tests.control.world import World
from tests.decision_lines import Lines

from tandem.control.apply import Cause
from tandem.kube.kinds import REPLICA_SET, SERVICE
from tandem.kube.objects import name_of, uid_of
from tandem.policy.status.decision_line import DecisionLine
from tandem.policy.status.steps import Action

MANY = 120
"""Turns, in which objects are compared several times."""


def actions(lines: list[DecisionLine]) -> list[list[Action]]:
    return [[step.action for step in line.steps] for line in lines]


@pytest.mark.parametrize("restarted", [False, True])
def test_quiet_pipeline_logs_nothing(lines: Lines, restarted: bool) -> None:
    world = World(pairs={"count": 2, "spares": 1})
    world.until_paired(2)
    world.step()
    assert lines.take()
    if restarted:
        world.new_operator()
    for _ in range(MANY):
        world.step()
    assert lines.take() == []


def test_lost_primary_logs_promotion_with_versions_and_reason(lines: Lines) -> None:
    world = World()
    world.until_paired()
    gone, survivor = (name_of(world.replicas()[role]) for role in ("primary", "secondary"))
    before = world.recorded().intent.version
    lines.take()
    world.plane.frozen.add(uid_of(world.replicas()["primary"]))
    world.until(lambda: world.status().counters.take_overs == 1)
    (line,) = lines.take()
    promote, take_over, swap, *labels = line.steps
    assert (promote.action, promote.about) == (Action.PROMOTE, (survivor, "pair-0"))
    assert (take_over.action, take_over.about) == (Action.RECORD, ("pair-0",))
    assert (swap.action, swap.subject) == (Action.SWAP_INTENT, f"{before} → {before + 1}")
    assert swap.reason == promote.reason
    assert {step.action for step in labels} == {Action.LABEL}
    assert f"primary {gone} silent" in line.observed
    assert f"{survivor} running" in line.observed


def test_wait_is_logged_once_when_it_begins(lines: Lines) -> None:
    world = World()
    world.until_paired()
    lines.take()
    world.plane.frozen |= {uid_of(pod) for pod in world.replicas().values()}
    for _ in range(MANY):
        world.step()
    # Both hang: nobody may be given up.
    waits = [step for line in lines.take() for step in line.steps]
    assert {step.action for step in waits} == {Action.WAIT}
    assert len(waits) == len(set(waits)) == 2
    world.plane.frozen.clear()
    world.until_paired()


def test_refused_manifest_is_logged_once(lines: Lines) -> None:
    world = World()
    world.until_paired()
    lines.take()
    world.edit(splits={"count": 0})
    for _ in range(MANY):
        world.step()
    assert actions(lines.take()) == [[Action.REFUSE]]
    world.edit(splits={"count": 2})
    for _ in range(5):
        world.step()
    lines.take()
    world.edit(splits={"count": 0})
    world.step()
    assert actions(lines.take()) == [[Action.REFUSE]]


def test_reapply_logs_drifted_or_missing_as_cause(lines: Lines) -> None:
    world = World()
    world.until_paired()
    lines.take()
    found = world.cluster.get(REPLICA_SET, "shop", "spending-g1-pair-0")
    world.cluster.replace({**found, "spec": {**found["spec"], "minReadySeconds": 7, "replicas": 3}})
    world.cluster.remove(world.cluster.get(SERVICE, "shop", "spending-splits"))
    for _ in range(31):
        world.step()
    applied = {
        step.subject: step.reason
        for line in lines.take()
        for step in line.steps
        if step.action is Action.APPLY
    }
    assert applied == {
        "ReplicaSet spending-g1-pair-0": Cause.DRIFTED,
        "Service spending-splits": Cause.MISSING,
    }


def test_failing_apply_is_logged_once_while_it_lasts(lines: Lines) -> None:
    world = World()
    world.until_paired()
    world.cluster.remove(world.cluster.get(SERVICE, "shop", "spending-splits"))
    world.loop = world.another(Busy(world, "apply", SERVICE))
    lines.take()
    for _ in range(MANY):
        world.step()
    assert actions(lines.take()) == [[Action.WAIT]]


def test_used_spare_logs_one_assign_and_one_adopt(lines: Lines) -> None:
    world = World(pairs={"count": 1, "spares": 1})
    world.until_paired()
    world.step()
    (spare,) = world.of_kind("spare")
    lines.take()
    world.cluster.remove(world.replicas()["primary"])
    world.until(lambda: "Paired" in world.reasons())
    steps = [step for line in lines.take() for step in line.steps]
    about = [step.action for step in steps if name_of(spare) in step.about]
    assert about == [Action.ASSIGN, Action.ADOPT]
