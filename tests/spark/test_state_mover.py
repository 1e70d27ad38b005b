"""State moved by key: owners split, move keys and unite, and the output does not show it."""

from pathlib import Path

import pytest
from tests.spark.move_keys import KEYS
from tests.spark.moves import QUERIES, Story, tell

from tandem_runtime.spark.jvm.launch import SparkDriver


@pytest.mark.parametrize(
    ("query", "key", "step", "partitions"),
    [
        ("totals", "wide-decimal", "hot-key", (1, 1, 2, 2)),
        ("windows", "date", "move", (1, 2, 2, 1)),
        ("join", "two", "exchange", (2, 2, 1, 2)),
        ("distinct", "text-or-null", "move", (2, 1, 1, 1)),
    ],
)
def test_moved_state_continues_as_if_untouched(
    driver: SparkDriver,
    tmp_path: Path,
    query: str,
    key: str,
    step: str,
    partitions: tuple[int, int, int, int],
) -> None:
    story = Story(driver.session, tmp_path, QUERIES[query], KEYS[key])
    tell(story, ("split", step, "unite"), partitions)
