"""Splits and merges are deleted; delivery goes on by itself."""

from __future__ import annotations

import pytest
from bench.streaming.feeder import now
from cluster.trial.pods import Pod
from cluster.trial.space import Space
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import Flow, flowing
from tests.cluster.e2e.measuring import Note

from tandem.model.states import EventReason

GOES_ON_WITHIN = 15.0


@pytest.mark.smoke
@pytest.mark.timeout(600, func_only=True)
def test_another_split_leads_when_the_lead_is_deleted(space: Space, note: Note) -> None:
    with flowing(space) as flow:
        mark, lead = flow.events.mark(), flow.lead()
        note(f"lead deleted: gap {goes_on_without(flow, lead):.2f} s")
        assert flow.lead().uid != lead.uid
        until(
            lambda: EventReason.LEAD_CHANGED in {each.reason for each in flow.events.since(mark)},
            30,
            "it is told that another split leads",
        )


@pytest.mark.timeout(600, func_only=True)
def test_delivery_goes_on_without_the_other_split_and_without_the_active_merge(
    space: Space, note: Note
) -> None:
    with flowing(space) as flow:
        (other,) = flow.other_splits()
        note(f"other split deleted: gap {goes_on_without(flow, other):.2f} s")
        active = flow.active_merge()
        note(f"active merge deleted: gap {goes_on_without(flow, active):.2f} s")
        assert flow.active_merge().uid != active.uid


def goes_on_without(flow: Flow, pod: Pod) -> float:
    """Delete a pod, see delivery go on and everybody come back; the gap."""
    begin = now()
    flow.delete_now(pod)
    flow.goes_on()
    gap = flow.longest_gap(begin, now())
    assert gap <= GOES_ON_WITHIN
    flow.until_whole()
    return gap
