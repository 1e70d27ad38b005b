"""Connections between pods are cut for a while; everything is right afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from bench.streaming.feeder import now
from cluster.trial.nodes import ClusterNodes
from cluster.trial.pods import TrialPod
from cluster.trial.space import Space
from tests.cluster.e2e.flow import Flow, flowing
from tests.cluster.e2e.measuring import Note
from tests.cluster.e2e.recovering import primary, secondary

CUT_SECONDS = 30.0

Sides = Callable[[Flow], tuple[list[TrialPod], list[TrialPod]]]


def splits_from_each_other(flow: Flow) -> tuple[list[TrialPod], list[TrialPod]]:
    return [flow.lead()], flow.other_splits()


def a_twin_from_the_merge(flow: Flow) -> tuple[list[TrialPod], list[TrialPod]]:
    return [secondary(flow)], flow.merges()


def a_driver_from_the_splits(flow: Flow) -> tuple[list[TrialPod], list[TrialPod]]:
    return [primary(flow)], [flow.lead(), *flow.other_splits()]


CUTS: tuple[Sides, ...] = (splits_from_each_other, a_twin_from_the_merge, a_driver_from_the_splits)


@pytest.mark.timeout(1200, func_only=True)
def test_network_partitions_do_not_affect_output(
    space: Space, nodes: ClusterNodes, note: Note
) -> None:
    with flowing(space) as flow:
        for sides in CUTS:
            begin = now()
            with nodes.cut(*sides(flow)):
                time.sleep(CUT_SECONDS)  # That long it is to last, whatever happens meanwhile.
                assert nodes.dropped() > 0, "no connection was cut"
            flow.until_whole()
            flow.goes_on()
            note(f"{sides.__name__}: gap {flow.longest_gap(begin, now()):.2f} s")
