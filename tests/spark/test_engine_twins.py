"""Twins: the same epochs give the same rows, also when one begins from a copy of the other."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.harness import Replica, at, ms, pipeline, stream

from tandem_runtime.spark.state.checkpoint import (
    IncompleteCheckpoint,
    committed_epochs,
    link_tree,
    verify,
)

Make = Callable[..., Replica]


SUMS = pipeline(
    {
        "sql": "SELECT user, window.start AS began, sum(amount) AS total, count(*) AS n "
        "FROM payments GROUP BY user, window(at, '10 seconds')"
    },
    stream(
        "payments",
        "user STRING, amount BIGINT, at TIMESTAMP",
        "user",
        watermark={"column": "at", "delay": "2s"},
    ),
)
Rows = dict[str, list[tuple[object, ...]]]


def epoch(number: int) -> tuple[Rows, dict[str, int | None]]:
    """Five seconds of payments; of some epochs only half is there."""
    rows: list[tuple[object, ...]] = [
        (f"user-{index % 7}", index, at(number * 5 + index % 5))
        for index in range(20 if number % 3 else 3)
    ]
    return {"payments": rows}, {"payments": ms(number * 5 + 4 - 2)}


def test_twin_from_live_copy_gives_equal_results(replica: Make, tmp_path: Path) -> None:
    one = replica(SUMS)
    for number in range(1, 6):
        one.run(number, *epoch(number))
    one.begin(6, *epoch(6))
    link_tree(one.checkpoint, 5, 5, tmp_path / "copy")
    one.await_(lambda told: 6 in told.committed)
    verify(tmp_path / "copy", 5)

    twin = replica(SUMS, tmp_path / "copy")
    for number in (7, 8):
        one.run(number, *epoch(number))
    for number in (6, 7, 8):
        ours, theirs = one.told.outcomes[number], twin.run(number, *epoch(number))
        assert (ours.digest, ours.rows) == (theirs.digest, theirs.rows)
    assert any(one.told.outcomes[number].rows for number in (6, 7, 8))
    ids = {
        json.loads((tree / "metadata").read_text())["id"]
        for tree in (one.checkpoint, tmp_path / "copy")
    }
    assert len(ids) == 2


def test_every_epoch_of_range_can_be_restored_from_copy(replica: Make, tmp_path: Path) -> None:
    one = replica(SUMS)
    for number in range(1, 7):
        one.run(number, *epoch(number))
    one.stop()
    assert committed_epochs(one.checkpoint) == [1, 2, 3, 4, 5, 6]
    link_tree(one.checkpoint, 3, 5, tmp_path / "range")
    assert committed_epochs(tmp_path / "range") == [2, 3, 4, 5]
    for last in (3, 5):
        link_tree(tmp_path / "range", last, last, tmp_path / f"at-{last}")
        twin = replica(SUMS, tmp_path / f"at-{last}")
        theirs = twin.run(last + 1, *epoch(last + 1))
        assert theirs.digest == one.told.outcomes[last + 1].digest
        twin.stop()


def test_uncommitted_epoch_cannot_be_copied(replica: Make, tmp_path: Path) -> None:
    one = replica(SUMS)
    one.run(1, *epoch(1))
    with pytest.raises(IncompleteCheckpoint):
        link_tree(one.checkpoint, 1, 2, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_incomplete_copy_is_detected(replica: Make, tmp_path: Path) -> None:
    one = replica(SUMS)
    for number in (1, 2, 3):
        one.run(number, *epoch(number))
    one.stop()
    needed = (
        "state/0/1/2.delta",
        "state/0/_metadata/metadata",
        "offsets/1",
        "commits/2",
        "metadata",
    )
    for index, name in enumerate(needed):
        tree = tmp_path / f"copy-{index}"
        link_tree(one.checkpoint, 3, 3, tree)
        (tree / name).unlink()
        with pytest.raises(IncompleteCheckpoint):
            verify(tree, 3)


def test_digests_do_not_depend_on_row_order(replica: Make) -> None:
    plain = pipeline(
        {"sql": "SELECT * FROM things"},
        stream("things", "k STRING, n BIGINT, m MAP<STRING, INT>", "k"),
    )
    rows = [(f"k{index}", index, {"x": index}) for index in range(50)]
    one = replica(plain)
    digests = [
        one.run(number, {"things": given}).digest
        for number, given in enumerate(
            (rows, rows[::-1], [*rows[:-1], ("k49", 49, {"x": 50})], rows[:-1]), start=1
        )
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    assert all(0 <= digest < 2**62 for digest in digests)


def test_rows_of_two_streams_are_combined(replica: Make) -> None:
    both = pipeline(
        {
            "sql": "SELECT k, sum(n) AS total FROM "
            "(SELECT lk AS k, ln AS n FROM l UNION ALL SELECT rk, rn FROM r) GROUP BY k"
        },
        stream("l", "lk STRING, ln BIGINT", "lk"),
        stream("r", "rk STRING, rn BIGINT", "rk"),
        mode="update",
    )
    one = replica(both)
    assert one.run(1, {"l": [("a", 1), ("b", 2)], "r": [("a", 10)]}).rows == [("a", 11), ("b", 2)]
    assert one.run(2, {"r": [("b", 20)]}).rows == [("b", 22)]
    assert one.run(3, {"l": [("a", 1)]}).rows == [("a", 12)]


STATEFUL = """
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType


class Counter(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.n = handle.getValueState("n", StructType([StructField("n", LongType())]))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Any:
        before = self.n.get()[0] if self.n.exists() else 0
        now = before + sum(len(frame) for frame in rows)
        self.n.update((now,))
        yield pd.DataFrame({"user": [key[0]], "n": [now]})

    def close(self) -> None:
        pass


def build(streams):
    return streams["payments"].groupBy("user").transformWithStateInPandas(
        Counter(), "user STRING, n BIGINT", "Update", "None"
    )
"""


def test_twin_with_custom_state_gives_equal_results(replica: Make, tmp_path: Path) -> None:
    file = tmp_path / "query.py"
    file.write_text(STATEFUL)
    query = {"python": {"file": str(file), "function": "build"}}
    counts = pipeline(query, stream("payments", "user STRING", "user"), mode="update")
    one = replica(counts)
    rows: Rows = {"payments": [("a",), ("b",), ("a",)]}
    outcomes = [one.run(number, rows) for number in (1, 2, 3)]
    one.stop()
    link_tree(one.checkpoint, 2, 2, tmp_path / "copy")
    # Nothing in the copy may lean on where it came from.
    shutil.rmtree(one.checkpoint)
    twin = replica(counts, tmp_path / "copy")
    assert twin.run(3, rows).rows == outcomes[2].rows == [("a", 6), ("b", 3)]
