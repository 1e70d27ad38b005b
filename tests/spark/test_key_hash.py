"""Key hashes in Java: the golden vectors, and the values of Python's hashes for random rows."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from tandem_core.model.ddl.parser import parse_schema
from tandem_core.routing.key_hashing import hash_keys
from tandem_runtime.arrow.schema import arrow_schema
from tandem_runtime.spark.jvm.launch import SparkDriver

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "routing" / "golden" / "vectors.json").read_text("utf-8")
)
LIMITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
KEY_TYPES = {type(None): "STRING", str: "STRING", int: "INT", bool: "BOOLEAN"}
SIZES = {"DECIMAL(18,2)": 10**16, "DECIMAL(38,2)": 10**36, "DECIMAL(38,0)": 10**38}


def java_hashes(
    session: SparkSession, ddl: str, rows: Sequence[Sequence[object]], positions: Sequence[int]
) -> list[int]:
    """Hash rows as Spark holds them, by the fields at these positions."""
    context = session.sparkContext
    assert context._gateway is not None
    assert context._jvm is not None
    frame = session.createDataFrame([tuple(row) for row in rows], ddl).coalesce(1)
    fields = context._gateway.new_array(context._jvm.int, len(positions))
    for index, position in enumerate(positions):
        fields[index] = position
    plan = frame._jdf.queryExecution().executedPlan()
    key_hash = context._jvm.dev.tandem.spark.KeyHash(plan.schema(), fields)
    return [key_hash.of(row) % 2**64 for row in plan.executeCollect()]


def golden(kind: str) -> tuple[list[Any], list[int]]:
    found = [(value, int(digits, 16)) for name, value, digits in GOLDEN if name == kind]
    assert found
    return [value for value, _ in found], [digits for _, digits in found]


def check(driver: SparkDriver, kind: str, sql_type: str, values: list[Any]) -> None:
    """Compare the vectors of a kind whose value is not None here."""
    expected = golden(kind)[1]
    there = [pair for pair in zip(values, expected, strict=True) if pair[0] is not None]
    assert there
    rows = [(value,) for value, _ in there]
    hashes = java_hashes(driver.session, f"k {sql_type}", rows, [0])
    assert hashes == [digits for _, digits in there]


@pytest.mark.parametrize("sql_type", LIMITS)
def test_golden_integers_that_fit_type(driver: SparkDriver, sql_type: str) -> None:
    most = 2 ** LIMITS[sql_type]
    values = golden("integer")[0]
    check(driver, "integer", sql_type, [v if -most <= v < most else None for v in values])


@pytest.mark.parametrize("sql_type", SIZES)
def test_golden_decimals_that_fit_type(driver: SparkDriver, sql_type: str) -> None:
    scale = int(sql_type[-2])
    values = [
        Decimal(f"{text}e-{scale}") if abs(int(text)) < SIZES[sql_type] * 10**scale else None
        for text in golden("decimal")[0]
    ]
    check(driver, "decimal", sql_type, values)


def test_golden_values_of_other_types(driver: SparkDriver) -> None:
    check(driver, "boolean", "BOOLEAN", golden("boolean")[0])
    check(driver, "string", "STRING", golden("string")[0])
    check(driver, "binary", "BINARY", [bytearray.fromhex(v) for v in golden("binary")[0]])
    check(driver, "date", "DATE", [date.fromisoformat(v) for v in golden("date")[0]])
    instants = [datetime.fromisoformat(v) for v in golden("timestamp")[0]]
    check(driver, "timestamp", "TIMESTAMP", instants)
    check(driver, "timestamp", "TIMESTAMP_NTZ", [v.replace(tzinfo=None) for v in instants])


def test_golden_keys_of_several_columns(driver: SparkDriver) -> None:
    for values, expected in zip(*golden("key"), strict=True):
        ddl = ", ".join(f"c{i} {KEY_TYPES[type(v)]}" for i, v in enumerate(values))
        positions = range(len(values))
        assert java_hashes(driver.session, ddl, [values], positions) == [expected]


def test_random_rows_have_hashes_of_python(driver: SparkDriver) -> None:
    ddl = (
        "s STRING, b BIGINT, i INT, d DATE, t TIMESTAMP, m DECIMAL(10,2), n DECIMAL(30,5), "
        "x BINARY, f BOOLEAN"
    )
    rows = random_rows(200)
    arrow = arrow_schema(parse_schema(ddl))
    columns = [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(arrow.types)]
    batch = pa.RecordBatch.from_arrays(columns, schema=arrow)
    for positions in ([0], [6], [5, 0], [8, 3, 7], [4, 2, 1, 6], list(range(9))):
        ours = hash_keys(batch, [arrow.names[position] for position in positions])
        assert java_hashes(driver.session, ddl, rows, positions) == ours.tolist()
    assert len(np.unique(ours)) == len(rows)


def random_rows(count: int) -> list[tuple[object, ...]]:
    """Rows of all types of keys; one value in eight is null."""
    rnd = random.Random(7)  # noqa: S311

    def one() -> tuple[object, ...]:
        values = (
            "".join(rnd.choices("aé日🙂", k=rnd.randrange(12))),
            rnd.randrange(-(2**63), 2**63),
            rnd.randrange(-(2**31), 2**31),
            date(1970, 1, 1) + timedelta(days=rnd.randrange(-20_000, 20_000)),
            datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=rnd.randrange(10**15)),
            Decimal(rnd.randrange(-(10**10) + 1, 10**10)).scaleb(-2),
            Decimal(rnd.choice([1, -1]) * rnd.randrange(10 ** rnd.randrange(1, 28))).scaleb(-5),
            bytearray(rnd.randbytes(rnd.randrange(40))),
            rnd.random() < 0.5,
        )
        return tuple(None if rnd.random() < 1 / 8 else value for value in values)

    return [one() for _ in range(count)]


@pytest.mark.parametrize("sql_type", ["DOUBLE", "ARRAY<INT>", "STRING COLLATE UNICODE_CI"])
def test_type_that_cannot_be_key_is_refused(driver: SparkDriver, sql_type: str) -> None:
    with pytest.raises(IllegalArgumentException, match="cannot be a key"):
        java_hashes(driver.session, f"k {sql_type}", [(None,)], [0])
