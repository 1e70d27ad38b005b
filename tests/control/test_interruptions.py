"""Operators that die at any write, two at a time, and swaps that are lost."""

from typing import Any

import pytest
from tests.control.world import KEY, Mortal, World

from tandem.control.intent_store import swap_intent
from tandem.kube.kinds import CONFIG_MAP, EVENT, POD, Object
from tandem.kube.objects import labels_of, name_of, owners_of, uid_of
from tandem.kube.port import Conflict, Kube, Unreachable
from tandem_core.model.kubernetes_names import KIND_LABEL, PAIR_LABEL, ROLE_LABEL
from tandem_core.model.states import ConditionType, PairState

STEPS = ["Failover", "CatchUpStarted", "Paired"]


def end_state(world: World) -> dict[str, Any]:
    """What has to be the same whoever did it, and however often it was begun."""
    pods = world.cluster.list(POD, KEY.namespace)
    status = world.status()
    return {
        "objects": sorted(
            f"{kind.name} {name}"
            for kind, _, name in world.cluster.objects
            if kind.name not in {"Pod", "Event"}
        ),
        "pods": sorted(
            "/".join(
                labels_of(pod).get(label, "") for label in (KIND_LABEL, PAIR_LABEL, ROLE_LABEL)
            )
            for pod in pods
        ),
        "owned": all(list(owners_of(pod)) for pod in pods),
        "phase": status.phase,
        "pairs": [(pair.name, pair.state) for pair in status.pairs],
        "conditions": [(each.type, each.status) for each in status.conditions],
        "take-overs": status.counters.take_overs,
        "labels": world.labels_are_true(),
        "suspended": world.recorded().intent.suspended,
        # A replacement may be up by itself before the next operator thinks of a spare.
        "events": sorted(set(world.reasons()) - {"SpareUsed"}),
    }


def begin(world: World) -> None:
    """From the manifest to a pipeline that runs."""
    world.until_paired()


def lose_primary(world: World) -> None:
    """The primary is lost, and all is well again."""
    world.until(lambda: world.status().counters.take_overs == 1)
    world.until(lambda: "Paired" in world.reasons())
    world.until_paired()


def run(dies_after: int | None, spares: int) -> tuple[World, int]:
    """One life with a recovery; the operator dies once, after so many writes."""
    world = World(pairs={"count": 1, "spares": spares})
    world.new_operator(dies_after)
    first = world.mortal
    begin(world)
    world.step()
    world.cluster.remove(world.replicas()["primary"])
    lose_primary(world)
    return world, first.writes


@pytest.mark.parametrize("spares", [0, 1])
def test_operator_killed_after_any_write_is_resumed_to_same_state(
    spares: int,
) -> None:
    whole, writes = run(None, spares)
    wanted = end_state(whole)
    assert writes > 25
    for number in range(1, writes + 1):
        world, _ = run(number, spares)
        assert end_state(world) == wanted, f"died after write {number}"
        told = [each for each in world.reasons() if each != "SpareUsed"]
        # Who takes over from an operator that died may tell the last step once more.
        assert list(dict.fromkeys(told)) == STEPS, f"died after write {number}"
        assert (told.count("Failover"), told[-1]) == (1, "Paired"), f"died after write {number}"


def test_operator_killed_during_cleanup_is_resumed_to_same_state() -> None:
    def completed(dies_after: int | None) -> tuple[World, int]:
        world = World()
        world.until_paired()
        world.new_operator(dies_after)
        first = world.mortal
        world.plane.completed = True
        world.until(lambda: not world.cluster.list(POD, KEY.namespace))
        world.until(lambda: world.phase() == "Completed")
        return world, first.writes

    whole, writes = completed(None)
    for number in range(1, writes + 1):
        assert end_state(completed(number)[0]) == end_state(whole), f"died after write {number}"


class Rival(Mortal):
    """The way of an operator whose intent is overwritten by another one after it was read."""

    def __init__(self, kube: Kube, world: World) -> None:
        super().__init__(kube)
        self._world = world
        self.meddles = True

    def replace(self, document: Object) -> Object:
        if self.meddles and document["kind"] == CONFIG_MAP.name:
            self.meddles = False
            recorded = self._world.recorded()
            swap_intent(self.kube, recorded, recorded.intent.replace(version=99))
        return super().replace(document)


def test_lost_intent_swap_drops_turn_before_any_action() -> None:
    world = World()
    world.until_paired()
    loop = world.another(Rival(world.cluster, world))
    world.loop = loop
    world.cluster.remove(world.replicas()["primary"])
    world.pass_time()
    survivor = world.replicas()["secondary"]
    with pytest.raises(Conflict):
        loop.turn(world.moment(), news=True)
    assert labels_of(world.cluster.pod(name_of(survivor)))[ROLE_LABEL] == "secondary"
    assert world.status().counters.take_overs == 0
    assert world.reasons() == []
    assert world.recorded().intent.version == 99
    world.until(lambda: world.status().counters.take_overs == 1)
    world.until_paired()
    assert world.recorded().intent.version == 100
    assert world.reasons() == STEPS


def test_concurrent_operators_do_not_fight() -> None:
    world = World()
    other = world.another(world.cluster)
    dropped = 0

    def both() -> None:
        nonlocal dropped
        world.step()
        try:
            other.turn(world.moment(), news=True)
        except Conflict:
            dropped += 1

    for _ in range(10):
        both()
    assert world.is_paired()
    version = world.recorded().intent.version
    world.cluster.remove(world.replicas()["primary"])
    for _ in range(15):
        both()
    assert world.is_paired()
    assert world.recorded().intent.version == version + 1
    assert world.reasons() == STEPS
    assert dropped <= 2


def test_next_operator_detects_faults_during_absence() -> None:
    world = World(pairs={"count": 2})
    world.until_paired(2)
    primary, secondary = world.replicas("pair-0")["primary"], world.replicas("pair-1")["secondary"]
    for pod in (primary, secondary):
        world.cluster.remove(pod)
    for _ in range(10):
        world.pass_time()
    world.new_operator()
    world.until_paired(2)
    pairs = {
        pair: [reason for reason, message in world.cluster.events() if message.startswith(pair)]
        for pair in ("pair-0", "pair-1")
    }
    assert pairs["pair-0"] == STEPS
    assert pairs["pair-1"] == ["CatchUpStarted", "Paired"]
    assert world.status().counters.take_overs == 1


class Overloaded(Mortal):
    """The way to a server that takes everything but events, for as long as it is busy."""

    busy = True
    asked = 0

    def create(self, document: Object) -> Object:
        if self.busy and document["kind"] == EVENT.name:
            self.asked += 1
            raise Unreachable("too many requests")
        return super().create(document)


def overloaded() -> tuple[World, Overloaded]:
    """The primary is lost while no events can be written."""
    world = World()
    world.until_paired()
    way = Overloaded(world.cluster)
    world.loop = world.another(way)
    world.step()
    world.cluster.remove(world.replicas()["primary"])
    return world, way


def test_unwritable_events_delay_no_recovery_and_follow_in_order() -> None:
    world, way = overloaded()
    survivor = name_of(world.replicas()["secondary"])
    world.step()
    assert name_of(world.replicas()["primary"]) == survivor
    for _ in range(10):
        world.step()
    assert world.reasons() == []
    # Each attempt may take as long as the client waits for an answer.
    assert way.asked == 1
    way.busy = False
    world.until(lambda: world.reasons() == STEPS)
    world.until_paired()
    assert world.status().counters.take_overs == 1
    assert [reason.value for reason in world.tally.events] == STEPS


def test_status_is_written_despite_unwritable_events() -> None:
    world, way = overloaded()
    world.until(lambda: world.status().counters.take_overs == 1, most=90)
    assert [pair.state for pair in world.status().pairs] == [PairState.PAIRED]
    assert world.holds(ConditionType.READY)
    way.busy = False
    world.until(lambda: world.reasons() == STEPS)


def test_next_operator_emits_events_of_killed_operator() -> None:
    world, _ = overloaded()
    for _ in range(10):
        world.step()
    assert world.is_paired() is False
    world.new_operator()
    world.until_paired()
    assert world.reasons() == STEPS
    assert world.status().counters.take_overs == 1


def test_next_operator_emits_failover_of_hung_primary() -> None:
    world = World()
    world.until_paired()
    way = Overloaded(world.cluster)
    world.loop = world.another(way)
    world.plane.frozen.add(uid_of(world.replicas()["primary"]))
    world.until(lambda: world.recorded().intent.version == 3)
    world.new_operator()
    world.until(lambda: "Failover" in world.reasons())
    world.plane.frozen.clear()
    world.until_paired()
    assert world.reasons() == STEPS
