"""Workers are drained and stopped; pairs are whole on what is left, and parted afterwards."""

from __future__ import annotations

import pytest
from bench.streaming.feeder import now
from cluster.trial.nodes import ClusterNodes
from cluster.trial.release import Release
from cluster.trial.space import Space
from cluster.trial.status_checks import co_located, unheld
from cluster.trial.waiting import until_none
from tests.cluster.e2e.flow import INTERVAL, Flow, counting, flowing
from tests.cluster.e2e.measuring import Note, Recovery, summary
from tests.cluster.e2e.recovering import until_sharing_is

from tandem_core.model.kubernetes_names import KIND_LABEL
from tandem_core.model.states import MemberKind

PARTED_WITHIN = 600.0
"""Seconds; pods are moved one after the other, with pauses of minutes."""
REPLICAS = f"{KIND_LABEL}={MemberKind.REPLICA}"


@pytest.mark.timeout(1800, func_only=True)
def test_node_drain_never_evicts_both_replicas_of_pair(
    space: Space, nodes: ClusterNodes, note: Note
) -> None:
    first, second = nodes.names()
    with flowing(space) as flow:
        with nodes.cordoned(first):
            recovery = flow.survives(lambda: nodes.drain(first, REPLICAS), 120)
            note(summary("replicas drained", [recovery], INTERVAL))
            nodes.drain(first)
            is_whole_on(flow, second)
        # Now both twins are on one node, and only the budget keeps them from going together.
        with nodes.cordoned(second):
            nodes.drain(second)
            is_whole_on(flow, first)
        are_parted(flow)
        assert not unheld(space.pods_watched.changes(), "pair-0")


@pytest.mark.timeout(1800, func_only=True)
def test_pipeline_survives_stopped_worker_and_respreads_on_return(
    space: Space, nodes: ClusterNodes, release: Release, note: Note
) -> None:
    with flowing(space, counting(pairs=2)) as flow:
        (operator,) = release.operators()
        (lost,) = nodes.others(operator.node)
        # So the gap is that of replicas alone.
        flow.place_lead_and_merge(lost, there=False)
        begin = now()
        with nodes.stopped(lost):
            flow.goes_on()
            is_whole_on(flow, str(operator.node))
            end = now()
        recovery = Recovery(flow.longest_gap(begin, end), end - begin)
        note(summary("worker stopped", [recovery], INTERVAL))
        are_parted(flow)


def is_whole_on(flow: Flow, node: str) -> None:
    """Wait until everybody is on one node, paired, and the status tells of it."""
    until_none(
        lambda: [pod.name for pod in flow.pods() if not pod.going and pod.node != node],
        240,
        f"everybody is on {node}",
    )
    flow.until_whole()
    until_sharing_is(flow, True)
    flow.goes_on()


def are_parted(flow: Flow) -> None:
    """Wait until twins, and splits, are on different nodes again."""
    until_none(lambda: co_located(flow.pods()), PARTED_WITHIN, "everybody is parted")
    flow.until_whole()
    until_sharing_is(flow, False)
    flow.goes_on()
