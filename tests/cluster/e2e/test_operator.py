"""The operator is away, is killed, is doubled: pipelines do not mind, and the status is true."""

from __future__ import annotations

import random

import pytest
from cluster.trial.nodes import ClusterNodes
from cluster.trial.pods import TrialPod
from cluster.trial.release import Release
from cluster.trial.space import Space
from cluster.trial.status_checks import co_located, missing_pods
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import Flow, counting, flowing
from tests.cluster.e2e.measuring import Note
from tests.cluster.e2e.recovering import (
    primary,
    secondary,
    survives_deletion,
    until_sharing_is,
)

from tandem.control.intent_store import read_intent
from tandem.control.types import Key
from tandem_core.model.kubernetes_names import splits_name
from tandem_core.model.states import EventReason, Role

TRUE_WITHIN = 30.0
"""Seconds after its return in which the operator brings status and labels up to date."""
STEPS = (None, EventReason.FAILOVER, EventReason.CATCH_UP_STARTED, EventReason.PAIRED)
"""Events of a recovery upon which the operator is killed; once before it can tell of any."""
RANDOM_ROUNDS = 2
KILLED_SHARE = 0.15
"""How often the operator is killed when it is seen to be there, five times a second."""


@pytest.mark.smoke
@pytest.mark.timeout(600, func_only=True)
def test_returning_operator_reports_changes_during_absence(
    space: Space, release: Release, note: Note
) -> None:
    with flowing(space) as flow:
        with release.away():
            goes_on_without(flow, primary(flow))
            goes_on_without(flow, flow.lead())
        note(f"status true {flow.until_whole(TRUE_WITHIN):.1f} s after the operator's return")


@pytest.mark.timeout(1800, func_only=True)
def test_all_faults_are_survived_without_operator(
    space: Space, release: Release, nodes: ClusterNodes, note: Note
) -> None:
    with flowing(space, counting(pairs=2)) as flow:
        with release.away():
            goes_on_without(flow, primary(flow), flow.replica("pair-1", Role.SECONDARY))
            goes_on_without(flow, flow.lead())
            goes_on_without(flow, *flow.other_splits())
            goes_on_without(flow, flow.active_merge())
            first, second = nodes.names()
            with nodes.stopped(first):
                flow.goes_on()
                flow.until_replaced()
            # Everybody is on the other one now, and there is nobody to part them.
            with nodes.cordoned(second):
                nodes.drain(second)
                flow.goes_on()
                flow.until_replaced()
        note(f"status true {flow.until_whole(TRUE_WITHIN):.1f} s after the operator's return")
        until_sharing_is(flow, bool(co_located(flow.pods())))


def goes_on_without(flow: Flow, *pods: TrialPod) -> None:
    """Delete pods, see delivery go on and Kubernetes replace them."""
    flow.delete_now(*pods)
    flow.goes_on()
    flow.until_replaced()


@pytest.mark.timeout(600, func_only=True)
def test_manual_scaling_is_reverted(space: Space) -> None:
    with flowing(space) as flow:
        splits = f"deployment/{splits_name(flow.name)}"
        space.kubectl("scale", splits, "--replicas=3")
        until(lambda: scale_of(space, splits) == "2", 90, "there are to be two splits again")
        flow.until_whole()


def scale_of(space: Space, workload: str) -> str:
    return space.kubectl("get", workload, "--output=jsonpath={.spec.replicas}")


@pytest.mark.timeout(1800, func_only=True)
def test_operator_killed_during_recovery_is_resumed_by_successor(
    space: Space, release: Release
) -> None:
    draws = random.Random(7)  # noqa: S311 - a seed is wanted, not secrecy
    with flowing(space) as flow:
        for step in STEPS:
            twin, mark = secondary(flow), flow.events.mark()
            flow.delete_now(primary(flow))
            if step is not None:
                flow.until_told(mark, "pair-0", TOLD_BY[step])
            kill_all(release)
            recovers(flow, twin)
        for _ in range(RANDOM_ROUNDS):
            twin = secondary(flow)
            flow.delete_now(primary(flow))
            killing_until_replaced(flow, release, draws)
            recovers(flow, twin)


TOLD_BY = {
    step: [each for each in STEPS[1 : place + 1] if each is not None]
    for place, step in enumerate(STEPS)
}


def kill_all(release: Release) -> None:
    for operator in release.operators():
        release.kill(operator)


def killing_until_replaced(flow: Flow, release: Release, draws: random.Random) -> None:
    """Kill the operator again and again until Kubernetes has replaced all pods."""
    spec = flow.resource()["spec"]

    def replaced() -> bool:
        if draws.random() < KILLED_SHARE and any(pod.well for pod in release.operators()):
            kill_all(release)
        return not missing_pods(spec, flow.pods())

    until(replaced, 240, "everybody is there though the operator is killed")


def recovers(flow: Flow, survivor: TrialPod) -> None:
    """The end is the same as if nobody had disturbed the operator."""
    flow.until_whole()
    assert primary(flow).uid == survivor.uid
    flow.goes_on(2)


@pytest.mark.timeout(900, func_only=True)
def test_standby_operator_takes_over_when_leader_dies(space: Space, release: Release) -> None:
    with flowing(space) as flow, release.twofold():
        acting = until(release.acting, 60, "one operator holds the Lease")
        mark, version = flow.events.mark(), intent_version(flow)
        survives_deletion(flow, primary(flow))
        told = [each.reason for each in flow.events.since(mark)]
        assert told.count(EventReason.FAILOVER) == 1
        assert intent_version(flow) == version + 1
        still = release.acting()
        assert still is not None
        assert still.uid == acting.uid
        release.kill(acting)
        until(lambda: another(release, acting), 120, "the other operator holds the Lease")
        survives_deletion(flow, primary(flow))


def another(release: Release, than: TrialPod) -> TrialPod | None:
    """The operator that acts, if it is not that one."""
    acting = release.acting()
    return acting if acting is not None and acting.uid != than.uid else None


def intent_version(flow: Flow) -> int:
    """How often the intent was written."""
    uid = flow.resource()["metadata"]["uid"]
    recorded = read_intent(flow.space.api, Key(flow.space.name, flow.name), uid)
    assert recorded is not None
    return recorded.intent.version
