"""Events of the condition `Ready`."""

from dataclasses import replace

from tandem.policy.status.readiness import Readiness, readiness_told, tell_readiness
from tandem_core.model.states import ConditionStatus, ConditionType, EventReason, Phase
from tandem_core.model.status import Condition, EpochProgress, Status

AT = "2024-05-01T12:00:00Z"


def status(reason: str, delivered: int = 7, phase: Phase = Phase.RUNNING) -> Status:
    holds = ConditionStatus.TRUE if reason == "Running" else ConditionStatus.FALSE
    ready = Condition(
        type=ConditionType.READY, status=holds, reason=reason, last_transition_time=AT
    )
    return replace(
        Status(), phase=phase, conditions=(ready,), epoch=EpochProgress(delivered=delivered)
    )


def told(*reasons: str, before: Readiness | None) -> list[EventReason]:
    events: list[EventReason] = []
    for reason in reasons:
        before, records = tell_readiness(before, status(reason))
        events += [each.event for each in records]
    return events


def test_change_of_ready_or_of_its_reason_is_told_once() -> None:
    reasons = ("Running", "NoLead", "NoLead", "PairDown", "Running", "Running")
    expected = [EventReason.NOT_READY, EventReason.NOT_READY, EventReason.READY]
    assert told(*reasons, before=None) == expected


def test_start_and_completion_are_not_told() -> None:
    assert told("NoLead", "PairStarting", "Running", before=None) == []
    assert readiness_told(status("PairStarting", delivered=0)) is None
    over = status("Completed", phase=Phase.COMPLETED)
    assert tell_readiness(Readiness(holds=True, reason="Running"), over)[1] == ()


def test_next_operator_goes_by_the_written_status() -> None:
    assert told("NoLead", before=readiness_told(status("Running"))) == [EventReason.NOT_READY]
    assert told("NoLead", before=readiness_told(status("NoLead"))) == []
    assert told("Running", before=readiness_told(status("NoLead"))) == [EventReason.READY]
