"""Rejected rows on disk: each once, whoever appends and whenever somebody dies."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough

from tandem_runtime.sources.base import Rejected
from tandem_runtime.sources.dead_letters import DeadLetters


def row(file: str, offset: int) -> Rejected:
    return Rejected(file, offset, "wrong", f"row {offset}")


def held(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def count_of(path: Path, partition: str = "payments/0") -> int:
    """What a process that starts now finds."""
    letters = DeadLetters(path, "payments")
    letters.catch_up()
    return letters.count(partition)


def test_no_file_is_created_before_first_rejected_row(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path / "dead-letter" / "payments.jsonl", "payments")
    letters.add("payments/0", ())
    assert list(tmp_path.iterdir()) == []
    assert letters.count("payments/0") == 0


def test_dead_letter_line_has_stream_partition_file_offset_reason_and_row(tmp_path: Path) -> None:
    path = tmp_path / "dead-letter" / "payments.jsonl"
    DeadLetters(path, "payments").add("payments/0", [Rejected("a.json", 7, "wrong", "é\n")])
    assert held(path) == [
        {
            "stream": "payments",
            "partition": "payments/0",
            "file": "a.json",
            "offset": 7,
            "reason": "wrong",
            "row": "é\n",
        }
    ]


def test_row_rejected_again_after_restart_is_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "payments.jsonl"
    DeadLetters(path, "payments").add("payments/0", [row("a", 1), row("a", 5)])
    letters = DeadLetters(path, "payments")
    letters.add("payments/0", [row("a", 5), row("a", 9), row("b", 0)])
    assert [(line["file"], line["offset"]) for line in held(path)] == [
        ("a", 1),
        ("a", 5),
        ("a", 9),
        ("b", 0),
    ]
    assert letters.count("payments/0") == 4


def test_partitions_are_counted_separately(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path / "payments.jsonl", "payments")
    letters.add("payments/0", [row("b", 5)])
    letters.add("payments/1", [row("a", 1)])
    assert (letters.count("payments/0"), letters.count("payments/1")) == (1, 1)


def test_rejected_file_is_stored_once_however_late(tmp_path: Path) -> None:
    path = tmp_path / "payments.jsonl"
    letters = DeadLetters(path, "payments")
    letters.add("payments/0", [row("z", 5), Rejected("a", None, "late")])
    DeadLetters(path, "payments").add("payments/0", [Rejected("a", None, "late")])
    assert [line["file"] for line in held(path)] == ["z", "a"]


def test_partial_line_of_crashed_process_is_tolerated(tmp_path: Path) -> None:
    path = tmp_path / "payments.jsonl"
    DeadLetters(path, "payments").add("payments/0", [row("a", 1)])
    with path.open("ab") as file:
        file.write(b'{"stream": "pay')
    letters = DeadLetters(path, "payments")
    letters.add("payments/0", [row("a", 2)])
    assert count_of(path) == letters.count("payments/0") == 2
    assert json.loads(path.read_bytes().splitlines()[-1])["offset"] == 2


def test_opening_dead_letters_reads_nothing(tmp_path: Path) -> None:
    """A process that starts has other things to do on its own thread."""
    unreadable = tmp_path
    letters = DeadLetters(unreadable, "payments")
    assert letters.count("payments/0") == 0
    with pytest.raises(IsADirectoryError):
        letters.catch_up()


def test_disk_use_is_bounded_and_only_old_lines_are_dropped(tmp_path: Path) -> None:  # [12]
    path = tmp_path / "payments.jsonl"
    DeadLetters(path, "payments", most=1000).add("payments/1", [row("b", 3)])
    for n in range(100):
        DeadLetters(path, "payments", most=1000).add("payments/0", [row("a", n)])
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, f"{path.name}.1"]
    assert all(each.stat().st_size < 1500 for each in tmp_path.iterdir())
    assert (count_of(path), count_of(path, "payments/1")) == (100, 1)
    first, *rest = held(path)
    assert sorted(first) == ["before", "stream"]
    older = held(path.with_name(f"{path.name}.1"))[1:]
    kept = [line["offset"] for line in (*older, *rest)]
    assert kept == list(range(100 - len(kept), 100))
    # Also what was put aside is known not to be new.
    DeadLetters(path, "payments").add("payments/1", [row("b", 3)])
    assert held(path) == [first, *rest]


def test_rotation_by_another_process_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "payments.jsonl"
    frozen = DeadLetters(path, "payments", most=1000)
    frozen.add("payments/0", [row("a", 0)])
    for n in range(1, 50):
        DeadLetters(path, "payments", most=1000).add("payments/0", [row("a", n)])
    frozen.add("payments/0", [row("a", n) for n in range(1, 51)])
    assert frozen.count("payments/0") == count_of(path) == 51
    assert held(path)[-1]["offset"] == 50


def test_removed_file_is_recreated(tmp_path: Path) -> None:
    path = tmp_path / "payments.jsonl"
    letters = DeadLetters(path, "payments", most=100)
    letters.add("payments/0", [row("a", 0)])
    path.unlink()
    letters.add("payments/0", [row("a", 1)])
    assert [line["offset"] for line in held(path)] == [1]


def test_readers_of_several_partitions_append_concurrently(tmp_path: Path) -> None:
    path = tmp_path / "payments.jsonl"
    letters = DeadLetters(path, "payments", most=5000)
    partitions = [f"payments/{n}" for n in range(4)]

    def read(partition: str) -> None:
        for n in range(100):
            letters.add(partition, [row("a", n)])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(partitions)) as threads:
            list(threads.map(read, partitions))
    finally:
        sys.setswitchinterval(before)
    assert [letters.count(partition) for partition in partitions] == [100] * 4
    assert [count_of(path, partition) for partition in partitions] == [100] * 4


@thorough(100)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=20))
def test_concurrent_readers_of_same_rows_store_each_row_once(
    tmp_path_factory: Any, steps: list[tuple[int, int]]
) -> None:
    """Readers go over the same rows at different speeds, as zombies and successors do."""
    path = tmp_path_factory.mktemp("letters") / "payments.jsonl"
    readers = [DeadLetters(path, "payments") for _ in range(3)]
    progress = [0, 0, 0]
    for reader, count in steps:
        first = progress[reader]
        readers[reader].add("payments/0", [row("a", n) for n in range(first, first + count)])
        progress[reader] += count
    expected = list(range(max(progress)))
    assert [line["offset"] for line in (held(path) if expected else [])] == expected
