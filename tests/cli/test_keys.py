"""Keys as users write them have the hashes of the rows that they stand for."""

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.local.pipelines import document

from tandem_cli.changing.keys import BadKey, hash_of_key, key_columns
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.routing.key_hashing import hash_keys
from tandem_runtime.arrow.schema import arrow_schema

TYPES = "s STRING, b BIGINT, i INT, f BOOLEAN, d DATE, t TIMESTAMP, c DECIMAL(10,2)"
ROW: dict[str, Any] = {
    "s": "alice",
    "b": 7,
    "i": -3,
    "f": True,
    "d": dt.date(2024, 5, 1),
    "t": dt.datetime(2024, 5, 1, 12, 30, tzinfo=dt.UTC),
    "c": decimal.Decimal("1.50"),
}


def pipeline(*key: str) -> Pipeline:
    content = document()
    stream = {**content["spec"]["streams"][0], "schema": TYPES, "key": list(key)}
    stream.pop("watermark")
    content["spec"]["streams"] = [stream]
    parsed = parse_pipeline(content)
    assert isinstance(parsed, Pipeline), parsed
    return parsed


def hash_of_row(asked: Pipeline, row: dict[str, Any]) -> int:
    stream = asked.spec.streams[0]
    rows = pa.Table.from_pylist([row], arrow_schema(stream.schema))
    return int(hash_keys(rows, stream.key)[0])


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (["s"], "alice"),
        (["b"], "7"),
        (["i"], "-3"),
        (["f"], "true"),
        (["d"], "2024-05-01"),
        (["t"], "2024-05-01T12:30:00Z"),
        (["c"], "1.50"),
        (["c"], "1.5"),
        (["s", "b"], "alice,7"),
        (["s", "b"], '["alice", 7]'),
        (["f", "c"], "[true, 1.5]"),
        (["b", "d", "s"], "7,2024-05-01,alice"),
    ],
)
def test_text_of_a_key_hashes_as_its_rows(key: list[str], text: str) -> None:
    asked = pipeline(*key)
    assert hash_of_key(text, key_columns(asked)) == hash_of_row(asked, ROW)


def test_null_and_commas_can_be_written() -> None:
    asked = pipeline("s", "b")
    columns = key_columns(asked)
    assert hash_of_key("[null, 7]", columns) == hash_of_row(asked, {**ROW, "s": None})
    comma = {**ROW, "s": "a,b"}
    assert hash_of_key('"a,b",7', columns) == hash_of_row(asked, comma)
    assert hash_of_key('["a,b", 7]', columns) == hash_of_row(asked, comma)


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        (["b"], "seven", ["b: ", "seven"]),
        (["d"], "2024-13-01", ["d: "]),
        (["s", "b"], "alice", ["1 values", "s STRING, b BIGINT"]),
        (["s", "b"], "alice,7,8", ["3 values"]),
        (["i"], "3000000000", ["i: "]),
    ],
)
def test_text_that_is_no_key_is_refused(key: list[str], text: str, told: list[str]) -> None:
    with pytest.raises(BadKey) as refusal:
        hash_of_key(text, key_columns(pipeline(*key)))
    assert all(part in str(refusal.value) for part in told), refusal.value
