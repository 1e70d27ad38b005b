from pathlib import Path

import pytest
from tests.local.pipelines import pipeline

from tandem.local.changes import ChangeDesk, is_done
from tandem.local.store.directory import Directory, locked
from tandem.local.store.intent_file import write_functions
from tandem.local.store.manifest import prepare, read_manifest
from tandem.local.store.requests import (
    DirectoryRequest,
    is_pending,
    pending_requests,
    read_answer,
    send_request,
)
from tandem.policy.controller_state import ControllerState
from tandem.policy.intent import first_functions, first_intent
from tandem.policy.snapshot import Snapshot
from tandem_core.contract.intent import (
    ChangeGoal,
    ChangeRequest,
    GenerationChange,
    Intent,
    KeyMove,
)
from tandem_core.model.states import ChangeStage

NOTHING = Snapshot(0.0, ()), ControllerState(), 0


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    made = Directory(tmp_path / "state")
    with locked(made):
        prepare(made, pipeline(), tmp_path)
    write_functions(made.path, first_functions(pipeline()))
    return made


def changing(stage: ChangeStage, request: str) -> Intent:
    change = GenerationChange(ChangeGoal(2, request), stage, since_ms=0, stage_ms=0)
    return first_intent(pipeline()).replace(change=change)


def test_requested_counts_are_taken_and_answered_with_generation(directory: Directory) -> None:
    intent = first_intent(pipeline())
    changes = ChangeDesk(directory)
    name = send_request(directory, {"spec.splits.count": 3, "spec.merges.count": 2})
    assert read_answer(directory, name) is None
    step = changes.next_step(intent, *NOTHING)
    assert step is not None
    assert (step.intent.splits, step.intent.slots) == (3, 2)
    answer = read_answer(directory, name)
    assert answer is not None
    assert (answer.generation, answer.refused) == (2, "")
    assert not is_pending(directory, name)
    assert changes.generation == read_manifest(directory).generation == 2


def test_request_waits_for_the_next_start(directory: Directory) -> None:
    send_request(directory, {"spec.splits.count": 3})
    last = send_request(directory, {"spec.splits.count": 4})
    step = ChangeDesk(directory).next_step(first_intent(pipeline()), *NOTHING)
    assert step is not None
    assert step.intent.splits == 4
    answer = read_answer(directory, last)
    assert answer is not None
    assert answer.generation == 3


def test_impossible_request_is_refused_and_changes_nothing(directory: Directory) -> None:
    wrong = send_request(directory, {"spec.pairs.count": 0})
    other = send_request(directory, {"spec.epoch.interval": "1s"})
    nobody = send_request(directory, moves=(KeyMove(7, "pair-9"),))
    (directory.requests / "3.json").write_text("{")
    assert ChangeDesk(directory).next_step(first_intent(pipeline()), *NOTHING) is None
    answers = [read_answer(directory, name) for name in (wrong, other, nobody, "3")]
    assert all(answer is not None and answer.refused for answer in answers)
    assert pending_requests(directory) == []
    assert read_manifest(directory).generation == 1


def test_key_move_is_done_once_intent_has_it_or_has_given_it_up() -> None:
    request = DirectoryRequest("a", {}, moves=(KeyMove(7, "pair-1"),))
    idle = first_intent(pipeline())
    assert not is_done(request, idle)
    assert not is_done(request, changing(ChangeStage.PLANNED, "a"))
    assert is_done(request, idle.replace(request=ChangeRequest("a", request.moves)))


def test_key_moves_are_begun_one_after_the_other(directory: Directory) -> None:
    names = [send_request(directory, moves=(KeyMove(key, "pair-1"),)) for key in (7, 8)]
    changes, intent = ChangeDesk(directory), first_intent(pipeline())
    step = changes.next_step(intent, *NOTHING)
    assert step is not None
    assert step.intent.change is not None
    assert step.intent.change.goal.request == names[0]
    assert all(is_pending(directory, name) for name in names)
    begun = step.intent.replace(request=ChangeRequest(names[0], ()))
    changes.next_step(begun, *NOTHING)
    assert [is_pending(directory, name) for name in names] == [False, True]
