"""Driver pods are deleted: nothing is lost, nothing waits, the pair is whole again soon."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cluster.trial.pods import TrialPod, replicas
from cluster.trial.space import Space
from tests.cluster.e2e.flow import INTERVAL, Flow, counting, flowing
from tests.cluster.e2e.measuring import Note, median_whole, summary
from tests.cluster.e2e.recovering import PAIRED_WITHIN, primary, secondary, survives_deletion

from tandem.control.events import OperatorEventReason
from tandem_core.model.states import EventReason, MemberKind, Role

TRIES = 5

Victims = Callable[[Flow], list[TrialPod]]


@pytest.mark.smoke
@pytest.mark.timeout(600, func_only=True)
def test_deleted_primary_fails_over_and_is_replaced(space: Space, note: Note) -> None:
    with flowing(space) as flow:
        recovery = survives_deletion(flow, primary(flow))
        note(summary("primary deleted", [recovery], INTERVAL))
        assert EventReason.FAILOVER in space.kubectl("describe", "stp", flow.name)


VICTIMS: dict[str, tuple[int, Victims]] = {
    "primary": (1, lambda flow: [primary(flow)]),
    "secondary": (1, lambda flow: [secondary(flow)]),
    "one of each pair": (
        2,
        lambda flow: [primary(flow), flow.replica("pair-1", Role.SECONDARY)],
    ),
}


@pytest.mark.timeout(1200, func_only=True)
@pytest.mark.parametrize("what", VICTIMS)
def test_repeatedly_deleted_replicas_are_replaced_in_time(
    what: str, space: Space, note: Note
) -> None:
    pairs, victims = VICTIMS[what]
    with flowing(space, counting(pairs=pairs)) as flow:
        recoveries = [survives_deletion(flow, *victims(flow)) for _ in range(TRIES)]
    note(summary(f"{what} deleted", recoveries, INTERVAL))
    assert median_whole(recoveries) <= PAIRED_WITHIN


@pytest.mark.timeout(600, func_only=True)
def test_warm_spare_replaces_deleted_replica(space: Space, note: Note) -> None:
    with flowing(space, counting(spares=1)) as flow:
        (spare,) = (pod for pod in flow.pods() if pod.kind == MemberKind.SPARE)
        # The survivor is on another node than the spare.
        victim = next(pod for pod in replicas(flow.pods()) if pod.node == spare.node)
        mark = flow.events.mark()
        recovery = survives_deletion(flow, victim)
        note(summary("replica deleted, with a spare", [recovery], INTERVAL))
        assert secondary(flow).uid == spare.uid
        assert OperatorEventReason.SPARE_USED in {each.reason for each in flow.events.since(mark)}
