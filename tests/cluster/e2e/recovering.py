"""Faults that several tests make, and what must be seen of the recovery from them."""

from __future__ import annotations

from cluster.trial.pods import TrialPod, replicas
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import Flow
from tests.cluster.e2e.measuring import Recovery

from tandem_core.model.states import ConditionType, EventReason, Role

PAIRED_WITHIN = 60.0
"""Seconds that are promised, as the median; a single try may take twice as long."""

CAUGHT_UP = [EventReason.CATCH_UP_STARTED, EventReason.PAIRED]
TAKEN_OVER = [EventReason.FAILOVER, *CAUGHT_UP]
"""The events of a recovery: when a secondary failed, and when a primary did."""


def primary(flow: Flow) -> TrialPod:
    """The primary of the first pair."""
    return flow.replica("pair-0", Role.PRIMARY)


def secondary(flow: Flow) -> TrialPod:
    """The secondary of the first pair."""
    return flow.replica("pair-0", Role.SECONDARY)


def survives_deletion(flow: Flow, *victims: TrialPod) -> Recovery:
    """Delete replicas of different pairs at once; see the events and the roles of each recovery."""
    mark, gone = flow.events.mark(), {pod.uid for pod in victims}
    twins = {pod.pair: pod for pod in replicas(flow.pods()) if pod.uid not in gone}
    recovery = flow.survives(lambda: flow.delete_now(*victims), 2 * PAIRED_WITHIN)
    for victim in victims:
        pair = str(victim.pair)
        expected = TAKEN_OVER if victim.role == Role.PRIMARY else CAUGHT_UP
        flow.until_told(mark, pair, expected)
        assert flow.replica(pair, Role.PRIMARY).uid == twins[pair].uid
        assert flow.replica(pair, Role.SECONDARY).uid not in gone
    return recovery


def until_sharing_is(flow: Flow, shared: bool) -> None:
    """Wait until the status says that twins or splits share a node, or that none do."""
    until(
        lambda: flow.condition(ConditionType.CO_LOCATED).get("status") == str(shared),
        30,
        f"{ConditionType.CO_LOCATED} is {shared}",
    )
