"""Pods and nodes that die, hang, come back: what the operator does about it."""

import pytest
from tests.control.world import KEY, SETTINGS, Mortal, World

from tandem.control.pods import read_pod
from tandem.kube.kinds import EVENT, POD, REPLICA_SET, Object
from tandem.kube.objects import labels_of, name_of, uid_of
from tandem.kube.port import Refused
from tandem_core.contract.reports import Trouble
from tandem_core.model.kubernetes_names import KIND_LABEL, PAIR_LABEL, ROLE_LABEL
from tandem_core.model.states import ConditionType, EventReason, PairState, Phase

HUNG = SETTINGS.limits.hung


def roles(world: World, pair: str = "pair-0") -> dict[str, str]:
    """The names of a pair's replicas by role."""
    return {role: name_of(pod) for role, pod in world.replicas(pair).items()}


@pytest.mark.parametrize("force", [False, True])
def test_deleted_primary_fails_over_to_twin_and_is_replaced(force: bool) -> None:
    world = World(pairs={"count": 2})
    world.until_paired(2)
    before = roles(world)
    untouched = roles(world, "pair-1")
    primary = world.replicas()["primary"]
    (world.cluster.remove if force else world.cluster.delete)(primary)
    world.until(lambda: world.status().counters.take_overs == 1)
    world.until_paired(2)
    assert world.reasons() == ["Failover", "CatchUpStarted", "Paired"]
    assert roles(world)["primary"] == before["secondary"]
    assert roles(world)["secondary"] not in before.values()
    assert roles(world, "pair-1") == untouched
    assert world.recorded().intent.version == 3


def test_roles_are_recorded_before_pods_are_touched() -> None:
    world = World()
    world.until_paired()
    survivor = world.replicas()["secondary"]
    begin = len(world.cluster.changes)
    world.cluster.remove(world.replicas()["primary"])
    world.until(lambda: roles(world).get("primary") == name_of(survivor))
    order = [
        (document["kind"], name_of(document))
        for _, change, document in world.cluster.changes[begin:]
        if change == "MODIFIED" and document["kind"] in {"ConfigMap", "Pod"}
    ]
    recorded = order.index(("ConfigMap", "spending-intent"))
    assert recorded < order.index(("Pod", name_of(survivor)))


def test_deleted_secondary_causes_no_failover() -> None:
    world = World()
    world.until_paired()
    before = roles(world)
    world.cluster.remove(world.replicas()["secondary"])
    world.until(lambda: "Paired" in world.reasons())
    world.until_paired()
    assert world.reasons() == ["CatchUpStarted", "Paired"]
    assert roles(world)["primary"] == before["primary"]
    assert world.status().counters.take_overs == 0


def test_restarted_container_keeps_its_role_and_volume() -> None:
    world = World()
    world.until_paired()
    before = roles(world)
    world.cluster.restart(before["secondary"])
    world.until(lambda: "Paired" in world.reasons())
    world.until_paired()
    assert roles(world) == before
    assert world.reasons() == ["CatchUpStarted", "Paired"]


def test_frozen_primary_fails_over_and_returns_as_secondary() -> None:
    world = World()
    world.until_paired()
    before, frozen = roles(world), uid_of(world.replicas()["primary"])
    world.plane.frozen.add(frozen)
    world.until(lambda: "Failover" in world.reasons())
    world.until(lambda: [p.state for p in world.status().pairs] == [PairState.ALONE])
    world.plane.frozen.clear()
    world.until_paired()
    assert roles(world) == {"primary": before["secondary"], "secondary": before["primary"]}
    assert world.reasons() == ["Failover", "CatchUpStarted", "Paired"]


def test_hung_replica_is_killed_and_replaced_after_timeout() -> None:
    world = World()
    world.until_paired()
    frozen = world.replicas()["secondary"]
    world.plane.frozen.add(uid_of(frozen))
    since = world.now
    world.until(lambda: "PodKilled" in world.reasons())
    assert world.now - since >= HUNG
    world.until_paired()
    assert name_of(frozen) not in roles(world).values()


def test_hung_replica_is_kept_while_twin_does_not_report_state() -> None:
    world = World()
    world.until_paired()
    frozen, twin = (world.replicas()[role] for role in ("secondary", "primary"))
    world.plane.frozen.add(uid_of(frozen))
    for _ in range(int(HUNG) - 1):
        world.step()
    # It was heard just now, and is silent when it is asked again before the deletion.
    seen = world.plane.look
    world.pass_time(2.0)
    looks = seen([pod for pod in map(read_pod, world.pods()) if pod], "")
    world.plane.look = lambda *_: looks  # type: ignore[method-assign]
    world.plane.frozen.add(uid_of(twin))
    world.loop.turn(world.moment(), news=True)
    world.plane.frozen.remove(uid_of(twin))
    assert "PodKilled" not in world.reasons()
    world.loop.turn(world.moment(), news=True)
    assert "PodKilled" in world.reasons()


def test_both_frozen_replicas_are_kept() -> None:
    world = World()
    world.until_paired()
    before = {uid_of(pod) for pod in world.replicas().values()}
    world.plane.frozen |= before
    for _ in range(int(HUNG) + 10):
        world.step()
    assert [pair.state for pair in world.status().pairs] == [PairState.DOWN]
    assert world.condition(ConditionType.READY).reason == "PairDown"
    assert {uid_of(pod) for pod in world.replicas().values()} == before
    world.plane.frozen.clear()
    world.until_paired()


def test_evicted_pod_is_deleted_and_replaced() -> None:
    world = World()
    world.until_paired()
    evicted = world.replicas()["secondary"]
    world.cluster.touch(evicted, phase="Failed", reason="Evicted", message="disk pressure")
    world.until(lambda: world.reasons()[-1:] == ["Paired"])
    world.until_paired()
    assert (
        "PodReplaced",
        f"{name_of(evicted)} deleted: Evicted: disk pressure",
    ) in world.cluster.events()
    assert name_of(evicted) not in [name_of(p) for p in world.cluster.list(POD, None)]


def test_lost_node_fails_over_and_twins_separate_when_it_returns() -> None:
    world = World(pairs={"count": 2})
    world.until_paired(2)
    lost = world.replicas()["primary"]["spec"]["nodeName"]
    (kept,) = {"node-0", "node-1"} - {lost}
    world.cluster.lose_node(lost)
    world.until(lambda: "Failover" in world.reasons())
    assert world.holds(ConditionType.READY)
    world.cluster.evict_from(lost)
    world.until_paired(2)
    world.until(lambda: world.holds(ConditionType.CO_LOCATED))
    shared = world.condition(ConditionType.CO_LOCATED).message
    assert shared.endswith(f"pair-0 on {kept}, pair-1 on {kept}, splits on {kept}")
    silent = [p for p in world.cluster.list(POD, None) if p["spec"]["nodeName"] == lost]
    assert silent
    assert all(labels_of(pod).get(ROLE_LABEL) != "primary" for pod in silent)
    world.cluster.bring_back_node(lost)
    _until_parted(world, 2)


def test_colocated_twins_separate_when_second_node_joins() -> None:
    world = World(nodes=1)
    world.until_paired()
    world.until(lambda: world.holds(ConditionType.CO_LOCATED))
    for _ in range(20):
        world.step()
    assert "PodEvicted" not in world.reasons()
    primary = roles(world)["primary"]
    world.cluster.add_node("node-1")
    _until_parted(world, 1)
    assert roles(world)["primary"] == primary
    assert "Failover" not in world.reasons()
    # The splits and one pair.
    assert world.reasons().count("PodEvicted") == 2


def _until_parted(world: World, pairs: int) -> None:
    """Pods move one at a time, each when all pairs are whole again."""
    world.until(lambda: not world.holds(ConditionType.CO_LOCATED), most=600)
    world.until_paired(pairs)
    for kind in [f"pair-{number}" for number in range(pairs)]:
        nodes = {pod["spec"]["nodeName"] for pod in world.pods(**{PAIR_LABEL: kind})}
        assert len(nodes) == 2
    assert len({pod["spec"]["nodeName"] for pod in world.of_kind("split")}) == 2


def test_no_pod_is_evicted_while_anything_is_vulnerable() -> None:
    world = World(nodes=1)
    world.until_paired()
    world.plane.vulnerable = ("lane-0",)
    world.cluster.add_node("node-1")
    for _ in range(30):
        world.step()
    assert "PodEvicted" not in world.reasons()


def test_new_template_rolls_one_pod_at_a_time_primary_last() -> None:
    world = World()
    world.until_paired()
    before = roles(world)
    world.edit(pairs={"count": 1, "template": {"labels": {"team": "a"}}})
    world.until(lambda: "PodEvicted" in world.reasons())
    assert world.replicas()["primary"]["metadata"]["name"] == before["primary"]
    world.until(lambda: world.status().counters.take_overs == 1)
    world.until_paired()
    assert all("team" in labels_of(pod) for pod in world.of_kind("replica"))
    assert not set(roles(world).values()) & set(before.values())
    assert world.reasons().count("PodEvicted") == 2
    for _ in range(5):
        world.step()
    assert world.reasons().count("PodEvicted") == 2


NO_SUCH_NODE = {"nodeSelector": {"disk": "none has it"}}
NO_SUCH_CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]}
MENDED = {"labels": {"team": "a"}}


def test_unschedulable_template_evicts_no_replica() -> None:
    world = World()
    world.until_paired()
    before = roles(world)
    world.edit(pairs={"count": 1, "template": NO_SUCH_NODE})
    world.until(lambda: world.condition(ConditionType.READY).reason == "NoNodeFits")
    for _ in range(20):
        world.step()
    assert roles(world) == before
    assert world.is_paired()
    assert world.reasons() == ["ReconcileBlocked"]
    world.edit(pairs={"count": 1, "template": MENDED})
    world.until(lambda: all("team" in labels_of(pod) for pod in world.of_kind("replica")))
    world.until_paired()
    assert world.condition(ConditionType.READY).reason == "Running"


@pytest.mark.parametrize("pairs", [1, 2])
def test_pending_replica_is_recreated_when_template_is_fixed(pairs: int) -> None:
    world = World(pairs={"count": pairs})
    world.until_paired(pairs)
    world.edit(pairs={"count": pairs, "template": NO_SUCH_CLAIM})
    world.until(lambda: [p for p in world.of_kind("replica") if "nodeName" not in p["spec"]])
    for _ in range(70):
        world.step()
    # One is at risk, and no other one.
    assert world.reasons().count("PodEvicted") == 1
    assert len(world.plane.holding) == 2 * pairs - 1
    assert world.holds(ConditionType.READY)
    world.edit(pairs={"count": pairs, "template": MENDED})
    world.until(lambda: len(world.plane.holding) == 2 * pairs)
    world.until(lambda: all("team" in labels_of(pod) for pod in world.of_kind("replica")), most=200)
    world.until_paired(pairs)


def test_never_scheduled_pipeline_starts_once_template_is_fixed() -> None:
    world = World(pairs={"count": 1, "template": NO_SUCH_CLAIM})
    for _ in range(5):
        world.step()
    assert all("nodeName" not in pod["spec"] for pod in world.of_kind("replica"))
    world.edit(pairs={"count": 1, "template": MENDED})
    world.until_paired()
    assert world.reasons() == ["PodReplaced", "PodReplaced"]


def test_template_rejected_by_server_evicts_no_replica() -> None:
    world = World()
    world.until_paired()
    before = roles(world)
    refusing = Mortal(world.cluster, before_applying=_refuse_replica_sets)
    world.loop = world.another(refusing)
    world.edit(pairs={"count": 1, "template": MENDED})
    world.until(lambda: world.condition(ConditionType.READY).reason == "ApplyFailed")
    for _ in range(20):
        world.step()
    assert roles(world) == before
    assert "PodEvicted" not in world.reasons()


def _refuse_replica_sets(document: Object) -> None:
    if document["kind"] == REPLICA_SET.name:
        raise Refused("it is invalid")


def test_warm_spare_on_another_node_replaces_lost_replica() -> None:
    world = World(pairs={"count": 1, "spares": 2})
    world.until_paired()
    world.until(lambda: len(world.of_kind("spare")) == 2)
    world.step()
    gone, survivor = (world.replicas()[role] for role in ("primary", "secondary"))
    spares = {name_of(pod): pod["spec"]["nodeName"] for pod in world.of_kind("spare")}
    assert len(set(spares.values())) == 2
    world.cluster.remove(gone)
    world.until(lambda: "SpareUsed" in world.reasons())
    world.until_paired()
    replaced = roles(world)
    assert replaced["primary"] == name_of(survivor)
    assert replaced["secondary"] in spares
    assert spares[replaced["secondary"]] != survivor["spec"]["nodeName"]
    assert len(world.of_kind("spare")) == 2
    assert len(world.pods(**{PAIR_LABEL: "pair-0"})) == 2
    assert world.reasons() == ["Failover", "CatchUpStarted", "SpareUsed", "Paired"]


def test_unreachable_spare_is_deleted_and_pair_recovers_without_it() -> None:
    world = World(pairs={"count": 1, "spares": 1})
    world.until_paired()
    world.step()
    (spare,) = world.of_kind("spare")
    world.plane.deaf = True
    world.cluster.remove(world.replicas()["primary"])
    world.until(lambda: "SpareFailed" in world.reasons())
    world.plane.deaf = False
    world.until_paired()
    assert name_of(spare) not in roles(world).values()


def test_spares_are_not_used_while_pairs_form() -> None:
    world = World(pairs={"count": 2, "spares": 1})
    world.until_paired(2)
    for _ in range(5):
        world.step()
    assert [labels_of(pod)[KIND_LABEL] for pod in world.of_kind("spare")] == ["spare"]
    assert world.reasons() == []


def test_unreadable_source_sets_condition_and_warns_once() -> None:
    world = World()
    world.until_paired()
    world.plane.troubles = (Trouble(EventReason.SOURCE_FAILED, "clicks", "/clcks", "mend it"),)
    world.until(lambda: world.condition(ConditionType.READY).reason == "SourceFailed")
    world.step(10)
    events = {each["reason"]: each for each in world.cluster.list(EVENT, KEY.namespace)}
    assert events.keys() == {"SourceFailed", "NotReady"}
    assert {(each["type"], each["count"]) for each in events.values()} == {("Warning", 1)}
    assert not world.holds(ConditionType.READY)
    assert world.phase() is Phase.RUNNING
    world.plane.troubles = ()
    world.until_paired()
    assert world.reasons() == ["SourceFailed"]
    assert world.readiness() == ["SourceFailed", ""]


def test_deleted_splits_and_merges_come_back_without_failover() -> None:
    world = World()
    world.until_paired()
    for kind in ("split", "merge"):
        victim = world.of_kind(kind)[0]
        world.cluster.remove(victim)
        world.step()
        world.step()
        world.until_paired()
        assert name_of(victim) not in [name_of(pod) for pod in world.of_kind(kind)]
    assert world.reasons() == ["LeadChanged"]
    assert KEY in world.tally.statuses
