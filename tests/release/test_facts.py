"""Facts are those of the tree that they are asked of."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import yaml
from tests.release import facts
from tests.release.chart import CRD, PROJECT
from tests.release.crd_baseline import baseline_of, baseline_text, write_baseline

_SETTINGS = ("-c", "user.name=test", "-c", "user.email=test@example.com")
_GOLDEN = "tests/wire/golden/0.1.0/defaults.json"
_BASELINE = baseline_of("0.1.0")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one commit, of version 0.1.0."""
    files = {
        PROJECT: '[project]\nname = "tandem"\nversion = "0.1.0"\n',
        _GOLDEN: "{}\n",
        _BASELINE: "kind: CustomResourceDefinition\n",
        "core/tandem_core/__init__.py": "",
        "core/tandem_core/py.typed": "",
        "README.md": "make images TAG=0.1.0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def run(tree: Path, *arguments: str) -> None:
    facts.git(*_SETTINGS, *arguments, root=tree)


def commit(tree: Path) -> None:
    run(tree, "add", "--all")
    run(tree, "commit", "--quiet", "--allow-empty", "--message", "x")


def test_changed_files_include_edited_and_new_files(tree: Path) -> None:
    assert facts.changed_files(tree) == []
    (tree / "README.md").write_text("edited\n")
    (tree / "new.md").write_text("")
    assert facts.changed_files(tree) == ["README.md", "new.md"]


def test_tags_of_current_commit_are_ignored(tree: Path) -> None:
    for tag in ("v0.1.0", "v1", "other"):
        run(tree, "tag", tag)
    assert facts.earlier_tags(tree) == []
    commit(tree)
    assert facts.earlier_tags(tree) == ["v0.1.0"]


@pytest.mark.parametrize("file", [_GOLDEN, _BASELINE])
def test_frozen_files_are_compared_with_their_tag(tree: Path, file: str) -> None:
    (tree / file).write_text("before the tag\n")
    commit(tree)
    run(tree, "tag", "v0.1.0")
    assert facts.changed_frozen_files(tree) == []
    (tree / file).write_text("edited\n")
    assert facts.changed_frozen_files(tree) == [file]
    commit(tree)
    assert facts.changed_frozen_files(tree) == [file]
    (tree / file).unlink()
    assert facts.changed_frozen_files(tree) == [file]


def test_the_baseline_is_that_of_the_declared_version(tree: Path) -> None:
    (tree / PROJECT).write_text('[project]\nversion = "0.2.0"\n')
    assert facts.stored_baseline(tree) is None
    crd = "# Written by `make crd`.\napiVersion: v1\nkind: CustomResourceDefinition\n"
    (tree / CRD).parent.mkdir()
    (tree / CRD).write_text(crd)
    write_baseline(tree)
    assert facts.stored_baseline(tree) == baseline_text("0.2.0", crd)
    assert "make crd" not in baseline_text("0.2.0", crd)
    assert yaml.safe_load(baseline_text("0.2.0", crd)) == yaml.safe_load(crd)


def test_stored_golden_files_match_project_version(tree: Path) -> None:
    assert facts.stored_golden(tree) == {"defaults.json": "{}\n"}
    (tree / PROJECT).write_text('[project]\nversion = "0.2.0"\n')
    assert facts.stored_golden(tree) == {}


def test_module_paths_match_wheel_layout(tree: Path) -> None:
    assert facts.modules(tree) == ["tandem_core/__init__.py"]


def test_documents_are_found(tree: Path) -> None:
    assert facts.documents(tree) == {"README.md": "make images TAG=0.1.0\n"}


def test_command_runs_from_wheel(tmp_path: Path) -> None:
    path = tmp_path / "tandem-7.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tandem-7.0.0.dist-info/METADATA", "Name: tandem\nVersion: 7.0.0\n")
        archive.writestr("tandem_cli/__init__.py", "def main():\n    print('tandem 7.0.0')\n")
    wheel = facts.read_wheel(path)
    assert (wheel.version, wheel.command) == ("7.0.0", "tandem 7.0.0")
    assert "tandem_cli/__init__.py" in wheel.files


def test_failed_command_reports_its_output(tmp_path: Path) -> None:
    with pytest.raises(facts.GatheringFailed, match="not a git repository"):
        facts.git("status", root=tmp_path)
