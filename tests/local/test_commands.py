"""The commands as typed; members are stubs or do not start at all."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.local.harness import Run, wait_for
from tests.local.pipelines import DOCUMENT, pipeline
from tests.local.stub_run import PROGRAMS, assign, check

from tandem.local.processes.commands import member_command
from tandem.local.run import Programs
from tandem.local.store.directory import Directory, locked
from tandem.local.store.manifest import prepare
from tandem.policy.snapshot import MemberPlace
from tandem_cli import main
from tandem_cli.run import execute, rows_delivered
from tandem_core.model.pipeline import parse_status, status_document
from tandem_core.model.states import ConditionStatus, ConditionType, MemberKind, MemberState, Phase
from tandem_core.model.status import Condition, Counters, MemberStatus, Status

STATUS = Status(
    phase=Phase.RUNNING,
    conditions=(
        Condition(
            type=ConditionType.READY,
            status=ConditionStatus.TRUE,
            reason="Running",
            last_transition_time="2024-01-01T00:00:00Z",
        ),
    ),
    counters=Counters(rows_in=1234),
    members=(
        MemberStatus(name="split-0", kind=MemberKind.SPLIT, pid=99, state=MemberState.RUNNING),
        MemberStatus(name="merge-0", kind=MemberKind.MERGE, pid=98, state=MemberState.STANDBY),
    ),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(home: Path, status: Status) -> Directory:
    directory = Directory(home / ".tandem" / "spending")
    with locked(directory):
        prepare(directory, pipeline(), home)
    directory.status.write_text(json.dumps(status_document(status)))
    return directory


def test_each_member_kind_has_its_command_line(home: Path) -> None:
    def words(place: MemberPlace) -> list[str]:
        return member_command(home, place, "v")[2:]

    common = ["--dir", str(home), "--name", "n", "--volume", "v"]
    services = "tandem_runtime.services"
    assert words(MemberPlace("n", MemberKind.SPLIT)) == [f"{services}.split", *common]
    assert words(MemberPlace("n", MemberKind.MERGE, slot=1)) == [
        f"{services}.merge",
        *common,
        "--slot",
        "1",
    ]
    assert words(MemberPlace("n", MemberKind.REPLICA, pair="pair-0")) == [
        f"{services}.replica",
        *common,
        "--pair",
        "pair-0",
    ]
    assert words(MemberPlace("n", MemberKind.SPARE)) == [f"{services}.replica", *common, "--spare"]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("nonsense", 1, "apiVersion"),
        (DOCUMENT.replace("[user]", "[usr]"), 1, "spec.streams[0].key[0]"),
        (f"{DOCUMENT}---\n{DOCUMENT.replace('spending', 'other')}", 1, "2 pipelines"),
        (DOCUMENT.replace("spec:\n", "spec:\n  suspend: true\n"), 1, "spec.suspend"),
    ],
)
def test_invalid_manifest_creates_no_directory(
    home: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    (home / "pipeline.yaml").write_text(text)
    assert main(["run", "pipeline.yaml"]) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
    assert not (home / ".tandem").exists()


def test_unreadable_manifest_exits_with_usage_error(home: Path) -> None:
    assert main(["run", str(home / "missing.yaml")]) == 2
    with pytest.raises(SystemExit):
        main(["run", "x.yaml", "--for", "soon"])


def test_refused_query_is_reported_and_new_directory_removed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = pipeline(query={"sql": "SELECT rand() FROM payments"})
    directory = Directory(home / "state")
    assert execute(asked, home, directory, PROGRAMS) == 3
    assert "Random: rand()" in (said := capsys.readouterr().err)
    assert "do without" in said
    assert not directory.path.exists()


def test_foreign_sink_is_refused_before_directory_is_created(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owned, free = home / "owned", home / "free"
    (owned / "_tandem").mkdir(parents=True)
    (owned / "_tandem" / "uid").write_text("another")
    sinks = [
        {"name": name, "files": {"path": str(path), "format": "json"}}
        for name, path in (("a", free), ("b", owned))
    ]
    assert execute(pipeline(sinks=sinks), home, Directory(home / "state"), PROGRAMS) == 3
    assert f"ForeignSink: {owned}" in capsys.readouterr().err
    assert not free.exists()
    assert not (home / "state").exists()


def test_failed_query_check_creates_no_directory(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = pipeline(query={"sql": "SELECT crash FROM payments"})
    assert execute(asked, home, Directory(home / "state"), PROGRAMS) == 1
    assert "no Java was found" in capsys.readouterr().err
    assert not (home / "state").exists()


def test_query_warnings_are_printed_and_crashing_members_retried(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = pipeline(query={"sql": "SELECT first(user) FROM payments"})
    crash = [sys.executable, "-c", "raise SystemExit(1)"]
    crashing = Programs(lambda *_: crash, assign, check, rows_delivered)
    directory = Directory(home / "state")
    assert execute(asked, home, directory, crashing, seconds=1.0) == 0
    assert "warning: Order: first()" in capsys.readouterr().err
    status = parse_status(json.loads(directory.status.read_text()))
    assert isinstance(status, Status)
    assert status.phase is Phase.STARTING


def test_directory_with_broken_process_record_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = made(home, STATUS)
    directory.members.write_text("{")
    assert execute(pipeline(), home, directory, PROGRAMS, seconds=1.0) == 1
    assert str(directory.members) in capsys.readouterr().err


def test_status_of_stopped_pipeline_shows_no_processes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(home, STATUS)
    for arguments in ([], ["spending"], ["--dir", str(home / ".tandem" / "spending")]):
        assert main(["status", *arguments, "-o", "json"]) == 0
        captured = capsys.readouterr()
        assert "is not running" in captured.err
        status = parse_status(json.loads(captured.out))
        assert isinstance(status, Status)
        assert {member.state for member in status.members} == {MemberState.GONE}
        assert {member.pid for member in status.members} == {None}
        assert status.conditions[0].status is ConditionStatus.FALSE
        assert status.counters.rows_in == 1234


def test_status_of_running_pipeline_is_printed_as_recorded(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = made(home, STATUS)
    with locked(directory):
        assert main(["status", "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == status_document(STATUS)
        assert main(["status"]) == 0
    captured = capsys.readouterr()
    assert "split-0" in captured.out
    assert "1,234" in captured.out
    assert captured.err == ""


def test_commands_without_pipeline_fail(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 1
    assert main(["kill", "lead"]) == 1
    made(home, STATUS)
    assert main(["pause", "split-0"]) == 1
    assert "no pipeline has run" in capsys.readouterr().err


def test_full_disk_does_not_stop_supervision(start: Callable[..., Run]) -> None:
    """What cannot be written is tried again; meanwhile members are still looked after."""
    run = start()
    run.wait_whole()
    pid = run.roll().entry("merge-1").pid
    assert pid is not None
    run.directory.status.unlink()
    # A directory cannot be replaced by a file, which fails like a full disk does.
    run.directory.status.mkdir()
    run.order("merge-1", "exit 1")
    wait_for(lambda: run.roll().entry("merge-1").pid not in {None, pid})
    wait_for(lambda: "retrying" in run.log.read_text())
    run.directory.status.rmdir()
    run.wait_whole()
