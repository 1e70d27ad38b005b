"""The demonstration must see what it says is not there."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from demo.changes import Resize
from demo.recount import longest_gap, recount
from demo.report import Findings, Gap, gaps_of

PAYMENTS = pa.table({"user": ["ann", "bob", "ann", "ann"], "amount": [1, 2, 3, 4]})
RIGHT = [("ann", 2, 4, 1), ("bob", 1, 2, 1), ("ann", 3, 8, 2)]


def delivered(directory: Path, rows: list[tuple[str, int, int, int]]) -> Path:
    """Results as a sink leaves them: user, count, sum, epoch."""
    for epoch in {row[3] for row in rows}:
        user, n, total, epochs = zip(*[row for row in rows if row[3] == epoch], strict=True)
        table: Any = pa.table({"user": user, "n": n, "total": total, "_epoch": epochs})
        pq.write_table(table, directory / f"{epoch:012}.parquet")
    return directory


def test_recount_accepts_correct_output(tmp_path: Path) -> None:
    found = recount(PAYMENTS, delivered(tmp_path, RIGHT))
    assert found.good
    assert (found.users, found.agreeing, found.results) == (2, 2, 3)


@pytest.mark.parametrize(
    ("rows", "lost", "doubled", "repeated"),
    [
        (RIGHT[:2], 1, 0, 0),
        ([RIGHT[0], RIGHT[2]], 1, 0, 0),
        ([*RIGHT, ("ann", 4, 12, 3)], 0, 1, 0),
        ([*RIGHT, ("ann", 3, 8, 3)], 0, 0, 1),
    ],
    ids=["a lost payment", "a lost user", "a payment counted twice", "a result delivered twice"],
)
def test_recount_detects_lost_doubled_and_repeated_rows(
    rows: list[tuple[str, int, int, int]], lost: int, doubled: int, repeated: int, tmp_path: Path
) -> None:
    found = recount(PAYMENTS, delivered(tmp_path, rows))
    assert not found.good
    assert (found.lost, found.doubled, found.repeated) == (lost, doubled, repeated)


def test_recount_detects_wrong_sum_despite_right_count(tmp_path: Path) -> None:
    found = recount(PAYMENTS, delivered(tmp_path, [*RIGHT[:2], ("ann", 3, 9, 2)]))
    assert (found.users, found.agreeing) == (2, 1)
    assert not found.good


def test_gap_counts_in_the_period_in_which_it_ends() -> None:
    times = [0.0, 1.0, 1.5, 2.0, 4.0, 4.5, 5.0, 5.25]
    assert longest_gap(times, 1.5, 2.5) == 0.5
    assert longest_gap(times, 2.5, 4.75) == 2.0
    assert longest_gap([1.0], 0.0, 2.0) is None


def test_change_that_was_not_made_fails_the_demonstration(tmp_path: Path) -> None:
    right = recount(PAYMENTS, delivered(tmp_path, RIGHT))
    made, left = Resize(2, 3, 1.0, 2.0, 3.0), Resize(3, 2, 4.0, 5.0)
    for resizes, good in (((made,), True), ((made, left), False)):
        gaps = gaps_of((), resizes, None, tmp_path)
        assert len(gaps) == 2 + len(resizes)
        assert gaps[0] == Gap("before", None)
        assert Findings(4, right, gaps, (), resizes, 0).good == good
