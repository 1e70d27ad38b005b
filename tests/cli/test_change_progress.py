"""How far a change is, from the intent and the status."""

from typing import Any

import pytest
from tests.local.pipelines import pipeline

from tandem.policy.intent import first_intent
from tandem_cli.changing.progress import ChangeOutcome, judge, wait_for_change
from tandem_cli.changing.targets import Counts, PendingChange
from tandem_core.contract.intent import (
    ChangeGoal,
    ChangeRequest,
    GenerationChange,
    Intent,
    KeyMove,
)
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.states import ChangeStage, MemberKind, MemberState, Phase
from tandem_core.model.status import MemberStatus, Status

ASKED = PendingChange(generation=2)
NOW = pipeline()
DONE_INTENT = first_intent(NOW)


def status(splits: int = 2, merges: int = 2, replicas: int = 4, **fields: Any) -> Status:
    members = [
        *(member(MemberKind.SPLIT, number) for number in range(splits)),
        *(member(MemberKind.MERGE, number) for number in range(merges)),
        *(member(MemberKind.REPLICA, number) for number in range(replicas)),
    ]
    return Status(**{"observed_generation": 2, "members": tuple(members), **fields})


def member(kind: MemberKind, number: int) -> MemberStatus:
    return MemberStatus(name=f"{kind}-{number}", kind=kind, state=MemberState.RUNNING)


def change(stage: ChangeStage, manifest: int = 2, request: str = "") -> GenerationChange:
    return GenerationChange(ChangeGoal(2, request, manifest), stage, 0, 0, reason="why")


def test_change_is_done_once_pairs_and_members_are_as_wanted() -> None:
    assert judge(DONE_INTENT, status(), NOW.spec, ASKED).outcome is ChangeOutcome.DONE
    lacking = [
        judge(None, status(), NOW.spec, ASKED),
        judge(DONE_INTENT, status(observed_generation=1), NOW.spec, ASKED),
        judge(DONE_INTENT, status(splits=3), NOW.spec, ASKED),
        judge(DONE_INTENT, status(merges=4), NOW.spec, ASKED),
        judge(DONE_INTENT, status(replicas=6), NOW.spec, ASKED),
        judge(DONE_INTENT, status(), pipeline(pairs={"count": 3}).spec, ASKED),
    ]
    assert {each.outcome for each in lacking} == {ChangeOutcome.WAITING}
    assert len({each.text for each in lacking}) == len(lacking)


@pytest.mark.parametrize(
    "stage", [each for each in ChangeStage if each is not ChangeStage.ABANDONED]
)
def test_change_under_way_is_told_with_stage_and_reason(stage: ChangeStage) -> None:
    found = judge(DONE_INTENT.replace(change=change(stage)), status(), NOW.spec, ASKED)
    assert found.outcome is ChangeOutcome.WAITING
    assert found.text == f"{stage}: why"


def test_only_the_change_that_was_asked_for_is_given_up() -> None:
    abandoned = DONE_INTENT.replace(change=change(ChangeStage.ABANDONED))
    assert judge(abandoned, status(), NOW.spec, ASKED).outcome is ChangeOutcome.GIVEN_UP
    later = PendingChange(generation=3)
    found = judge(abandoned, status(observed_generation=3), NOW.spec, later)
    assert found.outcome is ChangeOutcome.DONE
    moved = PendingChange(request="a")
    mine = DONE_INTENT.replace(change=change(ChangeStage.ABANDONED, request="a"))
    assert judge(mine, status(), NOW.spec, moved).outcome is ChangeOutcome.GIVEN_UP


def test_moved_keys_are_waited_for_by_their_request() -> None:
    moved = PendingChange(request="b")
    assert judge(DONE_INTENT, status(), NOW.spec, moved).outcome is ChangeOutcome.WAITING
    for known, outcome in (
        ("a", ChangeOutcome.WAITING),
        ("b", ChangeOutcome.DONE),
        ("c", ChangeOutcome.DONE),
    ):
        intent = DONE_INTENT.replace(request=ChangeRequest(known))
        assert judge(intent, status(), NOW.spec, moved).outcome is outcome


class Story:
    """A pipeline whose intent is another one with each look."""

    where = "here"

    def __init__(self, *intents: Intent, phase: Phase = Phase.RUNNING) -> None:
        self.intents = list(intents)
        self.phase = phase

    def pipeline(self) -> Pipeline:
        return NOW

    def intent(self) -> Intent:
        return self.intents.pop(0) if len(self.intents) > 1 else self.intents[0]

    def status(self) -> Status:
        return status(phase=self.phase)

    def apply(self, wanted: Pipeline) -> PendingChange:
        raise NotImplementedError

    def scale(self, counts: Counts) -> PendingChange:
        raise NotImplementedError

    def move(self, moves: tuple[KeyMove, ...]) -> PendingChange:
        raise NotImplementedError


def waited(story: Story) -> tuple[ChangeOutcome, list[str]]:
    said: list[str] = []
    times = iter(range(100))
    found = wait_for_change(
        story, ASKED, 10, said.append, clock=lambda: next(times), sleep=lambda _: None
    )
    return found.outcome, said


def test_each_stage_is_told_once_until_the_end() -> None:
    building = DONE_INTENT.replace(change=change(ChangeStage.BUILDING))
    cutting = DONE_INTENT.replace(change=change(ChangeStage.CUTTING))
    assert waited(Story(building, building, cutting, DONE_INTENT)) == (
        ChangeOutcome.DONE,
        ["Building: why", "Cutting: why"],
    )
    assert waited(Story(building)) == (ChangeOutcome.WAITING, ["Building: why"])
    assert waited(Story(building, phase=Phase.COMPLETED)) == (ChangeOutcome.GIVEN_UP, [])
