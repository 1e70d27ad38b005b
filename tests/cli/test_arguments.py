"""What the command line refuses before anything is done."""

import pytest

from tandem_cli import COMMANDS, main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "x.yaml", "--for", "0s"], "above 0"),
        (["run", "x.yaml", "--for=-5s"], "above 0"),
        (["run", "x.yaml", "--for", "soon"], "above 0"),
        (["simulate", "--only", "-1"], "--only"),
        (["simulate", "--only", "first"], "--only"),
        (["simulate", "--schedules", "0"], "--schedules"),
        (["simulate", "--jobs", "0"], "--jobs"),
    ],
)
def test_invalid_argument_values_are_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert told in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "Exit code" in " ".join(capsys.readouterr().out.split())
