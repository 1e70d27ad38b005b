"""Servers that do not allow something, or cannot do it at the moment."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from tests.control.world import KEY, World, resource
from tests.kube.cluster import Cluster

from tandem.control.apply import MOST_OF_A_KIND
from tandem.control.judging import judge
from tandem.intent import first_intent, with_primaries
from tandem.kube.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    LEASE,
    NODE,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    STREAM_PIPELINE,
    Kind,
    Object,
)
from tandem.kube.objects import name_of, uid_of
from tandem.kube.port import Refused, Unreachable
from tandem.model.documents import settings_of
from tandem.model.kinds import Whole
from tandem.model.names import PAIR_LABEL
from tandem.model.pipeline import Pipeline
from tandem.model.pods import Pairs
from tandem.model.states import ConditionStatus, ConditionType, Phase
from tandem_runtime.wire.codec import encode

READY = ConditionType.READY


class Strict(Cluster):
    """A server that does not allow something."""

    def __init__(self, world: World, verb: str, kind: Kind) -> None:
        super().__init__(world.cluster.objects, world.cluster.applied, world.cluster.changes)
        self.made, self.revision = 10_000, 10_000
        self._verb, self._kind = verb, kind

    def _allow(self, verb: str, kind: str) -> None:
        if (verb, kind) == (self._verb, self._kind.name):
            raise Refused(f"{verb} {kind} is forbidden")

    def list(self, kind: Kind, *more: Any) -> list[Object]:
        self._allow("list", kind.name)
        return super().list(kind, *more)

    def create(self, document: Object) -> Object:
        self._allow("create", document["kind"])
        return super().create(document)

    def apply(self, document: Object) -> Object:
        self._allow("apply", document["kind"])
        return super().apply(document)

    def mark(self, document: Object, *more: Any) -> Object:
        self._allow("mark", document["kind"])
        return super().mark(document, *more)

    def delete(self, document: Object) -> None:
        self._allow("delete", document["kind"])
        super().delete(document)

    def write_status(self, document: Object, status: Mapping[str, object]) -> Object:
        self._allow("status", document["kind"])
        return super().write_status(document, status)


@pytest.mark.parametrize(("verb", "kind"), [("create", EVENT), ("list", NODE)])
def test_events_and_nodes_are_not_worth_failing_for(verb: str, kind: Kind) -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Strict(world, verb, kind))
    primary = uid_of(world.replicas()["primary"])
    world.cluster.remove(world.replicas()["primary"])
    for _ in range(8):
        world.step()
    assert world.labels_are_true()
    assert uid_of(world.replicas()["primary"]) != primary


def test_what_cannot_be_applied_is_told_and_tried_again() -> None:
    world = World()
    strict = Strict(world, "apply", SERVICE)
    world.loop = world.another(strict)
    world.step()
    world.until(lambda: world.condition(READY).reason == "NotApplied")
    assert "Service spending-splits: apply Service is forbidden" in world.condition(READY).message
    assert "Hindered" in world.reasons()
    assert world.cluster.list(REPLICA_SET, KEY.namespace)
    world.new_operator()
    world.until(lambda: world.condition(READY).reason == "Running")


class Busy(Strict):
    """A server that cannot do something at the moment."""

    calls = 0

    def _allow(self, verb: str, kind: str) -> None:
        if (verb, kind) == (self._verb, self._kind.name):
            self.calls += 1
            raise Unreachable(f"{verb} {kind}: 429 too many requests")


@pytest.mark.parametrize("kind", [SERVICE_ACCOUNT, REPLICA_SET], ids=lambda kind: kind.name)
def test_what_the_server_cannot_apply_now_keeps_nothing_else_from_being_done(kind: Kind) -> None:
    world = World()
    world.loop = world.another(Busy(world, "apply", kind))
    for _ in range(8):
        world.step()
    assert world.condition(READY).reason == "NotApplied"
    assert f"apply {kind.name}: 429 too many requests" in world.condition(READY).message
    assert "Hindered" in world.reasons()
    assert world.cluster.list(DEPLOYMENT, KEY.namespace)
    assert not world.cluster.list(kind, KEY.namespace, {PAIR_LABEL: "pair-0"})
    world.new_operator()
    world.until_paired()


def test_calls_that_are_not_answered_are_not_repeated_for_all_objects_of_a_kind() -> None:
    world = World(pairs={"count": 20})
    busy = Busy(world, "apply", REPLICA_SET)
    world.loop = world.another(busy)
    world.step()
    assert busy.calls == MOST_OF_A_KIND
    assert world.cluster.list(DEPLOYMENT, KEY.namespace)


def test_what_cannot_be_removed_now_is_told() -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Busy(world, "delete", DEPLOYMENT))
    world.plane.completed = True
    world.until(lambda: "Hindered" in world.reasons())
    assert not world.cluster.list(REPLICA_SET, KEY.namespace, {PAIR_LABEL: "pair-0"})
    assert world.cluster.list(DEPLOYMENT, KEY.namespace)
    world.new_operator()
    world.until(lambda: not world.of_kind("split"))


@pytest.mark.parametrize("kind", [SECRET, LEASE, CONFIG_MAP], ids=lambda kind: kind.name)
def test_a_pipeline_that_may_not_begin_says_why_and_can_be_mended(kind: Kind) -> None:
    world = World()
    world.loop = world.another(Strict(world, "create", kind))
    assert world.step() == 30.0
    ready = world.condition(READY)
    assert (ready.status, ready.reason) == (ConditionStatus.FALSE, "NotApplied")
    assert f"create {kind.name} is forbidden" in ready.message
    # In this phase the definition lets every field change.
    assert world.phase() is Phase.REFUSED
    assert world.reasons() == ["Refused"]
    world.edit(pairs={"count": 2})
    world.new_operator()
    world.until_paired(2)


def test_what_is_written_down_of_the_most_pairs_fits_into_a_config_map() -> None:
    (count,) = (each.kind for each in settings_of(Pairs) if each.name == "count")
    assert isinstance(count, Whole)
    pipeline = judge(resource(pairs={"count": count.most}))
    assert isinstance(pipeline, Pipeline)
    volume = f"{UUID(int=1)}.99"
    begun = first_intent(pipeline)
    full = with_primaries(begun, dict.fromkeys(begun.generations[0].names(), volume))
    # A quarter is left for the partitions of streams, of which there may be many.
    assert len(encode(full)) < 2**20 * 3 / 4


def test_objects_do_not_wait_for_a_status_that_is_not_taken() -> None:
    world = World()
    world.loop = world.another(Strict(world, "status", STREAM_PIPELINE))
    with pytest.raises(Refused):
        world.step()
    assert world.cluster.list(REPLICA_SET, KEY.namespace, {PAIR_LABEL: "pair-0"})
    world.new_operator()
    world.until_paired()


def test_labels_that_may_not_be_written_hinder_nothing_else() -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Strict(world, "mark", POD))
    primary = name_of(world.replicas()["primary"])
    world.cluster.remove(world.replicas()["primary"])
    world.until(lambda: world.condition(READY).reason == "NotDone")
    assert "Hindered" in world.reasons()
    (pair,) = world.status().pairs
    assert pair.primary not in {None, primary}


def test_a_completed_pipeline_whose_pods_may_not_be_removed_says_so() -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Strict(world, "delete", DEPLOYMENT))
    world.plane.completed = True
    world.until(lambda: "Hindered" in world.reasons())
    assert world.of_kind("split")
    world.new_operator()
    world.until(lambda: not world.of_kind("split"))
