"""Rows and files that are not what they should be."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.laptop.harness import Document, Run
from tests.laptop.output import Output

LONGEST_LINE = 8 * 2**20
SLOWLY = 400
NEVER_READ_WHOLE = 200 * SLOWLY
"""Rows of a file that vanishes long before it is read, also where drivers take long to start."""


def manifest(**stream: Any) -> Document:
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "hostile"},
        "spec": {
            # Far less than one of the rows: a bound admits one item when nothing else is there.
            "epoch": {"maxBytes": "64Ki"},
            "streams": [
                {
                    "name": "payments",
                    "schema": "user STRING, amount BIGINT",
                    "key": ["user"],
                    "source": {
                        "files": {
                            "path": "data",
                            "format": "json",
                            "bounded": True,
                            "rowsPerSecond": SLOWLY,
                        }
                    },
                    **stream,
                }
            ],
            "query": {"sql": "SELECT user, amount FROM payments", "outputMode": "append"},
            "pairs": {"count": 1, "replicas": 1},
            "sinks": [{"name": "out", "files": {"path": "out", "format": "json"}}],
        },
    }


def line(user: str, amount: object) -> str:
    return json.dumps({"user": user, "amount": amount}) + "\n"


GOOD = [("ann", 1), ("bob", 2)]
LARGE = ("x" * 2**20, 3)
BAD_LINES = [
    b'{"user": "broken", "amount": 1\n',
    b"no JSON at all\n",
    b'["an", "array"]\n',
    b'{"user": "cut \xff\xfe", "amount": 1}\n',
    line("wrong type", "many").encode(),
    line("too large", 2**64).encode(),
    line("y" * (LONGEST_LINE + 1), 4).encode(),
]


def write_data(directory: Path, vanishing: list[tuple[str, int]]) -> None:
    directory.mkdir()
    first = [line(*row).encode() for row in GOOD]
    mixed = [first[0], *BAD_LINES, first[1], line(*LARGE).encode()]
    (directory / "1-mixed.json").write_bytes(b"".join(mixed))
    (directory / "2-empty.json").touch()
    (directory / "3-vanishing.json").write_text("".join(line(*row) for row in vanishing))
    (directory / "4-last.json").write_text(line("zoe", 9))


def test_bad_rows_become_dead_letters_and_others_are_delivered(tmp_path: Path) -> None:
    vanishing = [(f"user-{number}", number) for number in range(NEVER_READ_WHOLE)]
    data = tmp_path / "data"
    write_data(data, vanishing)
    output = Output(tmp_path / "out")
    with Run(tmp_path, manifest()) as run:
        run.until(lambda: output.last() >= 4, 120, "some rows are delivered")
        (data / "3-vanishing.json").unlink()
        # Whoever reads the file has it open. It is gone for those who come after.
        for split in ("split-0", "split-1"):
            run.signal(split, signal.SIGKILL)
        run.completes(120)
    delivered = [(row["user"], row["amount"]) for row in output.rows()]
    letters = dead_letters(run)
    gone = [letter for letter in letters if letter["file"] == "3-vanishing.json"]
    assert [letter["offset"] for letter in gone] == [None]
    assert len(letters) == len(BAD_LINES) + len(gone)
    assert run.status()["counters"]["deadLetters"] == len(letters)
    assert all(letter["reason"] for letter in letters)
    read = [row for row in delivered if row[0].startswith("user-")]
    assert 0 < len(read) < len(vanishing)
    assert sorted(read) == sorted(vanishing[: len(read)])
    others = [row for row in delivered if not row[0].startswith("user-")]
    assert sorted(others) == sorted([*GOOD, LARGE, ("zoe", 9)])


@pytest.mark.timeout(120)
def test_on_error_fail_stops_run_with_file_and_reason(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "1.json").write_text(line("ann", 1) + line("bob", "many"))
    with Run(tmp_path, manifest(onError="fail")) as run:
        assert run.supervisor.wait(90) == 3
        assert run.processes() == []
    said = run.said.read_text()
    assert "1.json" in said
    assert "many" in said


def dead_letters(run: Run) -> list[Document]:
    path = run.directory.path / "dead-letter" / "payments.jsonl"
    return [json.loads(each) for each in path.read_text().splitlines()]
