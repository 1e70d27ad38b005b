"""Changes that cannot be made: what is left of them, and what the pipeline does meanwhile."""

from tests.control.test_resize import names, running, scale
from tests.control.world import KEY

from tandem.kube.kinds import CONFIG_MAP
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
