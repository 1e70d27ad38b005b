"""Requests by hand: which one counts while others wait."""

import pytest
from tests.policy.change.data_plane import first

from tandem.policy.change.wanted import next_request
from tandem_core.contract.intent import ChangeGoal, ChangeRequest, GenerationChange, Intent
from tandem_core.model.states import ChangeStage

A, B = ChangeRequest("a"), ChangeRequest("b")
PLAIN, _ = first(2)
UNDER_WAY = [stage for stage in ChangeStage if stage is not ChangeStage.ABANDONED]


def changing(stage: ChangeStage, request: str, known: ChangeRequest | None = None) -> Intent:
    change = GenerationChange(ChangeGoal(2, request), stage, since_ms=0, stage_ms=0)
    return PLAIN.replace(change=change, request=known)


def test_oldest_request_comes_first() -> None:
    assert next_request(PLAIN, [A, B]) == A
    assert next_request(PLAIN.replace(request=A), []) == A


@pytest.mark.parametrize("stage", UNDER_WAY)
def test_request_waits_for_the_change_under_way(stage: ChangeStage) -> None:
    assert next_request(changing(stage, ""), [B]) is None
    assert next_request(changing(stage, "a", A), [B]) == A
    assert next_request(changing(ChangeStage.PLANNED, "a"), [A, B]) == A


def test_request_need_not_wait_for_a_change_that_was_given_up() -> None:
    assert next_request(changing(ChangeStage.ABANDONED, "a", A), [B]) == B
