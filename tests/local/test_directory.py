import json
import stat
from pathlib import Path

import pytest
from tests.local.pipelines import pipeline

from tandem.local.store.diff import Change, changed_fields
from tandem.local.store.directory import (
    Directory,
    DirectoryInUse,
    DirectoryRefused,
    give_up_volume,
    is_completed,
    is_supervised,
    locked,
)
from tandem.local.store.manifest import prepare, read_manifest, write_manifest
from tandem.local.store.paths import with_absolute_paths
from tandem.validation.unsupported import unsupported, unsupported_here
from tandem_core.model.fields.problems import ABSENT, Fault, path_text
from tandem_core.model.pipeline import parse_pipeline, status_document
from tandem_core.model.spec import FilesSink, FilesSource, PythonQuery
from tandem_core.model.states import Phase
from tandem_core.model.status import Status


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    made = Directory(tmp_path / "state")
    with locked(made):
        assert prepare(made, pipeline(), tmp_path)
    return made


def test_new_directory_has_uid_token_and_manifest(directory: Directory) -> None:
    assert len(directory.uid()) == 32
    assert len(directory.token()) >= 32
    for secret in (directory.uid_file, directory.token_file):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    kept = json.loads(directory.pipeline.read_text())
    assert parse_pipeline(kept["manifest"]) == pipeline()
    assert kept["base"] == str(directory.path.parent)


def test_same_manifest_reuses_its_directory(directory: Directory, tmp_path: Path) -> None:
    uid, token = directory.uid(), directory.token()
    assert not prepare(directory, pipeline(), tmp_path)
    assert (directory.uid(), directory.token()) == (uid, token)


def test_manifest_from_before_a_field_was_added_is_the_same(
    directory: Directory, tmp_path: Path
) -> None:
    written = json.loads(directory.pipeline.read_text())
    del written["manifest"]["spec"]["change"]
    directory.pipeline.write_text(json.dumps(written))
    assert not prepare(directory, pipeline(), tmp_path)


def test_changed_manifest_is_refused_with_changed_fields(
    directory: Directory, tmp_path: Path
) -> None:
    changed = pipeline(query={"sql": "SELECT 1 FROM payments"}, pairs={"count": 3, "replicas": 1})
    with pytest.raises(DirectoryRefused) as refusal:
        prepare(directory, changed, tmp_path)
    said = str(refusal.value)
    assert "spec.query.sql: was 'SELECT user FROM payments', is 'SELECT 1 FROM payments'" in said
    assert "spec.pairs.replicas: was 2, is 1" in said
    assert "spec.pairs.count" not in said
    assert "--dir" in said
    assert read_manifest(directory).generation == 1


def counts(directory: Directory) -> tuple[int, int, int, int]:
    stored = read_manifest(directory)
    spec = stored.pipeline().spec
    return stored.generation, spec.pairs.count, spec.splits.count, spec.merges.count


def test_changed_counts_are_taken_and_raise_the_generation(
    directory: Directory, tmp_path: Path
) -> None:
    assert counts(directory) == (1, 2, 2, 1)
    assert not prepare(directory, pipeline(pairs={"count": 3}, splits={"count": 3}), tmp_path)
    assert counts(directory) == (2, 3, 3, 1)
    assert not prepare(directory, pipeline(pairs={"count": 3}, splits={"count": 3}), tmp_path)
    assert counts(directory) == (2, 3, 3, 1)


def test_same_file_changes_nothing_back_after_a_change_by_hand(
    directory: Directory, tmp_path: Path
) -> None:
    scaled = read_manifest(directory).with_values({"spec.pairs.count": 4})
    write_manifest(directory, scaled)
    assert not prepare(directory, pipeline(), tmp_path)
    assert counts(directory) == (2, 4, 2, 1)
    # The file has changed in another count: only that one follows it.
    assert not prepare(directory, pipeline(merges={"count": 2}), tmp_path)
    assert counts(directory) == (3, 4, 2, 2)
    assert not prepare(directory, pipeline(pairs={"count": 3}, merges={"count": 2}), tmp_path)
    assert counts(directory) == (4, 3, 2, 2)


def test_manifest_of_an_older_version_is_its_first_generation(
    directory: Directory, tmp_path: Path
) -> None:
    content = json.loads(directory.pipeline.read_text())
    older = {name: content[name] for name in ("manifest", "base")}
    directory.pipeline.write_text(json.dumps(older))
    assert counts(directory) == (1, 2, 2, 1)
    prepare(directory, pipeline(pairs={"count": 1}), tmp_path)
    assert counts(directory) == (2, 1, 2, 1)


def test_invalid_value_names_field_and_value(directory: Directory) -> None:
    changed = read_manifest(directory).with_values({"spec.merges.count": 0})
    with pytest.raises(DirectoryRefused, match=r"spec\.merges\.count: 0"):
        changed.pipeline()


def test_interrupted_preparation_starts_over(directory: Directory) -> None:
    directory.pipeline.unlink()
    uid = directory.uid()
    assert prepare(directory, pipeline(), directory.path)
    assert directory.uid() != uid


def test_foreign_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(DirectoryRefused, match=r"thesis\.tex"):
        prepare(Directory(tmp_path), pipeline(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryRefused), locked(Directory(tmp_path / "file")):
        pass


def test_directory_lock_admits_one_supervisor(directory: Directory) -> None:
    assert not is_supervised(directory)
    with locked(directory):
        assert is_supervised(directory)
        with pytest.raises(DirectoryInUse), locked(directory):
            pass
    assert not is_supervised(directory)
    assert not is_supervised(Directory(directory.path / "nowhere"))


def test_completed_status_marks_directory_as_completed(directory: Directory) -> None:
    assert not is_completed(directory)
    for phase, completed in ((Phase.RUNNING, False), (Phase.COMPLETED, True)):
        directory.status.write_text(json.dumps(status_document(Status(phase=phase))))
        assert is_completed(directory) is completed
    directory.status.write_text("{")
    assert not is_completed(directory)


def test_revoking_volume_leaves_mark_and_is_idempotent(directory: Directory) -> None:
    directory.volume("v").mkdir()
    directory.card_of("v").write_text("{}")
    for _ in range(2):
        give_up_volume(directory, "v")
        assert directory.gone_mark("v").exists()
        assert not directory.volume("v").exists()
        assert not directory.card_of("v").exists()


def test_changed_fields_are_reported_at_deepest_path() -> None:
    before = {"a": {"b": [1, 2]}, "c": 1, "d": [1]}
    after = {"a": {"b": [1, 3]}, "d": [1, 2], "e": None}
    assert changed_fields(before, after) == [
        Change(("a", "b", 1), 2, 3),
        Change(("c",), 1, ABSENT),
        Change(("d",), [1], [1, 2]),
        Change(("e",), ABSENT, None),
    ]
    assert changed_fields(before, before) == []


def test_row_paths_resolve_to_cwd_and_query_paths_to_manifest() -> None:
    python = {"python": {"file": "query.py", "function": "build"}}
    absolute = with_absolute_paths(pipeline(query=python), Path("/here"), Path("/manifests"))
    source, sink = absolute.spec.streams[0].source, absolute.spec.sinks[0].target
    assert isinstance(source, FilesSource)
    assert isinstance(sink, FilesSink)
    assert isinstance(absolute.spec.query.program, PythonQuery)
    assert source.path == "/here/data/payments"
    assert sink.path == "/here/out/totals"
    assert absolute.spec.query.program.file == "/manifests/query.py"
    assert with_absolute_paths(absolute, Path("/other"), Path("/other")) == absolute


def test_fields_unsupported_on_one_machine_are_reported() -> None:
    stream = {
        "name": "payments",
        "schema": "user STRING",
        "key": ["user"],
        "source": {"http": {}},
    }
    sinks = [{"name": "out", "http": {"url": "http://localhost/"}}]
    asked = pipeline(streams=[stream], sinks=sinks, suspend=True)
    told = [*unsupported(asked), *unsupported_here(asked)]
    assert [(path_text(each.path), each.value) for each in told] == [
        ("spec.streams[0].source", "http"),
        ("spec.sinks[0]", "http"),
        ("spec.suspend", True),
    ]
    assert {each.fault for each in told} == {Fault.UNSUPPORTED}
    assert [*unsupported(pipeline()), *unsupported_here(pipeline())] == []
