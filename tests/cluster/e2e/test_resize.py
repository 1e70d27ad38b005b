"""Pairs, splits and merges come and go under a running stream; the output equals the recount."""

from __future__ import annotations

import pytest
from bench.streaming.feeder import now
from cluster.trial.nodes import ClusterNodes
from cluster.trial.pods import Object, TrialPod, replicas
from cluster.trial.release import Release
from cluster.trial.space import Space
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import Flow, counting, fed, flowing
from tests.cluster.e2e.measuring import Note
from tests.cluster.e2e.resizing import (
    CHANGED_WITHIN,
    GIVEN_UP,
    MADE,
    STAGES,
    STEP_WITHIN,
    OperatorKiller,
    Story,
    assert_counts_grow,
    broken_settings,
    building,
    change_of,
    drivers,
    full_nodes,
    is_made,
    kill_operator,
    next_generation,
    pairs_of,
    past_changes,
    patch,
    progressing,
    quota_of_pods,
    scale,
    slots_of,
    told_of,
    until_made,
    watched,
)

from tandem_core.model.states import ChangeStage, ConditionType, Role

AS_DECLARED = ("False", "AsDeclared")
SETTINGS = "settings"
"""A ConfigMap with environment variables of drivers; there need not be one."""
SHORT, LONG = "45s", "10m"
"""Values of `spec.change.timeout`: a change ends soon, or drivers have the time to crash."""

# --- pairs --------------------------------------------------------------------------------------


@pytest.mark.timeout(3600, func_only=True)
def test_pairs_change_while_pods_operator_and_node_fail(
    space: Space, release: Release, nodes: ClusterNodes, note: Note
) -> None:
    with flowing(space, counting(pairs=2)) as flow:
        with watched(flow) as story:
            grow_while_pods_and_operator_die(flow, release, story, note)
            shrink_while_node_is_drained(flow, release, nodes, story, note)
        assert past_changes(flow) == [(3, 2, True), (2, 3, True)]
        assert progressing(flow) == AS_DECLARED
        description = space.kubectl("describe", "stp", flow.name)
        assert [reason for reason in MADE if reason not in description] == []


def grow_while_pods_and_operator_die(
    flow: Flow, release: Release, story: Story, note: Note
) -> None:
    """Two pairs become three; a pod of each generation dies, and the operator at each stage."""
    before, pods, generation, begin = pairs_of(flow), drivers(flow), next_generation(flow), now()
    killer = OperatorKiller(release, story)
    scale(flow, 3)
    killer.until(lambda: running_shadow(flow), STEP_WITHIN, "a driver of a new pair runs")
    kill_old_and_new(flow)
    assert progressing(flow)[0] == "True"
    killer.until(lambda: is_made(flow, generation), CHANGED_WITHIN, "there are three pairs")
    flow.until_whole(CHANGED_WITHIN)
    note(f"2 pairs become 3: {cost(flow, begin)}; operator killed at {', '.join(killer.killed_at)}")
    assert told_of(flow, generation) == MADE
    (carried,) = before & pairs_of(flow)
    kept = {uid for uid, pod in pods.items() if pod.pair == carried}
    assert set(drivers(flow, carried)) == kept
    # A stage that begins while there is no operator may pass unseen.
    assert in_order(killer.killed_at)
    assert {ChangeStage.PLANNED, ChangeStage.BUILDING} <= set(killer.killed_at)


def kill_old_and_new(flow: Flow) -> None:
    """Delete the primary of a pair that is replaced, and a driver of a pair that replaces it."""
    pairs = building(flow)
    assert pairs, "the new pairs are built already"
    replaced = next(parent for parents in pairs.values() for parent in parents)
    victims = (flow.replica(replaced, Role.PRIMARY), running_shadow(flow))
    flow.delete_now(*(pod for pod in victims if pod is not None))
    assert building(flow) == pairs


def running_shadow(flow: Flow) -> TrialPod | None:
    """A driver of a pair that is being built, if one has been started."""
    found = drivers(flow, *pairs) if (pairs := building(flow)) else {}
    return next((pod for pod in found.values() if pod.container), None)


def shrink_while_node_is_drained(
    flow: Flow, release: Release, nodes: ClusterNodes, story: Story, note: Note
) -> None:
    """Three pairs become two; a node is drained while the new pair is built."""
    before, pods, generation, begin = pairs_of(flow), drivers(flow), next_generation(flow), now()
    seen = len(story.stages())
    (operator,) = release.operators()
    (drained,) = nodes.others(operator.node)
    scale(flow, 2)
    until(lambda: running_shadow(flow), STEP_WITHIN, "a driver of the new pair runs")
    with nodes.cordoned(drained):
        nodes.drain(drained, limit=int(CHANGED_WITHIN))
        assert not [pod for pod in replicas(flow.pods()) if pod.node == drained]
        until_made(flow, generation)
        flow.goes_on()
    flow.until_whole(CHANGED_WITHIN)
    note(f"3 pairs become 2, a node drained: {cost(flow, begin)}")
    assert told_of(flow, generation) == MADE
    (carried,) = before & pairs_of(flow)
    stayed = {uid for uid, pod in pods.items() if pod.pair == carried and pod.node != drained}
    assert stayed
    assert stayed <= set(drivers(flow, carried))
    # A shadow that falls back takes the change back to Building.
    assert list(dict.fromkeys(story.stages()[seen:])) == STAGES


def cost(flow: Flow, begin: float) -> str:
    end = now()
    return f"{end - begin:.0f} s, longest gap {flow.longest_gap(begin, end):.1f} s"


def in_order(stages: list[ChangeStage]) -> bool:
    return stages == [stage for stage in STAGES if stage in stages]


# --- splits and merges --------------------------------------------------------------------------


@pytest.mark.timeout(1800, func_only=True)
def test_splits_and_merges_change_in_order_of_keys(space: Space, note: Note) -> None:
    with fed(space, in_partitions(counting(pairs=2))) as flow:
        flow.apply()
        flow.begin()
        with watched(flow) as story:
            for splits, merges in ((3, 2), (1, 3), (2, 1)):
                resize(flow, splits, merges, note)
            # Not for each: one that ends within a second or two may pass unseen.
            assert ("True", "CountsChanging") in story.conditions(ConditionType.PROGRESSING)
        flow.counts_are_right()
        assert_counts_grow(flow.output)


def in_partitions(document: Object) -> Object:
    """The manifest with a source that three splits can share."""
    (stream,) = document["spec"]["streams"]
    stream["source"]["files"]["partitions"] = 6
    return document


def resize(flow: Flow, splits: int, merges: int, note: Note) -> None:
    """Change splits and merges, and see that pairs notice nothing."""
    pods, begin = drivers(flow), now()
    patch(flow, {"splits": {"count": splits}, "merges": {"count": merges}})
    flow.until_whole(CHANGED_WITHIN)
    until(lambda: progressing(flow) == AS_DECLARED, STEP_WITHIN, "all counts are as declared")
    flow.goes_on()
    note(f"{splits} splits, {merges} merge slots: {cost(flow, begin)}")
    assert set(drivers(flow)) == set(pods)
    staying_splits = [pod for pod in flow.splits() if not pod.going]
    assert (len(staying_splits), len(slots_of(flow))) == (splits, merges)


# --- given up -----------------------------------------------------------------------------------


@pytest.mark.timeout(2400, func_only=True)
def test_impossible_change_is_given_up_and_possible_one_is_made(
    space: Space, release: Release, nodes: ClusterNodes, note: Note
) -> None:
    with flowing(space, with_settings(counting(pairs=1))) as flow, watched(flow) as story:
        pods, mark = staying(flow), story.mark()
        with full_nodes(space, nodes.names(), release.images["runtime"]):
            give_up(flow, "Insufficient cpu", note)
        with quota_of_pods(space, more=1):
            give_up(flow, "exceeded quota", note)
        patch(flow, {"change": {"timeout": LONG}})
        with broken_settings(space, SETTINGS):
            give_up(flow, "exit code 1", note)
        assert staying(flow) == pods
        assert {status for status, _ in story.conditions(ConditionType.READY, mark)} == {"True"}
        kill_operator(release)
        split_pair(flow, release, note)
        assert past_changes(flow) == [(1, 2, True), *[(1, 1, False)] * 3]


def staying(flow: Flow) -> set[str]:
    """All pods but those that are being deleted."""
    return {pod.uid for pod in flow.pods() if not pod.going}


def with_settings(document: Object) -> Object:
    """The manifest with drivers that read a ConfigMap, and with little time for a change."""
    settings = {"configMapRef": {"name": SETTINGS, "optional": True}}
    document["spec"]["pairs"]["template"] = {"envFrom": [settings]}
    document["spec"]["change"] = {"timeout": SHORT}
    return document


def give_up(flow: Flow, why: str, note: Note) -> None:
    """Ask for a pair more, see the change given up and the pipeline go on, and take it back."""
    generation, begin = next_generation(flow), now()
    scale(flow, 2)
    until(lambda: is_given_up(flow), CHANGED_WITHIN, f"the change is given up: {why}")
    note(f"given up ({why}): {cost(flow, begin)}")
    assert why in change_of(flow)["reason"]
    assert why in flow.status()["history"][0]["abandoned"]
    assert progressing(flow) == ("False", "ChangeAbandoned")
    until(lambda: told_of(flow, generation) == GIVEN_UP, STEP_WITHIN, "events tell of it")
    flow.goes_on()
    scale(flow, 1)
    flow.until_whole()
    until(lambda: not change_of(flow), STEP_WITHIN, "the change is forgotten")


def is_given_up(flow: Flow) -> bool:
    return change_of(flow).get("stage") == ChangeStage.ABANDONED


def split_pair(flow: Flow, release: Release, note: Note) -> None:
    """One pair becomes two although the operator is killed meanwhile."""
    before, generation, begin = pairs_of(flow), next_generation(flow), now()
    scale(flow, 2)
    until(lambda: running_shadow(flow), STEP_WITHIN, "a driver of a new pair runs")
    kill_operator(release)
    until_made(flow, generation)
    flow.until_whole(CHANGED_WITHIN)
    note(f"1 pair becomes 2: {cost(flow, begin)}")
    assert told_of(flow, generation) == MADE
    assert not before & pairs_of(flow)
