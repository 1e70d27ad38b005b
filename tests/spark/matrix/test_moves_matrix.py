"""State moved by key, for every operator with every type of key: `make matrix`.

Also the test of a new version of Spark, whose internal interfaces the mover uses. A story has a
split, an exchange and a union; over the four courses each of these meets every change between 1
and 2 state partitions. Every query and every key goes through all four.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.spark.moves import QUERIES, TEXT, Key, Story, tell

from tandem_runtime.spark.jvm.launch import SparkDriver

COURSES = ((1, 1, 1, 1), (1, 2, 2, 2), (2, 2, 1, 2), (2, 1, 2, 1))
_WIDE = 10**28

KEYS = {
    "text": TEXT,
    "text-or-null": Key(("k STRING",), lambda number: (f"é{number}" if number else None,)),
    "bigint": Key(("k BIGINT",), lambda number: ((number - 5) * 2**40,)),
    "int": Key(("k INT",), lambda number: (number - 5,)),
    "date": Key(("k DATE",), lambda number: (date(1969, 12, 25) + timedelta(days=number),)),
    "timestamp": Key(
        ("k TIMESTAMP",),
        lambda number: (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=number),),
    ),
    "decimal": Key(("k DECIMAL(10,2)",), lambda number: (Decimal(number - 5).scaleb(-2),)),
    "wide-decimal": Key(("k DECIMAL(30,1)",), lambda number: (Decimal((number - 5) * _WIDE),)),
    "binary": Key(("k BINARY",), lambda number: (bytes(range(number)),)),
    "two": Key(("k STRING", "j INT"), lambda number: (f"k{number % 4}", number // 4 or None)),
    "three": Key(
        ("k BOOLEAN", "j SMALLINT", "i DATE"),
        lambda number: (number % 2 == 0, number // 4, date(2024, 1, 1 + number % 4)),
    ),
}

CASES = [
    (query, key, COURSES[(row + column) % len(COURSES)])
    for row, query in enumerate(QUERIES)
    for column, key in enumerate(KEYS)
]


@pytest.mark.parametrize(("query", "key", "partitions"), CASES)
def test_moved_state_continues_as_if_untouched(
    driver: SparkDriver,
    tmp_path: Path,
    query: str,
    key: str,
    partitions: tuple[int, int, int, int],
) -> None:
    tell(Story(driver.session, tmp_path, QUERIES[query], KEYS[key]), partitions)
