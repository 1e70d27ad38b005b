import signal
from pathlib import Path

import pytest
from tests.local.pipelines import pipeline

from tandem.local.processes.process_record import ProcessEntry, ProcessRecord, from_json, to_json
from tandem.local.store.directory import Directory, locked
from tandem.local.store.lookup import directory_of, name_of, signal_member
from tandem.local.store.manifest import prepare
from tandem.output.member_table import Missing
from tandem_core.model.states import PairState
from tandem_core.model.status import PairStatus, Status

STATUS = Status(
    pairs=(
        PairStatus(name="pair-0", state=PairState.PAIRED, primary="pair-0-b", secondary="pair-0-a"),
        PairStatus(name="pair-1", state=PairState.STARTING),
    )
)
ROLL = ProcessRecord(
    {"split-0": ProcessEntry("v", 7), "pair-0-a": ProcessEntry("w"), "pair-0-b": ProcessEntry("x")},
    (),
    "split-0",
)


def make(home: Path, name: str) -> Directory:
    directory = Directory(home / name)
    with locked(directory):
        prepare(directory, pipeline(), home)
    return directory


def test_single_pipeline_needs_no_name(tmp_path: Path) -> None:
    with pytest.raises(Missing):
        directory_of(None, None, tmp_path)
    first = make(tmp_path, "first")
    assert directory_of(None, None, tmp_path) == first
    second = make(tmp_path, "second")
    with pytest.raises(Missing, match="first, second"):
        directory_of(None, None, tmp_path)
    assert directory_of("second", None, tmp_path) == second
    assert directory_of(None, str(tmp_path / "first"), tmp_path) == first
    with pytest.raises(Missing):
        directory_of("third", None, tmp_path)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("pair-0/primary", "pair-0-b"),
        ("pair-0/secondary", "pair-0-a"),
        ("pair-0-a", "pair-0-a"),
        ("split-0", "split-0"),
        ("lead", "split-0"),
    ],
)
def test_target_is_role_or_name(target: str, name: str) -> None:
    assert name_of(target, STATUS, ROLL) == name


@pytest.mark.parametrize("target", ["pair-1/primary", "pair-0/third", "pair-9/primary", "x", ""])
def test_unknown_target_error_lists_known_targets(target: str) -> None:
    with pytest.raises(Missing, match="pair-0/primary"):
        name_of(target, STATUS, ROLL)


def test_reused_pid_is_not_signalled(tmp_path: Path) -> None:
    directory = make(tmp_path, "state")
    with pytest.raises(Missing):
        signal_member(directory, "split-0", signal.SIGKILL)
    directory.members.write_text(to_json(ProcessRecord({"split-0": ProcessEntry("v", 1)})))
    with pytest.raises(Missing, match="is not running"):
        signal_member(directory, "split-0", signal.SIGKILL)


def test_process_record_round_trips() -> None:
    roll = ROLL.giving_up("old").on_volume("pair-0-a", "new").running("pair-0-a", 9)
    assert from_json(to_json(roll)) == roll
    assert roll.removed("old").given_up == ()
    assert {entry.pid for entry in roll.at_rest().entries.values()} == {None}
    for broken in ("", "[]", "{}", '{"members": {"a": 1}, "givenUp": [], "lead": null}'):
        with pytest.raises(ValueError, match=r"."):
            from_json(broken)
