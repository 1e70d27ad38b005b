"""The ConfigMap of the intent is deleted by hand: names of pairs are not used twice."""

from collections.abc import Mapping
from contextlib import suppress

import pytest
from tests.control.test_resize import (
    given_up,
    has_become,
    names,
    pair_sets,
    resize,
    running,
    scale,
)
from tests.control.world import KEY, World

from tandem.kube.kinds import CONFIG_MAP, POD, STREAM_PIPELINE, Object
from tandem.kube.objects import uid_of
from tandem.kube.port import NotFound
from tandem_core.model.kubernetes_names import intent_name
from tandem_core.model.states import ConditionStatus, ConditionType, Phase

READY = ConditionType.READY
INTENT = (CONFIG_MAP, KEY.namespace, intent_name(KEY.name))


def lose_intent(world: World) -> Object:
    """Delete the intent by hand, as a backup has it."""
    kept = world.cluster.get(*INTENT)
    world.cluster.remove(kept)
    return kept


def is_missing(world: World) -> bool:
    return world.condition(READY).reason == "IntentMissing"


def pods(world: World) -> set[str]:
    return {uid_of(pod) for pod in world.cluster.list(POD, KEY.namespace)}


def write_status(world: World, status: Mapping[str, object]) -> None:
    world.cluster.write_status(world.cluster.get(STREAM_PIPELINE, *KEY), status)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("has_status", [True, False])
def test_lost_intent_of_a_changed_pipeline_is_not_made_again(
    restarts: bool, has_status: bool
) -> None:
    world = running()
    resize(world, 3)
    before, sets, phase = pods(world), pair_sets(world), world.phase()
    kept = lose_intent(world)
    if not has_status:
        write_status(world, {})
    if restarts or not has_status:
        world.new_operator()
    delivered = world.plane.epoch
    for _ in range(15):
        world.step()
    assert INTENT not in world.cluster.objects
    assert is_missing(world)
    assert world.condition(READY).status is ConditionStatus.FALSE
    assert intent_name(KEY.name) in world.condition(READY).message
    assert (pods(world), pair_sets(world)) == (before, sets)
    assert world.plane.epoch == delivered + 15
    assert world.phase() is (phase if has_status else Phase.PENDING)
    restore(world, kept)
    world.until(lambda: has_become(world, 3))
    assert pods(world) == before
    resize(world, 2)


def restore(world: World, kept: Object) -> None:
    with suppress(NotFound):
        world.cluster.remove(world.cluster.get(*INTENT))
    world.cluster.create({**kept, "metadata": {**kept["metadata"], "resourceVersion": ""}})


@pytest.mark.parametrize("restarts", [False, True])
def test_backup_from_before_the_last_change_is_not_used(restarts: bool) -> None:
    world = running()
    old = world.cluster.get(*INTENT)
    resize(world, 3)
    kept = world.cluster.get(*INTENT)
    if restarts:
        world.new_operator()
    # Splits ignore it, since its version is lower; those of the stage would follow it.
    splits = {uid_of(pod) for pod in world.of_kind("split")}
    world.plane.frozen |= splits
    restore(world, old)
    world.until(lambda: world.condition(READY).reason == "IntentOutdated")
    sets = pair_sets(world)
    for _ in range(15):
        world.step()
    assert pair_sets(world) == sets
    restore(world, kept)
    world.plane.frozen -= splits
    world.until(lambda: has_become(world, 3))


def test_names_of_a_change_that_was_given_up_are_not_used_again() -> None:
    world = running()
    world.plane.stuck.add("pair-2")
    scale(world, 3)
    world.until(lambda: "pair-2" in pair_sets(world))
    scale(world, 2)
    world.until(lambda: given_up(world))
    world.until(lambda: has_become(world, 2))
    lose_intent(world)
    world.new_operator()
    world.until(lambda: is_missing(world))
    assert INTENT not in world.cluster.objects


def test_lost_intent_is_not_made_again_of_a_manifest_that_cannot_be_run() -> None:
    world = running()
    resize(world, 3)
    lose_intent(world)
    world.edit(splits={"count": 0})
    world.until(lambda: is_missing(world))
    assert world.phase() is Phase.RUNNING


def test_first_intent_is_made_again_with_the_same_number_of_pairs_only() -> None:
    world = running()
    first = world.recorded().intent.generations
    before = pods(world)
    lose_intent(world)
    scale(world, 3)
    world.until(lambda: is_missing(world))
    assert INTENT not in world.cluster.objects
    scale(world, 2)
    world.until(lambda: world.condition(READY).reason == "Running")
    assert world.recorded().intent.generations == first
    assert names(world) == ["pair-0", "pair-1"]
    assert pods(world) == before
