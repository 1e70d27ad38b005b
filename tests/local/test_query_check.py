import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.local.pipelines import pipeline
from tests.local.stub_run import check

from tandem.local.query_check import CheckFailed, Findings, check_query
from tandem.local.store.directory import Directory, locked
from tandem.local.store.manifest import prepare
from tandem.local.store.paths import with_absolute_paths

Checked = Callable[[str], Findings]


@pytest.fixture
def checked(tmp_path: Path) -> Checked:
    """Checks a query whose file has this content."""
    file = tmp_path / "query.py"
    python = {"python": {"file": str(file), "function": "build"}}
    asked = with_absolute_paths(pipeline(query=python), tmp_path, tmp_path)
    directory = Directory(tmp_path / "state")
    with locked(directory):
        prepare(directory, asked, tmp_path)

    def answer(text: str) -> Findings:
        file.write_text(text)
        return check_query(directory, asked, check)

    return answer


def test_accepted_query_is_checked_and_warned_once(checked: Checked) -> None:
    assert [each.reason for each in checked("first").warnings] == ["Order"]
    assert checked("first") == Findings()


def test_refused_query_is_checked_again(checked: Checked) -> None:
    for _ in range(2):
        (complaint,) = checked("rand").refused
        assert (complaint.reason, complaint.message) == ("Random", "rand()")
        assert complaint.hint == "do without"
    assert not checked("good").refused


def test_query_file_may_change_if_plan_is_equal(checked: Checked) -> None:
    checked("count")
    assert checked("# more readable\ncount") == Findings()
    (complaint,) = checked("sum").refused
    assert complaint.reason == "QueryChanged"
    assert "--dir" in complaint.hint
    assert checked("count") == Findings()


def test_crashed_query_check_fails(checked: Checked, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="no Java was found"):
        checked("crash")
    (tmp_path / "talks.py").write_text("print('hello')")
    with pytest.raises(CheckFailed, match="hello"):
        check_query(
            Directory(tmp_path / "state"),
            pipeline(),
            lambda _: [sys.executable, str(tmp_path / "talks.py")],
        )
