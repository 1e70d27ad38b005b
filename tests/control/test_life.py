"""A pipeline from its manifest to its end, without failures."""

from copy import deepcopy
from typing import Any

from tests.control.world import KEY, SETTINGS, World, resource
from tests.kube.cluster import Cluster

from tandem.control.intent_store import read_token
from tandem.control.reconcile import Reconciler, ReconcilerPorts
from tandem.control.types import Key
from tandem.kube.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    LEASE,
    NODE,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE,
    STREAM_PIPELINE,
    Object,
)
from tandem.kube.objects import name_of, owners_of, uid_of
from tandem.manifests.desired_state import Images
from tandem_core.model.states import ConditionStatus, ConditionType, Phase


def test_manifest_becomes_ready_pipeline() -> None:
    world = World(pairs={"count": 2})
    world.until_paired(2)
    assert world.phase() is Phase.RUNNING
    assert not world.holds(ConditionType.CO_LOCATED)
    assert world.status().observed_generation == 1
    assert world.status().pairs_ready == "2/2"
    assert (len(world.of_kind("split")), len(world.of_kind("merge"))) == (2, 2)
    for kind, name in (
        (SECRET, "spending-token"),
        (LEASE, "spending-register"),
        (CONFIG_MAP, "spending-intent"),
        (SERVICE, "spending-splits"),
        (DEPLOYMENT, "spending-merge-0"),
        (REPLICA_SET, "spending-g1-pair-1"),
        (DISRUPTION_BUDGET, "spending-g1-pair-1"),
    ):
        document = world.cluster.get(kind, KEY.namespace, name)
        assert [owner["uid"] for owner in owners_of(document)] == [uid_of(world.resource())]
    assert all("finalizers" not in each["metadata"] for each in world.cluster.objects.values())
    token = read_token(world.cluster, KEY)
    assert token is not None
    assert world.plane.tokens == {token}
    assert "members" not in world.resource()["status"]
    assert world.reasons() == []


def test_idle_pipeline_writes_only_its_status() -> None:
    world = World()
    world.until_paired()
    before = world.data_plane()
    writes = world.mortal.writes
    for _ in range(40):
        world.step()
    assert world.data_plane() == before
    # Two seconds lie between two versions of the status.
    assert world.mortal.writes - writes <= 20


def test_deleted_service_and_secret_are_restored() -> None:
    world = World()
    world.until_paired()
    token = read_token(world.cluster, KEY)
    for kind, name in ((SERVICE, "spending-splits"), (SECRET, "spending-token")):
        world.cluster.remove(world.cluster.get(kind, KEY.namespace, name))
    world.until(lambda: (SERVICE, KEY.namespace, "spending-splits") in world.cluster.objects)
    assert read_token(world.cluster, KEY) == token


def test_manual_scaling_is_reverted_without_other_writes() -> None:
    world = World()
    world.until_paired()
    scaled = world.cluster.get(REPLICA_SET, KEY.namespace, "spending-g1-pair-0")
    world.cluster.replace({**scaled, "spec": {**scaled["spec"], "replicas": 1}})
    world.until(lambda: len(world.of_kind("replica")) == 1)
    world.until(lambda: len(world.of_kind("replica")) == 2)
    world.until_paired()
    applied = world.cluster.get(REPLICA_SET, KEY.namespace, "spending-g1-pair-0")
    assert applied["spec"] == scaled["spec"]
    before = world.data_plane()
    for _ in range(70):
        world.step()
    assert world.data_plane() == before


def test_missing_register_is_reported_and_not_recreated() -> None:
    world = World()
    world.until_paired()
    world.cluster.remove(world.cluster.get(LEASE, KEY.namespace, "spending-register"))
    world.until(lambda: world.condition(ConditionType.READY).reason == "RegisterMissing")
    assert world.holds(ConditionType.READY)
    assert "ReconcileBlocked" in world.reasons()
    assert (LEASE, KEY.namespace, "spending-register") not in world.cluster.objects


def test_emptied_token_is_reported() -> None:
    world = World()
    world.until_paired()
    secret = world.cluster.get(SECRET, KEY.namespace, "spending-token")
    world.cluster.replace({**secret, "data": {}})
    world.until(lambda: world.condition(ConditionType.READY).reason == "TokenMissing")
    world.cluster.remove(world.cluster.get(SECRET, KEY.namespace, "spending-token"))
    world.until(lambda: world.condition(ConditionType.READY).reason == "Running")


def test_token_lost_with_the_operator_is_told_and_can_be_restored() -> None:
    world = World()
    world.until_paired()
    secret = world.cluster.get(SECRET, KEY.namespace, "spending-token")
    before, pods = world.status(), [uid_of(pod) for pod in world.pods()]
    world.cluster.remove(secret)
    world.new_operator()
    for _ in range(10):
        world.step()
        # Rows flow: that the operator cannot ask the lead does not mean that there is none.
        assert world.condition(ConditionType.READY).reason in {"Running", "TokenMissing"}
    ready = world.condition(ConditionType.READY)
    assert (ready.status, ready.reason) == (ConditionStatus.FALSE, "TokenMissing")
    assert "/tandem/secret/token" in ready.message
    assert world.status().pairs == before.pairs
    assert world.holds(ConditionType.PAIRED)
    assert "ReconcileBlocked" in world.reasons()
    world.cluster.remove(world.cluster.get(SERVICE, KEY.namespace, "spending-splits"))
    world.edit(suspend=True)
    world.until(lambda: world.recorded().intent.suspended)
    world.until(lambda: (SERVICE, KEY.namespace, "spending-splits") in world.cluster.objects)
    assert world.recorded().intent.primaries
    again = {"name": "spending-token", "namespace": KEY.namespace}
    world.cluster.create({**secret, "metadata": again})
    world.until(lambda: world.condition(ConditionType.READY).reason == "Running")
    assert [uid_of(pod) for pod in world.pods()] == pods
    assert set(world.reasons()) == {"ReconcileBlocked"}
    assert world.readiness() == ["TokenMissing", ""]


def test_operator_upgrade_rolls_no_pods() -> None:
    world = World()
    world.until_paired()
    before = world.data_plane()
    newer = Images("runtime:2", "spark:2", "runtime:2")
    world.loop = Reconciler(
        KEY,
        ReconcilerPorts(world.cluster, world.plane, lambda _: (), world.tally),
        type(SETTINGS)(newer, SETTINGS.namespace),
    )
    for _ in range(5):
        world.step()
    assert world.data_plane() == before
    assert world.is_paired()


def test_suspend_is_recorded_shown_and_reverted() -> None:
    world = World()
    world.until_paired()
    world.edit(suspend=True)
    world.until(lambda: world.phase() is Phase.SUSPENDED)
    assert world.recorded().intent.suspended
    assert world.status().observed_generation == 2
    world.edit(suspend=False)
    world.until(lambda: world.phase() is Phase.RUNNING)
    assert not world.recorded().intent.suspended
    assert world.recorded().intent.primaries
    assert World(suspend=True).step() is not None


def test_completion_removes_pods_and_keeps_status() -> None:
    world = World()
    world.until_paired()
    world.plane.completed = True
    world.until(lambda: world.phase() is Phase.COMPLETED)
    world.until(lambda: not world.cluster.list(POD, KEY.namespace))
    for kind in (DEPLOYMENT, REPLICA_SET, DISRUPTION_BUDGET):
        assert world.cluster.list(kind, KEY.namespace) == []
    assert world.reasons() == ["Completed"]
    status = world.status()
    assert [pair.state for pair in status.pairs] == ["Paired"]
    world.new_operator()
    for _ in range(5):
        assert world.step() is not None
    assert world.status() == status
    assert world.cluster.list(POD, KEY.namespace) == []


def test_completed_status_includes_final_row_count() -> None:
    world = World()
    world.until_paired()
    world.plane.completed = True
    world.until(lambda: world.phase() is Phase.COMPLETED)
    world.plane.rows_out = 90
    world.until(lambda: not world.cluster.list(POD, KEY.namespace))
    assert world.status().counters.rows_out == 90


def test_deletion_without_operator_leaves_nothing_behind() -> None:
    world = World()
    world.until_paired()
    world.cluster.delete(world.resource())
    world.pass_time()
    left = {kind for kind, _, _ in world.cluster.objects}
    assert left == {NODE}
    assert world.loop.turn(world.moment(), news=True) is None
    assert world.plane.watched == frozenset()
    assert {kind for kind, _, _ in world.cluster.objects} == {NODE}


def test_terminating_pipeline_is_left_alone() -> None:
    world = World()
    world.until_paired()
    going = deepcopy(world.resource())
    going["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    world.cluster.objects[STREAM_PIPELINE, *KEY] = going
    world.cluster.delete(world.replicas()["primary"])
    before = world.mortal.writes
    assert world.step() is None
    assert world.mortal.writes == before


def test_recreated_pipeline_waits_for_cleanup_of_its_predecessor() -> None:
    world = World()
    world.until_paired()
    first = uid_of(world.resource())
    world.cluster.remove(world.resource())
    world.plane.begun.clear()
    world.cluster.create(resource())
    world.now += 1
    assert world.loop.turn(world.moment(), news=True) is not None
    assert world.condition(ConditionType.READY).reason == "NameTaken"
    assert uid_of(world.resource()) != first
    world.until_paired()
    assert world.recorded().intent.primaries


def test_same_name_in_two_namespaces_is_two_pipelines() -> None:
    world = World()
    other = Key("bank", KEY.name)
    world.cluster.create(resource(other))
    ports = ReconcilerPorts(world.cluster, world.plane, lambda _: (), world.tally)
    second = Reconciler(other, ports, SETTINGS)
    for _ in range(6):
        world.step()
        second.turn(world.moment(), news=True)
    world.cluster.settle()
    tokens = [read_token(world.cluster, key) for key in (KEY, other)]
    assert None not in tokens
    assert tokens[0] != tokens[1]
    for key in (KEY, other):
        pods = world.cluster.list(POD, key.namespace)
        assert len(pods) == 6
    world.cluster.delete(world.resource())
    world.pass_time()
    assert len(world.cluster.list(POD, other.namespace)) == 6
    assert world.cluster.list(POD, KEY.namespace) == []
    assert set(world.tally.statuses) == {KEY, other}
    assert world.loop.turn(world.moment(), news=True) is None
    assert set(world.tally.statuses) == {other}


def test_api_server_is_not_queried_between_watch_events() -> None:
    world = World()
    world.until_paired()
    asked: list[str] = []

    class Counting(Cluster):
        def list(self, kind: Any, *more: Any) -> list[Object]:
            asked.append(kind.name)
            return world.cluster.list(kind, *more)

        def get(self, kind: Any, *more: Any) -> Object:
            asked.append(kind.name)
            return world.cluster.get(kind, *more)

    loop = world.another(Counting(world.cluster.objects))
    loop.turn(world.moment(), news=True)
    assert name_of(world.resource()) == KEY.name
    asked.clear()
    world.pass_time(0.5)
    loop.turn(world.moment(), news=False)
    assert asked == []
    world.pass_time(10.0)
    loop.turn(world.moment(), news=False)
    assert "Pod" in asked
