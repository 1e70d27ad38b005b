"""Facts are those of the tree that they are asked of."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tests.release import facts
from tests.release.chart import PROJECT

_SETTINGS = ("-c", "user.name=test", "-c", "user.email=test@example.com")
_GOLDEN = "tests/wire/golden/0.1.0/defaults.json"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one commit, of version 0.1.0."""
    files = {
        PROJECT: '[project]\nname = "tandem"\nversion = "0.1.0"\n',
        _GOLDEN: "{}\n",
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


def test_changed_files_are_edited_and_new_ones(tree: Path) -> None:
    assert facts.changed_files(tree) == []
    (tree / "README.md").write_text("edited\n")
    (tree / "new.md").write_text("")
    assert facts.changed_files(tree) == ["README.md", "new.md"]


def test_tags_of_this_commit_do_not_count(tree: Path) -> None:
    for tag in ("v0.1.0", "v1", "other"):
        run(tree, "tag", tag)
    assert facts.earlier_tags(tree) == []
    commit(tree)
    assert facts.earlier_tags(tree) == ["v0.1.0"]


def test_golden_files_are_compared_with_their_tag(tree: Path) -> None:
    run(tree, "tag", "v0.1.0")
    assert facts.changed_golden_files(tree) == []
    (tree / _GOLDEN).write_text('{"a": 1}\n')
    assert facts.changed_golden_files(tree) == [_GOLDEN]
    commit(tree)
    assert facts.changed_golden_files(tree) == [_GOLDEN]


def test_golden_files_are_those_of_the_version(tree: Path) -> None:
    assert facts.stored_golden(tree) == {"defaults.json": "{}\n"}
    (tree / PROJECT).write_text('[project]\nversion = "0.2.0"\n')
    assert facts.stored_golden(tree) == {}


def test_modules_are_named_as_in_a_wheel(tree: Path) -> None:
    assert facts.modules(tree) == ["tandem_core/__init__.py"]


def test_documents_are_found(tree: Path) -> None:
    assert facts.documents(tree) == {"README.md": "make images TAG=0.1.0\n"}


def test_the_command_that_runs_is_the_wheels(tmp_path: Path) -> None:
    path = tmp_path / "tandem-7.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tandem-7.0.0.dist-info/METADATA", "Name: tandem\nVersion: 7.0.0\n")
        archive.writestr("tandem_cli/__init__.py", "def main():\n    print('tandem 7.0.0')\n")
    wheel = facts.read_wheel(path)
    assert (wheel.version, wheel.command) == ("7.0.0", "tandem 7.0.0")
    assert "tandem_cli/__init__.py" in wheel.files


def test_a_command_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(facts.GatheringFailed, match="not a git repository"):
        facts.git("status", root=tmp_path)
