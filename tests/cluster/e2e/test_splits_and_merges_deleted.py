"""Splits and merges are deleted; delivery goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.streaming.feeder import now
from cluster.trial.pods import TrialPod
from cluster.trial.space import Space
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import Flow, flowing
from tests.cluster.e2e.measuring import Note

from tandem.kube.kinds import POD
from tandem.kube.port import Conflict
from tandem_core.contract.reports import SplitState
from tandem_core.model.states import EventReason

GOES_ON_WITHIN = 15.0


@pytest.mark.smoke
@pytest.mark.timeout(600, func_only=True)
def test_deleted_lead_is_succeeded_by_another_split(space: Space, note: Note) -> None:
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
def test_delivery_survives_deletion_of_split_or_active_merge(space: Space, note: Note) -> None:
    with flowing(space) as flow:
        (other,) = flow.other_splits()
        note(f"other split deleted: gap {goes_on_without(flow, other):.2f} s")
        active = flow.active_merge()
        note(f"active merge deleted: gap {goes_on_without(flow, active):.2f} s")
        assert flow.active_merge().uid != active.uid


@pytest.mark.timeout(900, func_only=True)
def test_split_is_not_evicted_while_rows_have_one_copy(space: Space) -> None:
    with flowing(space) as flow:
        with blocked(flow.output):
            # Nothing is forgotten while nothing is delivered, so it cannot leave in good order.
            reader = until(lambda: keeps_rows(flow), 60, "rows wait in a lane")
            (other,) = (pod for pod in flow.splits() if pod.uid != reader.uid)
            space.kubectl("delete", "pod", reader.name, "--wait=false")
            until(lambda: is_gone(flow, reader), 120, "the split that read is gone")
            assert len(flow.splits()) == 2
            assert not evicts(flow, other)
        until(lambda: evicts(flow, other), 120, "the other split may go")
        until(lambda: is_gone(flow, other), 120, "it is gone")
        flow.until_whole()


@contextmanager
def blocked(sink: Path) -> Iterator[None]:
    """Nobody but root may write into a file sink until the end of the block."""
    mode = sink.stat().st_mode
    sink.chmod(0o555)
    try:
        yield
    finally:
        sink.chmod(mode)


def keeps_rows(flow: Flow) -> TrialPod | None:
    """The split that has rows which are still needed, and no other has."""
    keeping = [pod for pod in flow.splits() if lane_bytes(flow, pod)]
    return keeping[0] if len(keeping) == 1 else None


def lane_bytes(flow: Flow, pod: TrialPod) -> int:
    part = flow.report_of(pod).part
    assert isinstance(part, SplitState)
    return part.lane_bytes


def is_gone(flow: Flow, pod: TrialPod) -> bool:
    return pod.uid not in {each.uid for each in flow.pods()}


def evicts(flow: Flow, pod: TrialPod) -> bool:
    """Ask for a pod's eviction; whether the budget allows it."""
    try:
        flow.space.api.evict(flow.space.api.get(POD, flow.space.name, pod.name))
    except Conflict:
        return False
    return True


def goes_on_without(flow: Flow, pod: TrialPod) -> float:
    """Delete a pod, see delivery go on and everybody come back; the gap."""
    begin = now()
    flow.delete_now(pod)
    flow.goes_on()
    gap = flow.longest_gap(begin, now())
    assert gap <= GOES_ON_WITHIN
    flow.until_whole()
    return gap
