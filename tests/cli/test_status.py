import argparse
import json
from pathlib import Path

import pytest

from tandem.local.store.directory import Directory
from tandem_cli import status as command
from tandem_core.model.pipeline import status_document
from tandem_core.model.states import ConditionStatus, ConditionType, Phase
from tandem_core.model.status import Condition, Counters, Status

WHY = "sink out cannot be read or written and is retried: /out cannot be used: [full]; make room"


def shown(
    status: Status, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """What `tandem status` prints of a pipeline that runs."""
    directory = Directory(home)
    directory.status.write_text(json.dumps(status_document(status)))
    directory.pipeline.write_text("{}")
    monkeypatch.setattr(command, "is_supervised", lambda _: True)
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    assert command.run(parser.parse_args(["status", "--dir", str(home)])) == command.FOUND
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("ready", "phase", "said"),
    [
        (ConditionStatus.FALSE, Phase.RUNNING, True),
        (ConditionStatus.TRUE, Phase.RUNNING, False),
        (ConditionStatus.FALSE, Phase.COMPLETED, False),
    ],
)
def test_unready_reason_is_printed(
    ready: ConditionStatus,
    phase: Phase,
    said: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    condition = Condition(
        type=ConditionType.READY,
        status=ready,
        reason="SinkFailed",
        message=WHY,
        last_transition_time="2024-01-01T00:00:00Z",
    )
    status = Status(phase=phase, conditions=(condition,))
    assert (WHY in shown(status, tmp_path, monkeypatch, capsys)) is said


@pytest.mark.parametrize("count", [0, 1234])
def test_dead_letters_are_printed_with_their_path(
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = Status(counters=Counters(dead_letters=count))
    printed = shown(status, tmp_path, monkeypatch, capsys)
    assert (f"1,234 (in {Directory(tmp_path).dead_letters})" in printed) is (count > 0)
