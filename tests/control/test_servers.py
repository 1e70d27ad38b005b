"""Servers that do not allow something, or cannot do it at the moment."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from tests.control.world import KEY, World, resource
from tests.kube.cluster import Cluster

from tandem.control.admission import judge
from tandem.control.apply import MOST_OF_A_KIND
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
    Object,
    ObjectKind,
)
from tandem.kube.objects import name_of, uid_of
from tandem.kube.port import Refused, Unreachable
from tandem.policy.intent import first_intent, with_primaries
from tandem_core.contract.intent import Function, Generation, Pair
from tandem_core.contract.intent_text import intent_text
from tandem_core.model.change import MOST_REASON, ChangeStatus, PastChangeStatus
from tandem_core.model.fields.declarations import settings_of
from tandem_core.model.fields.kinds import Whole
from tandem_core.model.kubernetes_names import MOST_NAME, PAIR_LABEL, pair_name
from tandem_core.model.pipeline import Pipeline, parse_status, status_document
from tandem_core.model.pods import Pairs
from tandem_core.model.states import (
    ChangeStage,
    ConditionStatus,
    ConditionType,
    PairState,
    Phase,
)
from tandem_core.model.status import (
    MOST_HISTORY,
    MOST_LOST,
    MOST_MESSAGE,
    Condition,
    PairStatus,
    Status,
)
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import (
    MOST_BYTES,
    digest_of_form,
    hot_keys_that_fit,
    to_bytes,
)

READY = ConditionType.READY


class Strict(Cluster):
    """A server that does not allow something."""

    def __init__(self, world: World, verb: str, kind: ObjectKind) -> None:
        super().__init__(world.cluster.objects, world.cluster.applied, world.cluster.changes)
        self.made, self.revision = 10_000, 10_000
        self._verb, self._kind = verb, kind

    def _allow(self, verb: str, kind: str) -> None:
        if (verb, kind) == (self._verb, self._kind.name):
            raise Refused(f"{verb} {kind} is forbidden")

    def list(self, kind: ObjectKind, *more: Any) -> list[Object]:
        self._allow("list", kind.name)
        return super().list(kind, *more)

    def create(self, document: Object) -> Object:
        self._allow("create", document["kind"])
        return super().create(document)

    def apply(self, document: Object) -> Object:
        self._allow("apply", document["kind"])
        return super().apply(document)

    def replace(self, document: Object) -> Object:
        self._allow("replace", document["kind"])
        return super().replace(document)

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
def test_forbidden_events_or_nodes_do_not_block_recovery(verb: str, kind: ObjectKind) -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Strict(world, verb, kind))
    primary = uid_of(world.replicas()["primary"])
    world.cluster.remove(world.replicas()["primary"])
    for _ in range(8):
        world.step()
    assert world.labels_are_true()
    assert uid_of(world.replicas()["primary"]) != primary


def test_failed_apply_is_reported_and_retried() -> None:
    world = World()
    strict = Strict(world, "apply", SERVICE)
    world.loop = world.another(strict)
    world.step()
    world.until(lambda: "ApplyFailed" in world.condition(READY).message)
    assert "Service spending-splits: apply Service is forbidden" in world.condition(READY).message
    assert "ReconcileBlocked" in world.reasons()
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
def test_throttled_apply_does_not_block_other_objects(
    kind: ObjectKind,
) -> None:
    world = World()
    world.loop = world.another(Busy(world, "apply", kind))
    for _ in range(8):
        world.step()
    assert "ApplyFailed" in world.condition(READY).message
    assert f"apply {kind.name}: 429 too many requests" in world.condition(READY).message
    assert "ReconcileBlocked" in world.reasons()
    assert world.cluster.list(DEPLOYMENT, KEY.namespace)
    assert not world.cluster.list(kind, KEY.namespace, {PAIR_LABEL: "pair-0"})
    world.new_operator()
    world.until_paired()


def test_failing_applies_of_one_kind_are_limited_per_turn() -> None:
    world = World(pairs={"count": 20})
    busy = Busy(world, "apply", REPLICA_SET)
    world.loop = world.another(busy)
    world.step()
    assert busy.calls == MOST_OF_A_KIND
    assert world.cluster.list(DEPLOYMENT, KEY.namespace)


def test_failed_delete_is_reported_and_retried() -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Busy(world, "delete", DEPLOYMENT))
    world.plane.completed = True
    world.until(lambda: "ReconcileBlocked" in world.reasons())
    assert not world.cluster.list(REPLICA_SET, KEY.namespace, {PAIR_LABEL: "pair-0"})
    assert world.cluster.list(DEPLOYMENT, KEY.namespace)
    world.new_operator()
    world.until(lambda: not world.of_kind("split"))


@pytest.mark.parametrize("kind", [SECRET, LEASE, CONFIG_MAP], ids=lambda kind: kind.name)
def test_forbidden_start_is_explained_and_can_be_fixed(kind: ObjectKind) -> None:
    world = World()
    world.loop = world.another(Strict(world, "create", kind))
    assert world.step() == 30.0
    ready = world.condition(READY)
    assert (ready.status, ready.reason) == (ConditionStatus.FALSE, "ApplyFailed")
    assert f"create {kind.name} is forbidden" in ready.message
    # In this phase the definition lets every field change.
    assert world.phase() is Phase.REFUSED
    assert world.reasons() == ["Refused"]
    world.edit(pairs={"count": 2})
    world.new_operator()
    world.until_paired(2)


def most_pairs() -> int:
    (count,) = (each.kind for each in settings_of(Pairs) if each.name == "count")
    assert isinstance(count, Whole)
    assert count.most is not None
    return count.most


def largest_function(names: Sequence[str]) -> Function:
    """A function over these pairs with as many hot keys as may be."""
    hot = hot_keys_that_fit(tuple(sorted(names)))
    plain = RoutingFunction.plain(names)
    hashes, owners = np.arange(hot, dtype=np.uint64), np.zeros(hot, dtype=np.uint16)
    form = to_bytes(RoutingFunction(plain.pairs, plain.vnodes, hashes, owners))
    assert MOST_BYTES - len(form) < 100
    return Function(digest_of_form(form), form)


def test_intent_with_two_maximal_generations_fits_config_map() -> None:
    pipeline = judge(resource(pairs={"count": most_pairs()}))
    assert isinstance(pipeline, Pipeline)
    begun = first_intent(pipeline)
    (first,) = begun.generations
    # All pairs are new, as nobody can have more of them, and each comes of two old ones.
    successors = tuple(
        Pair(name, name, parents=(first.pairs[n].name, first.pairs[n - 1].name))
        for n, name in enumerate(f"pair-{n}" for n in range(10_000, 10_000 + most_pairs()))
    )
    functions = [largest_function(first.names()), largest_function([p.name for p in successors])]
    generations = (
        Generation(1, functions[0].digest, first.pairs),
        Generation(2, functions[1].digest, successors),
    )
    volume = f"{UUID(int=1)}.99"
    every_pair = [pair.name for pair in (*first.pairs, *successors)]
    full = with_primaries(
        begun.replace(generations=generations, target=2), dict.fromkeys(every_pair, volume)
    )
    size = len(intent_text(full)) + sum(len(base64.b64encode(each.form)) for each in functions)
    # The rest is left for the partitions of streams, of which there may be many.
    assert size < 2**20 * 7 / 8


def test_maximal_status_fits_etcd_limit() -> None:
    pipeline, most = "p" * MOST_NAME, 2**63 - 1
    pairs = tuple(
        PairStatus(
            name=name,
            state=max(PairState, key=len),
            primary=f"{pair_name(pipeline, 99, name)}-abcde",
            secondary=f"{pair_name(pipeline, 99, name)}-fghij",
            epoch=most,
        )
        for name in (f"pair-{number}" for number in range(most_pairs()))
    )
    conditions = tuple(
        Condition(
            type=kind,
            status=ConditionStatus.UNKNOWN,
            reason="R" * 64,
            message="m" * MOST_MESSAGE,
            last_transition_time="2024-05-01T12:00:00Z",
        )
        for kind in ConditionType
    )
    lanes = (f"lane {UUID(int=number)}.99/9" for number in range(MOST_LOST))
    began = "2024-05-01T12:00:00.123Z"
    past = PastChangeStatus(
        generation=most,
        pairs_before=most,
        pairs_after=most,
        began=began,
        ended=began,
        moved_keys=most,
        abandoned="a" * MOST_REASON,
    )
    status = Status(
        conditions=conditions,
        pairs=pairs,
        change=ChangeStatus(
            target=most,
            stage=ChangeStage.ABANDONED,
            reason="r" * MOST_REASON,
            progress="p" * MOST_REASON,
            since=began,
        ),
        history=(past,) * MOST_HISTORY,
        pairs_ready=f"0/{len(pairs)}",
        lost=(*(pair.name for pair in pairs), *lanes)[:MOST_LOST],
    )
    document = status_document(status)
    assert parse_status(document) == status
    # Etcd takes 1.5 MiB; the manifest, of which there is a copy for `kubectl apply`, is there too.
    assert len(json.dumps(document)) < 9 * 2**16


def test_objects_are_created_despite_rejected_status() -> None:
    world = World()
    world.loop = world.another(Strict(world, "status", STREAM_PIPELINE))
    with pytest.raises(Refused):
        world.step()
    assert world.cluster.list(REPLICA_SET, KEY.namespace, {PAIR_LABEL: "pair-0"})
    world.new_operator()
    world.until_paired()


def test_forbidden_labels_do_not_block_failover() -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Strict(world, "mark", POD))
    primary = name_of(world.replicas()["primary"])
    world.cluster.remove(world.replicas()["primary"])
    world.until(lambda: world.condition(READY).reason == "PodActionFailed")
    assert "ReconcileBlocked" in world.reasons()
    (pair,) = world.status().pairs
    assert pair.primary not in {None, primary}


def test_completed_pipeline_reports_forbidden_pod_removal() -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Strict(world, "delete", DEPLOYMENT))
    world.plane.completed = True
    world.until(lambda: "ReconcileBlocked" in world.reasons())
    assert world.of_kind("split")
    world.new_operator()
    world.until(lambda: not world.of_kind("split"))


def test_failover_that_cannot_be_recorded_is_told_and_nothing_rests_on_it() -> None:
    world = World()
    world.until_paired()
    recorded, shown = world.recorded().intent, world.status().pairs
    hung = world.replicas()["primary"]
    world.loop = world.another(Strict(world, "replace", CONFIG_MAP))
    world.plane.frozen.add(uid_of(hung))
    world.until(lambda: world.condition(READY).reason == "CannotChange")
    for _ in range(40):
        world.step()
    ready = world.condition(READY)
    assert "replace ConfigMap is forbidden" in ready.message
    assert "hung pods are not replaced" in ready.message
    assert world.reasons() == ["ReconcileBlocked"]
    # Roles, labels and pods are those of the intent, so the next operator finds no contradiction.
    assert world.recorded().intent == recorded
    assert [pair.primary for pair in world.status().pairs] == [pair.primary for pair in shown]
    assert uid_of(world.replicas()["primary"]) == uid_of(hung)
    assert world.status().counters.take_overs == 0
    world.new_operator()
    world.until(lambda: "Paired" in world.reasons())
    assert world.condition(READY).reason == "Running"
    recovered = ["Failover", "PodKilled", "CatchUpStarted", "Paired"]
    assert [each for each in world.reasons() if each != "ReconcileBlocked"] == recovered
    assert world.status().counters.take_overs == 1


def test_suspension_that_cannot_be_recorded_is_told_and_pods_are_replaced() -> None:
    world = World()
    world.until_paired()
    secondary = world.replicas()["secondary"]
    world.loop = world.another(Strict(world, "replace", CONFIG_MAP))
    world.edit(suspend=True)
    world.plane.frozen.add(uid_of(secondary))
    world.until(lambda: "PodKilled" in world.reasons())
    assert world.condition(READY).reason == "CannotChange"
    assert "spec.suspend is true" in world.condition(READY).message
    assert world.phase() is Phase.RUNNING


def test_step_that_cannot_be_recorded_is_named_after_its_remedy() -> None:
    world = World()
    world.until_paired()
    world.loop = world.another(Strict(world, "replace", CONFIG_MAP))
    world.edit(splits={"count": 3})
    world.until(lambda: world.condition(READY).reason == "CannotChange")
    assert world.condition(READY).message.endswith("not recorded yet: 3 splits, 1 merge slots")
