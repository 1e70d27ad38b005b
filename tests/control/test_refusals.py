"""Manifests that cannot be run, and members that refuse."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.control.world import KEY, World

from tandem.kube.kinds import (
    CONFIG_MAP,
    DISRUPTION_BUDGET,
    LEASE,
    POD,
)
from tandem.kube.objects import name_of, uid_of
from tandem_core.model.states import ConditionStatus, ConditionType, Phase

WRONG: dict[str, Any] = {"query": {"sql": "SELECT 1"}, "splits": {"count": 0}}
READY = ConditionType.READY


def test_invalid_manifest_is_refused_by_field_and_fixed_one_runs() -> None:
    world = World(**WRONG)
    assert world.step() == 30.0
    assert world.phase() is Phase.REFUSED
    ready = world.condition(READY)
    assert (ready.status, ready.reason) == (ConditionStatus.FALSE, "InvalidSpec")
    assert "spec.splits.count" in ready.message
    assert world.reasons() == ["Refused"]
    assert world.data_plane() == {}
    assert world.status().observed_generation == 0
    world.step()
    assert world.reasons() == ["Refused"]
    world.edit(splits={"count": 2}, query={"sql": "SELECT user FROM payments"})
    world.until_paired()
    assert world.phase() is Phase.RUNNING
    assert world.status().observed_generation == 2


def test_unsupported_source_is_refused() -> None:
    kafka = {"bootstrapServers": "kafka:9092", "topic": "payments"}
    streams = [
        {
            "name": "payments",
            "schema": "user STRING, amount BIGINT",
            "key": ["user"],
            "source": {"kafka": kafka},
        }
    ]
    world = World(streams=streams)
    world.step()
    assert world.condition(READY).reason == "Unsupported"
    assert "spec.streams[0].source: 'kafka'" in world.condition(READY).message


def test_invalid_update_changes_nothing_and_failover_still_works() -> None:
    world = World()
    world.until_paired()
    before = world.data_plane()
    world.edit(splits={"count": 0})
    world.until(lambda: world.condition(READY).reason == "InvalidSpec")
    assert world.holds(READY)
    assert world.phase() is Phase.RUNNING
    assert world.status().observed_generation == 1
    assert world.data_plane() == before
    world.cluster.remove(world.replicas()["primary"])
    world.until(lambda: world.reasons()[-1] == "Paired")
    assert world.reasons() == ["Refused", "Failover", "CatchUpStarted", "Paired"]
    world.edit(splits={"count": 2})
    world.until(lambda: world.condition(READY).reason == "Running")
    assert world.status().observed_generation == 3


def refused_by_spark(why: Mapping[str, str]) -> World:
    """A pipeline whose replicas have ended because of its query."""
    world = World()
    world.plane.refusing = True
    for _ in range(3):
        world.step()
    for pod in world.of_kind("replica"):
        world.cluster.crash(name_of(pod), 3, json.dumps(why))
    world.until(lambda: world.condition(READY).reason == why["reason"])
    assert world.phase() is Phase.REFUSED
    return world


def test_query_refusal_is_reported_and_fixed_template_is_rolled_out() -> None:
    why = {"reason": "NoSuchFile", "message": "There is no query.py.", "hint": "Mount it."}
    world = refused_by_spark(why)
    replicas = world.of_kind("replica")
    message = world.condition(READY).message
    assert message.endswith(": There is no query.py; Mount it.")
    assert message.partition(":")[0] in map(name_of, replicas)
    assert world.reasons() == ["Halted"]
    for pod in replicas:
        world.cluster.restart(name_of(pod), 3, json.dumps(why))
    world.step()
    assert world.condition(READY).reason == "NoSuchFile"
    world.plane.refusing = False
    template = {"volumes": [{"name": "query", "configMap": {"name": "query"}}]}
    world.edit(pairs={"count": 1, "template": template})
    world.until_paired()
    assert world.reasons().count("PodReplaced") == 2
    for pod in world.of_kind("replica"):
        volumes = [volume["name"] for volume in pod["spec"]["volumes"]]
        assert "query" in volumes


def test_refusing_drivers_do_not_block_node_drain() -> None:
    def unready() -> str:
        budget = world.cluster.get(DISRUPTION_BUDGET, KEY.namespace, "spending-g1-pair-0")
        return str(budget["spec"]["unhealthyPodEvictionPolicy"])

    world = refused_by_spark({"reason": "NoSuchFile", "message": "No query.py.", "hint": ""})
    world.step()
    assert unready() == "AlwaysAllow"
    world.plane.refusing = False
    world.edit(pairs={"count": 1, "template": {"labels": {"team": "a"}}})
    world.until_paired()
    assert unready() == "IfHealthyBudget"
    # From now on there is state: one that is not ready may hold its only copy.
    for pod in world.replicas().values():
        world.cluster.crash(name_of(pod), 3, "no JSON")
    world.until(lambda: world.phase() is Phase.HALTED)
    for _ in range(3):
        world.step()
    assert unready() == "IfHealthyBudget"


@pytest.mark.parametrize("dies_after", [None, *range(1, 12)])
def test_fixed_query_restarts_pipeline_even_if_operator_dies(dies_after: int | None) -> None:
    why = {"reason": "MissingColumn", "message": "There is no amuont.", "hint": ""}
    world = refused_by_spark(why)
    old, before = {uid_of(pod) for pod in world.pods()}, world.recorded()
    register = world.cluster.get(LEASE, KEY.namespace, "spending-register")
    world.new_operator(dies_after)
    world.step()
    assert {uid_of(pod) for pod in world.pods()} == old
    world.plane.refusing = False
    world.edit(query={"sql": "SELECT user FROM payments"})
    world.until_paired()
    assert not old & {uid_of(pod) for pod in world.pods()}
    assert world.recorded().spec != before.spec
    assert uid_of(world.cluster.get(LEASE, KEY.namespace, "spending-register")) != uid_of(register)
    assert world.phase() is Phase.RUNNING
    assert world.status().observed_generation == 2


def test_single_refusing_replica_does_not_halt_pair() -> None:
    world = World()
    world.until_paired()
    world.cluster.crash(name_of(world.replicas()["secondary"]), 3, "no JSON")
    for _ in range(5):
        world.step()
    assert world.holds(READY)
    assert "Halted" not in world.reasons()
    assert "exit code 3" in world.condition(READY).message


def test_refusing_replica_with_state_is_kept() -> None:
    world = World()
    world.until_paired()
    before = {uid_of(pod) for pod in world.replicas().values()}
    for pod in world.replicas().values():
        world.cluster.crash(name_of(pod), 3, "no JSON")
    world.until(lambda: world.condition(READY).reason == "Refused")
    world.edit(pairs={"count": 1, "template": {"labels": {"team": "a"}}})
    for _ in range(10):
        world.step()
    assert {uid_of(pod) for pod in world.of_kind("replica")} == before


def test_stale_refusal_in_status_does_not_restart_pipeline() -> None:
    why = {"reason": "MissingColumn", "message": "There is no amuont.", "hint": ""}
    world = refused_by_spark(why)
    old = {uid_of(pod) for pod in world.pods()}
    # While the operator is away its user mends something else, and rows are delivered.
    world.plane.refusing = False
    for pod in world.of_kind("replica"):
        (container,) = pod["status"]["containerStatuses"]
        world.cluster.touch(pod, containerStatuses=[container | {"state": {"running": {}}}])
    for _ in range(10):
        world.pass_time()
    assert world.plane.epoch
    began_with = world.resource()["spec"]["query"]
    world.edit(query={"sql": "SELECT user FROM payments"})
    world.new_operator()
    world.until(lambda: world.condition(READY).reason == "SpecChanged")
    assert {uid_of(pod) for pod in world.pods()} == old
    assert world.phase() is Phase.RUNNING
    world.edit(query=began_with)
    world.until(lambda: world.condition(READY).reason == "Running")
    assert {uid_of(pod) for pod in world.pods()} == old


def test_restart_waits_for_terminating_pods() -> None:
    why = {"reason": "MissingColumn", "message": "There is no amuont.", "hint": ""}
    world = refused_by_spark(why)
    world.cluster.lose_node("node-0")
    world.plane.refusing = False
    world.edit(query={"sql": "SELECT user FROM payments"})
    world.until(lambda: "ReconcileBlocked" in world.reasons())
    for _ in range(20):
        world.step()
    left = world.cluster.list(POD, KEY.namespace)
    assert {pod["spec"]["nodeName"] for pod in left} == {"node-0"}
    assert world.phase() is Phase.REFUSED
    for pod in left:
        world.cluster.remove(pod)
    world.cluster.bring_back_node("node-0")
    world.until_paired()


def test_ready_condition_explains_uncreated_or_unscheduled_pods() -> None:
    world = World(nodes=1)
    world.until_paired()
    world.cluster.lose_node("node-0")
    world.cluster.remove(world.of_kind("replica")[0])
    world.cluster.settle()
    pending = next(p for p in world.of_kind("replica") if "nodeName" not in p["spec"])
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
    }
    world.cluster.touch(pending, conditions=[unschedulable])
    world.cluster.quota = 0
    for merge in world.of_kind("merge"):
        world.cluster.remove(merge)
    world.until(lambda: "exceeded quota" in world.condition(READY).message)
    assert "Unschedulable: 0/1 nodes are available" in world.condition(READY).message


def test_unreadable_intent_is_reported_and_kept() -> None:
    world = World()
    world.until_paired()
    intent = world.cluster.get(CONFIG_MAP, KEY.namespace, "spending-intent")
    world.cluster.replace({**intent, "data": {"intent": "AAAA"}})
    before = world.data_plane()
    world.until(lambda: world.condition(READY).reason == "IntentUnreadable")
    assert world.data_plane() == before
    assert len(world.cluster.list(POD, KEY.namespace)) == 6
    broken = world.cluster.get(CONFIG_MAP, KEY.namespace, "spending-intent")
    world.cluster.replace({**broken, "data": {}})
    world.until(lambda: "key 'intent' is missing" in world.condition(READY).message)
    assert world.condition(READY).reason == "IntentUnreadable"
    assert "backup" in world.condition(READY).message
