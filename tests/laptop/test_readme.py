"""The five commands of the README, as they stand there, in a folder of their own."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SET_UP = "make java"
"""Done before the tests run."""
STOP = "kill %1; wait %1"
SECONDS = 300


def commands() -> list[str]:
    """The commands of the first console block, without their comments."""
    block = re.search(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    lines = [line for line in block[1].splitlines() if line.startswith("$ ")]
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in lines]


def test_readme_commands_work_and_show_continued_results(tmp_path: Path) -> None:
    first, *others = commands()
    assert (first, len(others)) == (SET_UP, 4)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    with (tmp_path / "log").open("wb") as log:
        shell = subprocess.Popen(
            ["/bin/bash", "-m", "-c", "\n".join(["set -e", *others, STOP])],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            printed, _ = shell.communicate(timeout=SECONDS)
        finally:
            shell.kill()
    assert shell.returncode == 0, (tmp_path / "log").read_text()
    rows = [
        json.loads(line) for line in printed.decode().splitlines() if line.startswith('{"user"')
    ]
    assert [row["_pair"] for row in rows] == ["pair-0", "pair-0"]
    assert rows[0]["n"] < rows[1]["n"]
    assert rows[0]["_epoch"] < rows[1]["_epoch"]
