"""State moved by key, for every operator with every type of key: `make matrix`.

Also the test of a new version of Spark, whose internal interfaces the mover uses. A story has a
split and a second step: a move of buckets or of one hot key, an exchange of keys, or a union.
"""

from pathlib import Path

import pytest
from tests.spark.move_cases import CASES, SPLIT
from tests.spark.move_keys import KEYS
from tests.spark.moves import QUERIES, Story, tell

from tandem_runtime.spark.jvm.launch import SparkDriver


@pytest.mark.parametrize(("query", "key", "step", "partitions"), CASES)
def test_moved_state_continues_as_if_untouched(
    driver: SparkDriver,
    tmp_path: Path,
    query: str,
    key: str,
    step: str,
    partitions: tuple[int, int, int],
) -> None:
    tell(Story(driver.session, tmp_path, QUERIES[query], KEYS[key]), (SPLIT, step), partitions)
