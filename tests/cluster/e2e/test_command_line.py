"""`tandem status`, `pause` and `resume` on a cluster; `kill` has its test among processes."""

from __future__ import annotations

import json

import pytest
from cluster.steps import StepFailed
from cluster.trial.pods import Object
from cluster.trial.space import Space
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import Flow, flowing
from tests.cluster.e2e.recovering import secondary

from tandem_core.model.states import MemberState


@pytest.mark.timeout(600, func_only=True)
def test_cli_shows_pauses_and_resumes_members(space: Space) -> None:
    with flowing(space) as flow:
        shown = shown_status(flow)
        there = {(pod.name, pod.kind, pod.pair, pod.role, pod.node) for pod in flow.pods()}
        assert {described(member) for member in shown["members"]} == there
        assert [pair["name"] for pair in shown["pairs"]] == ["pair-0"]
        twin = secondary(flow).name
        flow.tandem("pause", "pair-0/secondary", "--pipeline", flow.name)
        until(lambda: state_of(flow, twin) is not MemberState.RUNNING, 120, "it is missed")
        flow.goes_on(4)
        flow.tandem("resume", twin, "--pipeline", flow.name)
        flow.until_whole()
        assert state_of(flow, twin) is MemberState.RUNNING
        with pytest.raises(StepFailed):
            flow.tandem("pause", "pair-7/primary", "--pipeline", flow.name)


def shown_status(flow: Flow) -> Object:
    shown: Object = json.loads(flow.tandem("status", flow.name, "--output", "json"))
    return shown


def described(member: Object) -> tuple[str | None, ...]:
    return tuple(member.get(field) for field in ("name", "kind", "pair", "role", "node"))


def state_of(flow: Flow, name: str) -> MemberState:
    members = shown_status(flow)["members"]
    return next(MemberState(each["state"]) for each in members if each["name"] == name)
