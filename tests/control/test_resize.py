"""Other counts in the manifest of a running pipeline: what the operator makes of them."""

import base64
import json
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.control.world import KEY, World

from tandem.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, REPLICA_SET, STREAM_PIPELINE
from tandem.kube.objects import labels_of, name_of, uid_of
from tandem_core.contract.intent import ChangeRequest, KeyMove
from tandem_core.contract.intent_text import FUNCTION_PREFIX
from tandem_core.model.kubernetes_names import (
    GENERATION_LABEL,
    PAIR_LABEL,
    REQUEST_ANNOTATION,
    ROLE_LABEL,
    SLOT_LABEL,
    intent_name,
    merge_name,
    splits_name,
)
from tandem_core.model.states import ChangeStage, ConditionType
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import from_bytes

CHANGED = ["GenerationPlanned", "GenerationRetired"]
LEFT, RIGHT, BOTH = "pair-2", "pair-3", "pair-4"
"""What pair-0 is split into, and what two pairs are united to afterwards."""


def running(pairs: int = 2, dies_after: int | None = None, **spec: Any) -> World:
    world = World(pairs={"count": pairs}, **spec)
    world.until_paired(pairs)
    world.new_operator(dies_after)
    return world


def scale(world: World, pairs: int) -> None:
    """As `kubectl scale` does."""
    known = world.resource()["spec"]["pairs"]
    world.edit(pairs={**known, "count": pairs})


def names(world: World) -> list[str]:
    """The pairs of the target generation, if no other one is left."""
    intent = world.recorded().intent
    return sorted(intent.generations[0].names()) if len(intent.generations) == 1 else []


def pair_sets(world: World) -> set[str]:
    """The pairs that have a ReplicaSet."""
    sets = map(labels_of, world.cluster.list(REPLICA_SET, KEY.namespace))
    return {labels[PAIR_LABEL] for labels in sets if PAIR_LABEL in labels}


def has_become(world: World, pairs: int) -> bool:
    """Whether the change has ended, in the intent and in the objects."""
    there = names(world)
    pods = {labels_of(pod).get(PAIR_LABEL) for pod in world.cluster.list(POD, KEY.namespace)}
    return (
        len(there) == pairs
        and pair_sets(world) == set(there) == pods - {None}
        and world.is_paired(pairs)
    )


def resize(world: World, pairs: int) -> None:
    scale(world, pairs)
    world.until(lambda: has_become(world, pairs), 120)


def uids(world: World, pair: str) -> set[str]:
    return {uid_of(pod) for pod in world.pods(**{PAIR_LABEL: pair})}


def kept_functions(world: World) -> dict[str, RoutingFunction]:
    """The routing functions beside the intent, by their digests."""
    found = world.cluster.get(CONFIG_MAP, KEY.namespace, intent_name(KEY.name))["binaryData"]
    return {
        name.removeprefix(FUNCTION_PREFIX): from_bytes(base64.b64decode(form))
        for name, form in found.items()
    }


def primaries(world: World) -> set[str]:
    """The pairs of the pods that an autoscaler selects."""
    return {labels_of(pod)[PAIR_LABEL] for pod in world.pods(**{ROLE_LABEL: "primary"})}


def test_pair_is_split_and_two_are_united_while_others_keep_their_pods() -> None:
    world = running()
    carried = uids(world, "pair-1")
    others = {uid_of(pod) for kind in ("split", "merge") for pod in world.of_kind(kind)}
    resize(world, 3)
    assert names(world) == ["pair-1", LEFT, RIGHT]
    assert uids(world, "pair-1") == carried
    workloads = {
        labels_of(each)[PAIR_LABEL]: (name_of(each), labels_of(each)[GENERATION_LABEL])
        for each in world.cluster.list(REPLICA_SET, KEY.namespace)
        if PAIR_LABEL in labels_of(each)
    }
    assert workloads == {
        "pair-1": ("spending-g1-pair-1", "1"),
        LEFT: (f"spending-g2-{LEFT}", "2"),
        RIGHT: (f"spending-g2-{RIGHT}", "2"),
    }
    resize(world, 2)
    kept = set(names(world)) - {BOTH}
    assert BOTH in names(world)
    assert len(kept) == 1
    assert {uid_of(pod) for kind in ("split", "merge") for pod in world.of_kind(kind)} == others
    intent = world.recorded().intent
    assert (intent.target, intent.change, len(intent.history)) == (3, None, 2)
    assert kept_functions(world).keys() == intent.functions_named()
    assert [each for each in world.reasons() if each.startswith("Gen")] == CHANGED * 2


def test_every_stage_of_a_change_is_shown_in_order() -> None:
    world = running()
    shown: list[ChangeStage] = []
    scale(world, 3)

    def done() -> bool:
        change = world.status().change
        if change is not None and change.stage not in shown[-1:]:
            shown.append(change.stage)
        return has_become(world, 3)

    world.until(done, 60)
    assert shown == [stage for stage in ChangeStage if stage is not ChangeStage.ABANDONED]


def test_primaries_are_selected_of_pairs_that_own_keys_only() -> None:
    world = running()
    seen = [{"pair-0", "pair-1"}]
    scale(world, 3)

    def done() -> bool:
        if primaries(world) != seen[-1]:
            seen.append(primaries(world))
        return has_become(world, 3)

    world.until(done, 60)
    assert seen == [{"pair-0", "pair-1"}, {"pair-1", LEFT, RIGHT}]


@pytest.mark.parametrize("count", [1, 3])
def test_operator_killed_after_any_write_resumes_the_change(count: int) -> None:
    whole = running(2)
    first = whole.mortal
    resize(whole, count)
    writes, wanted = first.writes, whole.recorded().intent
    assert writes > 10
    for number in range(1, writes + 1):
        world = running(2, dies_after=number)
        carried = uids(world, "pair-1")
        resize(world, count)
        found = world.recorded().intent
        assert found.generations == wanted.generations, f"died after write {number}"
        assert uids(world, "pair-1") == carried or count == 1
        told = [each for each in world.reasons() if each.startswith("Gen")]
        assert list(dict.fromkeys(told)) == CHANGED, f"died after write {number}"


def test_nothing_is_deleted_while_no_lead_reports() -> None:
    world = running()
    scale(world, 3)
    world.until(lambda: {LEFT, RIGHT} <= set(world.plane.book.pairs))
    splits = {uid_of(pod) for pod in world.of_kind("split")}
    world.plane.frozen |= splits
    for _ in range(6):
        world.step()
    scale(world, 2)
    world.until(lambda: given_up(world))
    before = pair_sets(world)
    assert {LEFT, RIGHT} < before
    for _ in range(10):
        world.step()
        assert pair_sets(world) == before
    world.plane.frozen -= splits
    world.until(lambda: has_become(world, 2))


def test_old_pairs_keep_their_pods_until_new_ones_are_whole_after_the_cut() -> None:
    world = running()
    old = uids(world, "pair-0")
    scale(world, 3)
    world.until(lambda: world.recorded().intent.target == 2)
    for role in ("primary", "secondary", "none"):
        for pair in (LEFT, RIGHT):
            if role in world.replicas(pair):
                world.plane.frozen.add(uid_of(world.replicas(pair)[role]))
                break
    for _ in range(10):
        world.step()
        assert uids(world, "pair-0") == old
    world.plane.frozen.clear()
    world.until(lambda: has_become(world, 3))


# --- given up -----------------------------------------------------------------------------------


def given_up(world: World) -> bool:
    change = world.recorded().intent.change
    return change is not None and change.stage is ChangeStage.ABANDONED


def goes_on(world: World, *pods: set[str]) -> None:
    """The pipeline is as it was, and a change that can be made is made."""
    world.until(lambda: has_become(world, 2), 30)
    assert [uids(world, f"pair-{number}") for number in (0, 1)] == list(pods)
    assert world.reasons().count("GenerationAbandoned") == 1


def test_change_without_room_is_given_up_in_time_and_a_possible_one_is_made() -> None:
    world = running(change={"timeout": "60s"})
    old = [uids(world, f"pair-{number}") for number in (0, 1)]
    world.cluster.full = True
    scale(world, 3)
    world.until(lambda: given_up(world), 90)
    change = world.recorded().intent.change
    assert change is not None
    assert "Unschedulable" in change.reason
    assert world.holds(ConditionType.READY)
    world.cluster.full = False
    world.new_operator()
    for _ in range(5):
        world.step()
    assert len(world.recorded().intent.generations) == 1, "it is not tried again by itself"
    scale(world, 2)
    goes_on(world, *old)
    resize(world, 3)
    assert world.recorded().intent.target == 3


def test_change_forbidden_by_quota_is_given_up_with_the_servers_words() -> None:
    world = running(change={"timeout": "60s"})
    old = [uids(world, f"pair-{number}") for number in (0, 1)]
    world.cluster.quota = len(world.cluster.list(POD, KEY.namespace)) + 1
    scale(world, 3)
    world.until(lambda: given_up(world), 90)
    change = world.recorded().intent.change
    assert change is not None
    assert "exceeded quota" in change.reason
    world.cluster.quota = None
    scale(world, 2)
    goes_on(world, *old)
    resize(world, 3)


def test_change_whose_drivers_crash_is_given_up_after_three_crashes() -> None:
    world = running()
    old = [uids(world, f"pair-{number}") for number in (0, 1)]
    world.plane.stuck.add(LEFT)
    scale(world, 3)
    world.until(lambda: bool(world.pods(**{PAIR_LABEL: LEFT})))
    for _ in range(3):
        world.step()
        world.cluster.crash(name_of(world.pods(**{PAIR_LABEL: LEFT})[0]), 1)
    world.until(lambda: given_up(world), 10)
    assert world.holds(ConditionType.READY)
    scale(world, 2)
    world.new_operator()
    goes_on(world, *old)
    world.plane.stuck.clear()
    resize(world, 3)


def test_change_without_its_routing_function_waits_until_it_is_restored() -> None:
    world = running()
    name = intent_name(KEY.name)
    kept = world.cluster.get(CONFIG_MAP, KEY.namespace, name)["binaryData"]

    def store(functions: dict[str, str]) -> None:
        document = world.cluster.get(CONFIG_MAP, KEY.namespace, name)
        world.cluster.replace({**document, "binaryData": functions})

    for found in ({}, dict.fromkeys(kept, "bm9uZQ==")):
        store(found)
        scale(world, 3)
        world.until(lambda: world.condition(ConditionType.READY).reason == "CannotChange", 10)
        assert world.holds(ConditionType.READY)
        message = world.condition(ConditionType.READY).message
        assert all(each in message for each in (name, *kept))
        store(kept)
        world.until(lambda: has_become(world, 3), 120)
        resize(world, 2)
        kept = world.cluster.get(CONFIG_MAP, KEY.namespace, name)["binaryData"]


# --- requests -----------------------------------------------------------------------------------


def ask(world: World, text: str) -> None:
    resource = world.resource()
    resource["metadata"].setdefault("annotations", {})[REQUEST_ANNOTATION] = text
    world.cluster.replace(resource)


def test_requested_move_is_carried_out_once() -> None:
    world = running()
    (form,) = kept_functions(world).values()
    key = 12345
    owner = form.owner_of(np.array([key], dtype=np.uint64))[0]
    move = KeyMove(key, f"pair-{1 - int(owner)}")
    ask(world, msgspec.json.encode(ChangeRequest("move-1", (move,))).decode())
    world.until(lambda: has_become(world, 2) and names(world) == ["pair-2", "pair-3"])
    intent = world.recorded().intent
    assert [past.moves for past in intent.history] == [(move,)]
    world.new_operator()
    for _ in range(10):
        world.step()
    assert world.recorded().intent.generations == intent.generations


@pytest.mark.parametrize("text", ["no json", json.dumps({"id": ""}), json.dumps({"moves": []})])
def test_unreadable_request_is_reported_and_changes_nothing(text: str) -> None:
    world = running()
    before = world.recorded().intent.generations
    ask(world, text)
    world.until(lambda: "ReconcileBlocked" in world.reasons(), 5)
    told = [message for _, message in world.cluster.events() if REQUEST_ANNOTATION in message]
    assert told
    assert ";;" not in told[0]
    assert world.recorded().intent.generations == before
    assert world.holds(ConditionType.READY)


# --- splits and merges --------------------------------------------------------------------------


def replicas(world: World, name: str) -> int:
    found = world.cluster.get(DEPLOYMENT, KEY.namespace, name)["spec"]["replicas"]
    assert isinstance(found, int)
    return found


def slots(world: World) -> set[str]:
    """The merge slots that have pods."""
    return {labels_of(pod)[SLOT_LABEL] for pod in world.of_kind("merge")}


def test_splits_leave_one_at_a_time_while_all_has_two_copies() -> None:
    world = running()
    world.edit(splits={"count": 4})
    world.until(lambda: len(world.of_kind("split")) == 4)
    world.plane.vulnerable = ("lane",)
    world.edit(splits={"count": 1})
    for _ in range(5):
        world.step()
    assert replicas(world, splits_name(KEY.name)) == 4
    world.plane.vulnerable = ()
    counts = [4]

    def one() -> bool:
        there = replicas(world, splits_name(KEY.name))
        if there != counts[-1]:
            counts.append(there)
        return there == 1

    world.until(one)
    assert counts == [4, 3, 2, 1]


def test_merge_slots_get_new_numbers_and_leave_once_sealed() -> None:
    world = running()
    world.edit(merges={"count": 2})
    world.until(lambda: slots(world) == {"0", "1"} and world.plane.book.open_slots == [0, 1])
    world.edit(merges={"count": 1})
    world.until(lambda: slots(world) == {"0"})
    world.edit(merges={"count": 3})
    world.until(lambda: world.plane.book.open_slots == [0, 2, 3])
    assert slots(world) == {"0", "2", "3"}
    assert replicas(world, merge_name(KEY.name, 3)) == 2
    assert world.cluster.get(STREAM_PIPELINE, *KEY)["status"]["observedGeneration"] == 4
