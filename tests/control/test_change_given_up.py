"""Changes that cannot be made: what is left of them, and what the pipeline does meanwhile."""

import json

import msgspec
from tests.control.test_resize import (
    LEFT,
    RIGHT,
    ask,
    given_up,
    has_become,
    kept_functions,
    names,
    pair_sets,
    resize,
    running,
    scale,
)
from tests.control.world import KEY, World

from tandem.kube.kinds import CONFIG_MAP, POD
from tandem.kube.objects import name_of
from tandem_core.contract.intent import ChangeRequest, KeyMove
from tandem_core.contract.intent_text import intent_text
from tandem_core.model.kubernetes_names import INTENT_KEY, PAIR_LABEL, intent_name
from tandem_core.model.states import ConditionType, Phase


def test_carried_pair_with_another_share_stops_the_change_and_not_the_recovery() -> None:
    world = running()
    document = world.cluster.get(CONFIG_MAP, KEY.namespace, intent_name(KEY.name))
    intent = world.recorded().intent
    (generation,) = intent.generations
    pairs = tuple(pair.replace(share="other") for pair in generation.pairs)
    wrong = intent.replace(generations=(generation.replace(pairs=pairs),))
    document["data"][INTENT_KEY] = intent_text(wrong)
    world.cluster.replace(document)
    scale(world, 3)
    world.until(lambda: "ReconcileBlocked" in world.reasons(), 10)
    world.cluster.remove(world.replicas("pair-1")["primary"])
    world.until(lambda: world.reasons()[-1] == "Paired")
    assert "Failover" in world.reasons()
    assert names(world) == ["pair-0", "pair-1"]
    assert world.holds(ConditionType.READY)


def test_move_given_up_while_it_waits_is_not_made_by_a_later_manifest() -> None:
    world = running(change={"timeout": "20s"})
    world.cluster.full = True
    world.cluster.remove(world.replicas("pair-1")["secondary"])
    moves = tuple(KeyMove(key, "pair-0") for key in range(8))
    ask(world, msgspec.json.encode(ChangeRequest("move-1", moves)).decode())
    world.until(lambda: given_up(world), 40)
    progressing = ConditionType.PROGRESSING
    world.until(lambda: world.condition(progressing).reason == "ChangeAbandoned")
    world.cluster.full = False
    world.until_paired(2)
    assert world.condition(progressing).reason == "ChangeAbandoned"
    world.new_operator()
    world.edit(change={"timeout": "30s"})
    world.until(lambda: world.condition(progressing).reason == "AsDeclared")
    resize(world, 3)
    assert [past.moves for past in world.recorded().intent.history] == [(), ()]
    assert {function.hot_count for function in kept_functions(world).values()} == {0}


def test_refused_shadow_ends_the_change_at_once_and_a_corrected_one_is_made() -> None:
    world = running()
    world.plane.stuck.add(LEFT)
    scale(world, 3)
    world.until(lambda: bool(world.pods(**{PAIR_LABEL: LEFT})))
    why = {"reason": "MissingColumn", "message": "There is no amuont.", "hint": "Correct it."}
    world.cluster.crash(name_of(world.pods(**{PAIR_LABEL: LEFT})[0]), 3, json.dumps(why))
    world.until(lambda: given_up(world), 3)
    change = world.recorded().intent.change
    assert change is not None
    assert LEFT in change.reason
    assert "amuont" in change.reason
    for _ in range(10):
        world.step()
        assert world.holds(ConditionType.READY)
    assert world.phase() is Phase.RUNNING
    assert "Halted" not in world.reasons()
    assert "amuont" in world.condition(ConditionType.PROGRESSING).message
    assert pair_sets(world) == set(names(world)) == {"pair-0", "pair-1"}
    world.new_operator()
    world.plane.stuck.clear()
    world.edit(change={"timeout": "5m"})
    world.until(lambda: has_become(world, 3), 120)
    assert world.recorded().intent.target == 3
    assert not {LEFT, RIGHT} & set(names(world))


def test_operator_killed_at_any_stage_gives_a_change_without_quota_up_once() -> None:
    def forbidden(dies_after: int | None = None) -> World:
        world = running(change={"timeout": "6s"})
        world.cluster.quota = len(world.cluster.list(POD, KEY.namespace)) + 1
        world.new_operator(dies_after)
        return world

    def until_made(world: World) -> None:
        scale(world, 3)
        world.until(lambda: given_up(world), 60)
        assert world.holds(ConditionType.READY)
        world.cluster.quota = None
        world.edit(pairs={**world.resource()["spec"]["pairs"], "count": 1}, change={})
        world.until(lambda: has_become(world, 1), 120)

    whole = forbidden()
    first = whole.mortal
    until_made(whole)
    wanted = whole.recorded().intent
    assert first.writes > 15
    # Every other write: what is between them is in `test_resize`.
    for number in range(1, first.writes + 1, 2):
        world = forbidden(dies_after=number)
        until_made(world)
        found = world.recorded().intent
        assert found.generations == wanted.generations, f"died after write {number}"
        assert [bool(past.abandoned) for past in found.history] == [False, True]
        assert "GenerationAbandoned" in world.reasons()
