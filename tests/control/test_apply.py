"""Objects that should be there against those that are, and what is told of it."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from tests.control.world import BEGAN, KEY, SETTINGS, World, resource

from tandem.control.admission import MOST_PROBLEMS, judge
from tandem.control.apply import changes, list_objects, wanted
from tandem.control.context import ReconcileContext
from tandem.control.events import OperatorEventReason, PipelineEvent, event_of
from tandem.control.observe import list_pipeline, shortages
from tandem.kube.kinds import (
    DEPLOYMENT,
    NETWORK_POLICY,
    REPLICA_SET,
    ROLE,
    SERVICE,
    SERVICE_ACCOUNT,
    Object,
    ObjectKind,
    kind_of,
)
from tandem.kube.objects import is_owned_by, name_of
from tandem.manifests.desired_state import DesiredState
from tandem.manifests.workloads import replica_mark
from tandem.policy.snapshot import Complaint
from tandem_core.model.kubernetes_names import APPLIED_ANNOTATION, PIPELINE_LABEL
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.states import ConditionType


def begun() -> tuple[World, DesiredState]:
    world = World()
    world.until_paired()
    judged = judge(world.resource())
    assert isinstance(judged, Pipeline)
    listing = list_pipeline(world.cluster, KEY, (), world.now)
    assert listing is not None
    context = ReconcileContext(
        world.moment(), listing, world.recorded(), judged, SETTINGS.namespace
    )
    order = context.order()
    assert order is not None
    return world, order


def test_unchanged_objects_need_no_apply() -> None:
    world, order = begun()
    there = list_objects(world.cluster, KEY)
    todo = changes(wanted(order, False), there, order.uid)
    assert (todo.apply, todo.delete, todo.in_the_way) == ((), (), ())


def test_missing_or_changed_objects_are_applied() -> None:
    world, order = begun()
    there = [each for each in list_objects(world.cluster, KEY) if each["kind"] != "Service"]
    pipeline = order.pipeline
    pairs = replace(pipeline.spec.pairs, spares=1)
    more = replace(order, pipeline=replace(pipeline, spec=replace(pipeline.spec, pairs=pairs)))
    todo = changes(wanted(more, False), there, order.uid)
    applied = {f"{each['kind']} {name_of(each)}" for each in todo.apply}
    assert {"Service spending-splits", "ReplicaSet spending-spares"} <= applied


def changed(document: Object, path: tuple[str | int, ...], value: object) -> Object:
    """The object after somebody has edited it."""
    edited = deepcopy(document)
    at: Any = edited
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return edited


ANYBODY: list[dict[str, object]] = [{"ports": [{"port": 7070, "protocol": "TCP"}]}]


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("ReplicaSet spending-g1-pair-0", ("spec", "replicas"), 1),
        ("Deployment spending-splits", ("spec", "replicas"), 0),
        ("NetworkPolicy spending", ("spec", "ingress"), ANYBODY),
        ("NetworkPolicy spending", ("spec", "ingress", 0, "from"), []),
        ("PodDisruptionBudget spending-g1-pair-0", ("spec", "minAvailable"), 0),
        ("Role spending-split", ("rules",), []),
        ("Service spending-splits", ("spec", "ports", 0, "port"), 1),
        ("ServiceAccount spending-split", ("automountServiceAccountToken",), True),
    ],
)
def test_edited_object_is_reapplied(name: str, path: tuple[str | int, ...], value: object) -> None:
    world, order = begun()
    there = {f"{each['kind']} {name_of(each)}": each for each in list_objects(world.cluster, KEY)}
    there[name] = changed(there[name], path, value)
    todo = changes(wanted(order, False), there.values(), order.uid)
    assert [f"{each['kind']} {name_of(each)}" for each in todo.apply] == [name]


def test_server_defaults_and_older_operator_fields_are_not_drift() -> None:
    world, order = begun()
    there = {f"{each['kind']} {name_of(each)}": each for each in list_objects(world.cluster, KEY)}
    for name, path, value in (
        ("Service spending-splits", ("spec", "sessionAffinity"), "None"),
        ("Service spending-splits", ("spec", "ports", 0, "nodePort"), 0),
        ("Deployment spending-splits", ("spec", "template", "spec", "dnsPolicy"), "Default"),
        ("Deployment spending-splits", ("spec", "revisionHistoryLimit"), 5),
    ):
        there[name] = changed(there[name], path, value)
    assert changes(wanted(order, False), there.values(), order.uid).apply == ()


def test_completion_deletes_only_workloads_and_budgets() -> None:
    world, order = begun()
    todo = changes(wanted(order, True), list_objects(world.cluster, KEY), order.uid)
    assert todo.apply == ()
    gone = sorted(f"{each['kind']} {name_of(each)}" for each in todo.delete)
    assert gone == [
        "Deployment spending-merge-0",
        "Deployment spending-splits",
        "PodDisruptionBudget spending-g1-pair-0",
        "PodDisruptionBudget spending-merge-0",
        "PodDisruptionBudget spending-splits",
        "ReplicaSet spending-g1-pair-0",
    ]


def test_foreign_or_terminating_objects_block_and_are_kept() -> None:
    world, order = begun()
    there = list_objects(world.cluster, KEY)
    todo = changes(wanted(order, False), there, "another")
    assert (todo.apply, todo.delete) == ((), ())
    assert len(todo.in_the_way) == len(wanted(order, False))
    for document in there:
        document["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    assert changes(wanted(order, True), there, order.uid).delete == ()


@pytest.mark.parametrize(
    "kind", [NETWORK_POLICY, SERVICE_ACCOUNT, ROLE, SERVICE, DEPLOYMENT], ids=lambda kind: kind.name
)
def test_unlabelled_foreign_object_is_not_adopted(kind: ObjectKind) -> None:
    world, order = begun()
    (made, *_) = (each for each in wanted(order, False) if kind_of(each) is kind)
    world.cluster.remove(made)
    mine = {"name": name_of(made), "namespace": KEY.namespace}
    foreign = world.cluster.create({**made, "metadata": mine})
    world.new_operator()
    world.until(lambda: world.condition(ConditionType.READY).reason == "NameTaken")
    message = world.condition(ConditionType.READY).message
    assert f"{kind.name} {name_of(made)} exists and belongs to another owner" in message
    assert "ReconcileBlocked" in world.reasons()
    assert world.cluster.get(kind, KEY.namespace, name_of(made)) == foreign
    world.cluster.remove(foreign)
    world.until(lambda: world.condition(ConditionType.READY).reason == "Running")
    assert is_owned_by(world.cluster.get(kind, KEY.namespace, name_of(made)), order.uid)


def test_lost_label_is_restored() -> None:
    world, order = begun()
    service = world.cluster.get(SERVICE, KEY.namespace, "spending-splits")
    del service["metadata"]["labels"][PIPELINE_LABEL]
    world.cluster.replace(service)
    world.new_operator()
    world.step()
    assert world.cluster.list(SERVICE, KEY.namespace, {PIPELINE_LABEL: order.name})


def test_only_driver_pods_carry_template_digest() -> None:
    _, order = begun()
    for document in wanted(order, False):
        if kind_of(document) in {DEPLOYMENT, REPLICA_SET}:
            annotations = document["spec"]["template"]["metadata"].get("annotations", {})
            is_driver = kind_of(document) is REPLICA_SET
            marked = annotations.get(APPLIED_ANNOTATION) == replica_mark(order)
            assert marked is is_driver
    images = replace(order.images, replica="spark:2")
    assert replica_mark(replace(order, images=images)) != replica_mark(order)
    merges = replace(order.images, merge="runtime:2")
    assert replica_mark(replace(order, images=merges)) == replica_mark(order)


def test_failing_replica_set_reports_its_reason() -> None:
    def replica_set(pair: str, status: str) -> dict[str, object]:
        condition = {"type": "ReplicaFailure", "status": status, "message": f"quota of {pair}"}
        labels = {"tandem.dev/kind": "replica", "tandem.dev/pair": pair}
        return {"metadata": {"name": pair, "labels": labels}, "status": {"conditions": [condition]}}

    found = shortages([replica_set("pair-0", "True"), replica_set("pair-1", "False")])
    assert {(group.kind, group.pair): why for group, why in found.items()} == {
        ("replica", "pair-0"): "quota of pair-0"
    }
    assert shortages([{"metadata": {"name": "other"}}]) == {}


def test_manifest_problems_are_all_listed_up_to_limit() -> None:
    judged = judge(resource(epoch=3, splits=4, pairs=5))
    assert isinstance(judged, Complaint)
    for field in ("spec.epoch", "spec.splits", "spec.pairs"):
        assert field in judged.message
    unknown: dict[str, Any] = {f"field{number}": 1 for number in range(MOST_PROBLEMS + 5)}
    many = judge(resource(**unknown))
    assert isinstance(many, Complaint)
    assert many.message.endswith("; and 5 more")


def test_repeated_event_keeps_its_name() -> None:
    made = {**resource(), "metadata": {**resource()["metadata"], "uid": "u"}}
    told = PipelineEvent(OperatorEventReason.HALTED, "x" * 2000)
    first = event_of(made, told, BEGAN)
    assert len(first["message"]) == 1024
    assert first["type"] == "Warning"
    assert event_of(made, told, BEGAN.replace(hour=13))["metadata"] == first["metadata"]
    other = event_of(made, replace(told, reason=OperatorEventReason.COMPLETED), BEGAN)
    assert other["type"] == "Normal"
    assert name_of(other) != name_of(first)
    assert first["involvedObject"]["uid"] == "u"
