"""What `tandem run` says at the end."""

from pathlib import Path

import pytest

from tandem.local.shutdown import End, EndReason
from tandem.local.store.directory import Directory
from tandem_cli.run import _report
from tandem_core.model.states import ConditionStatus, ConditionType
from tandem_core.model.status import Condition, Status


def lost(holds: ConditionStatus) -> Status:
    said = Condition(
        type=ConditionType.DATA_LOST,
        status=holds,
        reason="Lost",
        message="pair pair-0: nobody has its state",
        last_transition_time="2026-01-01T00:00:00Z",
    )
    return Status(conditions=(said,))


@pytest.mark.parametrize("why", [EndReason.ASKED, EndReason.COMPLETED])
def test_run_with_data_loss_exits_with_error(
    why: EndReason, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = Directory(tmp_path)
    assert _report(End(why, lost(ConditionStatus.FALSE)), directory) == 0
    assert "nobody has its state" not in capsys.readouterr().err
    assert _report(End(why, lost(ConditionStatus.TRUE)), directory) == 3
    assert "nobody has its state" in capsys.readouterr().err
