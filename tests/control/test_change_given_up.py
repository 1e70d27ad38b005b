"""Changes that cannot be made: what is left of them, and what the pipeline does meanwhile."""

import msgspec
from tests.control.test_resize import (
    ask,
    given_up,
    kept_functions,
    names,
    resize,
    running,
    scale,
)
from tests.control.world import KEY

from tandem.kube.kinds import CONFIG_MAP
from tandem_core.contract.intent import ChangeRequest, KeyMove
from tandem_core.contract.intent_text import intent_text
from tandem_core.model.kubernetes_names import INTENT_KEY, intent_name
from tandem_core.model.states import ConditionType


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
