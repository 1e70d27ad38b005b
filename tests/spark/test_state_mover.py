"""State moved by key: owners split, exchange keys and unite, and the output does not show it."""

from pathlib import Path

import pytest
from tests.spark.moves import QUERIES, TEXT, Story, tell

from tandem_runtime.spark.jvm.launch import SparkDriver


@pytest.mark.parametrize(
    ("query", "partitions"),
    [
        ("totals", (1, 1, 2, 2)),
        ("windows", (1, 2, 2, 1)),
        ("join", (2, 2, 1, 2)),
        ("distinct", (2, 1, 1, 1)),
    ],
)
def test_moved_state_continues_as_if_untouched(
    driver: SparkDriver, tmp_path: Path, query: str, partitions: tuple[int, int, int, int]
) -> None:
    tell(Story(driver.session, tmp_path, QUERIES[query], TEXT), partitions)
