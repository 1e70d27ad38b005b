"""Processes of driver pods are killed and frozen, from inside and from their nodes."""

from __future__ import annotations

import pytest
from bench.streaming.feeder import now
from cluster.trial.nodes import ClusterNodes
from cluster.trial.pods import replicas
from cluster.trial.space import Space
from tests.cluster.e2e.flow import INTERVAL, flowing
from tests.cluster.e2e.measuring import Note, Recovery, summary
from tests.cluster.e2e.recovering import TAKEN_OVER, primary, secondary

from tandem_core.model.states import EventReason, Role

WITHIN = 120.0


@pytest.mark.timeout(600, func_only=True)
def test_killed_process_resumes_from_own_volume(space: Space, note: Note) -> None:
    with flowing(space) as flow:
        mark = flow.events.mark()
        pods = {pod.uid for pod in flow.pods()}
        victim = primary(flow)
        before = flow.report_of(victim)
        recovery = flow.survives(lambda: flow.kill_inside("pair-0/primary", victim), WITHIN)
        after = flow.report_of(victim)
        assert (after.volume, after.incarnation > before.incarnation) == (before.volume, True)
        assert {pod.uid for pod in flow.pods()} == pods
        flow.until_told(mark, "pair-0", TAKEN_OVER)
        note(summary("kill -9 inside", [recovery], INTERVAL))


@pytest.mark.timeout(600, func_only=True)
def test_frozen_driver_fails_over_and_is_harmless_when_resumed(
    space: Space, nodes: ClusterNodes, note: Note
) -> None:
    with flowing(space) as flow:
        mark, begin = flow.events.mark(), now()
        victim, twin = primary(flow), secondary(flow)
        with nodes.frozen(victim):
            flow.until_told(mark, "pair-0", [EventReason.FAILOVER])
            flow.goes_on(4)
            # The event comes first, the labels right after it.
            roles = {pod.uid: pod.role for pod in replicas(flow.pods(), "pair-0")}
            assert roles == {twin.uid: Role.PRIMARY, victim.uid: Role.SECONDARY}
        gap = flow.longest_gap(begin, now())
        flow.until_told(mark, "pair-0", TAKEN_OVER)
        flow.until_whole(WITHIN)
        note(summary("frozen", [Recovery(gap, now() - begin)], INTERVAL))
        assert secondary(flow).uid == victim.uid
        flow.goes_on()
