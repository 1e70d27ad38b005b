"""`tandem apply`, `scale`, `move`, `rollback`: what they ask for, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.control.world import KEY, resource
from tests.local.pipelines import document
from tests.remote.stage import Stage

from tandem.kube import user
from tandem.kube.kinds import STREAM_PIPELINE, Object
from tandem.kube.user import UserAccess
from tandem.local.store.directory import Directory, locked
from tandem.local.store.intent_file import write_functions, write_intent
from tandem.local.store.manifest import prepare
from tandem.local.store.paths import with_absolute_paths
from tandem.local.store.requests import DirectoryRequest, pending_requests
from tandem.policy.intent import first_functions, first_intent
from tandem_cli import main
from tandem_cli.changing.by_hand import undoing
from tandem_cli.changing.targets import ChangeRefused
from tandem_core.contract.intent import (
    ChangeGoal,
    GenerationChange,
    Intent,
    KeyMove,
    PastChange,
)
from tandem_core.model.kubernetes_names import REQUEST_ANNOTATION
from tandem_core.model.pipeline import Pipeline, parse_pipeline, status_document
from tandem_core.model.states import ChangeStage, Phase
from tandem_core.model.status import Status

Output = pytest.CaptureFixture[str]


def parsed(**spec: Any) -> Pipeline:
    found = parse_pipeline(document(**spec))
    assert isinstance(found, Pipeline)
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    """A stopped pipeline `spending` of two pairs, in `.tandem/`, and no cluster."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    monkeypatch.chdir(tmp_path)
    directory = Directory(tmp_path / ".tandem" / "spending")
    pipeline = with_absolute_paths(parsed(), tmp_path, tmp_path)
    with locked(directory):
        prepare(directory, pipeline, tmp_path)
    write_functions(directory.intent.parent, first_functions(pipeline))
    write_intent(directory.intent, first_intent(pipeline))
    return directory


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The current kubeconfig names a cluster with the pipeline `spending` of two pairs."""
    stage = Stage()

    def connect(_: str | None = None, namespace: str | None = None) -> UserAccess:
        return stage.access._replace(namespace=namespace or KEY.namespace)

    monkeypatch.setattr(user, "connect_user", connect)
    monkeypatch.chdir(tmp_path)
    return stage


def manifest(content: dict[str, Any]) -> str:
    Path("changed.yaml").write_text(yaml.safe_dump(content))
    return "changed.yaml"


def requested(home: Directory) -> DirectoryRequest:
    (found,) = pending_requests(home)
    return found


def there(stage: Stage) -> Object:
    return stage.cluster.get(STREAM_PIPELINE, KEY.namespace, KEY.name)


# --- sizes --------------------------------------------------------------------------------------


def test_scaled_sizes_wait_for_the_next_start(home: Directory, capsys: Output) -> None:
    assert main(["scale", "spending", "pairs=3", "merges=2"]) == 0
    assert requested(home).values == {"spec.pairs.count": 3, "spec.merges.count": 2}
    assert not requested(home).from_file
    out = capsys.readouterr().out
    assert "spending: pairs 2 → 3, merges 1 → 2" in out
    assert "next start" in out


def test_applied_manifest_is_requested_with_all_that_can_change(home: Directory) -> None:
    file = manifest(document(pairs={"count": 4}, change={"maxSurge": 4}))
    assert main(["apply", file]) == 0
    values = requested(home).values
    assert (values["spec.pairs.count"], values["spec.splits.count"]) == (4, 2)
    assert values["spec.change"]["maxSurge"] == 4
    assert requested(home).from_file


def test_manifest_with_another_changed_field_is_not_applied(
    home: Directory, capsys: Output
) -> None:
    file = manifest(document(pairs={"count": 4}, epoch={"interval": "2s"}))
    assert main(["apply", file]) == 1
    assert "spec.epoch.interval: was '500ms', is '2s'" in capsys.readouterr().err
    assert pending_requests(home) == []


@pytest.mark.parametrize("command", [["apply", "changed.yaml"], ["scale", "pairs=2"]])
def test_nothing_is_requested_without_a_change(
    home: Directory, command: list[str], capsys: Output
) -> None:
    manifest(document())
    assert main(command) == 0
    assert "no change" in capsys.readouterr().out
    assert pending_requests(home) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pairs=0"], ["spec.pairs.count", "0"]),
        (["merges=100000"], ["spec.merges.count", "100000"]),
        (["splits=two"], ["splits", "'two'", "whole number"]),
        (["splits=-1"], ["splits", "'-1'"]),
        (["replicas=3"], ["'replicas'", "pairs, splits, merges"]),
        (["pairs=3", "pairs=4"], ["pairs", "twice"]),
        (["spending"], ["pairs=3"]),
        (["a", "b", "pairs=3"], ["'b'"]),
    ],
)
def test_impossible_sizes_are_refused(
    home: Directory, words: list[str], told: list[str], capsys: Output
) -> None:
    assert main(["scale", *words, "--dir", str(home.path)]) == 1
    said = capsys.readouterr().err
    assert all(part in said for part in told), said
    assert pending_requests(home) == []


@pytest.mark.usefixtures("home")
def test_stopped_pipeline_is_not_waited_for(capsys: Output) -> None:
    assert main(["scale", "pairs=3", "--wait"]) == 1
    assert "next start" in capsys.readouterr().out


def test_completed_pipeline_is_not_changed(home: Directory, capsys: Output) -> None:
    home.status.write_text(json.dumps(status_document(Status(phase=Phase.COMPLETED))))
    assert main(["scale", "pairs=3"]) == 1
    assert "has completed" in capsys.readouterr().err
    assert pending_requests(home) == []


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("words", [["apply", "missing.yaml"], ["scale", "nobody", "pairs=3"]])
def test_missing_file_or_pipeline_exits_with_2(words: list[str], capsys: Output) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"tandem {words[0]}: ")


def test_sizes_are_changed_on_a_cluster(stage: Stage, capsys: Output) -> None:
    assert main(["scale", "pairs=3", "splits=4"]) == 0
    spec = there(stage)["spec"]
    assert (spec["pairs"]["count"], spec["splits"]["count"]) == (3, 4)
    assert "spending: pairs 2 → 3" in capsys.readouterr().out


@pytest.mark.usefixtures("stage")
def test_manifest_is_applied_on_a_cluster(stage: Stage, capsys: Output) -> None:
    content = resource(pairs={"count": 3}, suspend=True)
    file = manifest({name: content[name] for name in ("apiVersion", "kind", "metadata", "spec")})
    assert main(["apply", file]) == 0
    spec = there(stage)["spec"]
    assert (spec["pairs"]["count"], spec["suspend"]) == (3, True)
    content["spec"]["spark"] = {"cores": 3}
    file = manifest({name: content[name] for name in ("apiVersion", "kind", "metadata", "spec")})
    assert main(["apply", file]) == 1
    assert "spec.spark.cores" in capsys.readouterr().err


# --- keys ---------------------------------------------------------------------------------------


def test_moved_keys_are_requested_by_their_hashes(home: Directory) -> None:
    assert main(["move", "alice", "bob", "--to", "pair-1"]) == 0
    moves = requested(home).moves
    assert [move.pair for move in moves] == ["pair-1", "pair-1"]
    assert len({move.key for move in moves}) == 2


def test_moved_keys_can_go_back(home: Directory) -> None:
    assert main(["move", "alice", "--back"]) == 0
    assert [move.pair for move in requested(home).moves] == [""]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["alice", "--to", "pair-7"], ["'pair-7'", "pair-0, pair-1"]),
        (["[1, 2]", "--to", "pair-1"], ["2 values", "user STRING"]),
        (["[[1]]", "--to", "pair-1"], ["plain values"]),
        (["[", "--to", "pair-1"], ["JSON list"]),
    ],
)
def test_impossible_moves_are_refused(
    home: Directory, words: list[str], told: list[str], capsys: Output
) -> None:
    assert main(["move", *words]) == 1
    said = capsys.readouterr().err
    assert all(part in said for part in told), said
    assert pending_requests(home) == []


def test_pipeline_that_never_ran_has_no_keys_to_move(home: Directory, capsys: Output) -> None:
    home.intent.unlink()
    assert main(["move", "alice", "--to", "pair-1"]) == 1
    assert "never run" in capsys.readouterr().err


def test_moves_on_a_cluster_are_an_annotation(stage: Stage) -> None:
    assert main(["move", "alice", "--to", "pair-1"]) == 0
    request = json.loads(there(stage)["metadata"]["annotations"][REQUEST_ANNOTATION])
    assert request["id"]
    assert [move["pair"] for move in request["moves"]] == ["pair-1"]


def test_move_takes_in_the_moves_of_a_request_that_waits(stage: Stage) -> None:
    assert main(["move", "alice", "bob", "--to", "pair-1"]) == 0
    assert main(["move", "alice", "--to", "pair-0"]) == 0
    request = json.loads(there(stage)["metadata"]["annotations"][REQUEST_ANNOTATION])
    assert [move["pair"] for move in request["moves"]] == ["pair-0", "pair-1"]


# --- the way back -------------------------------------------------------------------------------


def intent_after(*history: PastChange, pairs: int = 2) -> Intent:
    return first_intent(parsed(pairs={"count": pairs})).replace(history=history)


def past(before: int, after: int, *moves: KeyMove, abandoned: str = "") -> PastChange:
    return PastChange(2, before, after, 0, 0, moves, abandoned)


def changing(stage: ChangeStage, pairs: int = 3) -> GenerationChange:
    return GenerationChange(ChangeGoal(pairs), stage, 0, 0, pairs_before=2)


def test_rollback_goes_back_to_the_pairs_before_the_last_change() -> None:
    assert undoing(intent_after(past(1, 2), past(4, 1)), 2) == 1


def test_rollback_of_moves_returns_keys_to_where_they_were() -> None:
    last = past(2, 2, KeyMove(7, "pair-1"), KeyMove(8, "pair-1"), KeyMove(9, "pair-1"))
    earlier = past(2, 2, KeyMove(7, "pair-0"), KeyMove(8, "pair-9"))
    assert undoing(intent_after(last, earlier), 2) == (
        KeyMove(7, "pair-0"),
        KeyMove(8, ""),
        KeyMove(9, ""),
    )


def test_rollback_takes_back_what_is_under_way_or_was_given_up() -> None:
    given_up = intent_after(past(2, 2, abandoned="no room"))
    assert undoing(given_up.replace(change=changing(ChangeStage.ABANDONED)), 3) == 2
    building = intent_after(past(1, 2)).replace(change=changing(ChangeStage.BUILDING))
    assert undoing(building, 3) == 2
    moving = building.replace(change=changing(ChangeStage.BUILDING, pairs=2))
    with pytest.raises(ChangeRefused):
        undoing(moving, 2)


def test_rollback_without_a_change_is_refused() -> None:
    for history in ((), (past(2, 2, abandoned="no room"),)):
        with pytest.raises(ChangeRefused):
            undoing(intent_after(*history), 2)


def test_rollback_is_requested_as_another_change(home: Directory, capsys: Output) -> None:
    write_intent(home.intent, intent_after(past(1, 2)))
    assert main(["rollback"]) == 0
    assert requested(home).values == {"spec.pairs.count": 1}
    assert "pairs 2 → 1" in capsys.readouterr().out
