"""Tables as JSON lines: read back by an independent reader, and the forms that are promised."""

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough

from tandem_runtime.sinks.json_text import json_lines, literals

DAY = datetime.datetime(2024, 1, 31, 23, 59, 59)
UTC_DAY = DAY.replace(tzinfo=datetime.UTC)


def written(table: Any, **more: object) -> list[Any]:
    text = b"".join(bytes(piece) for piece in json_lines(table, more)).decode()
    return [json.loads(line) for line in text.split("\n")[:-1]]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([DAY]), '"2024-01-31T23:59:59.000000"'),
        (pa.array([UTC_DAY]), '"2024-01-31T23:59:59.000000Z"'),
        (pa.array([UTC_DAY], pa.timestamp("ns", "Europe/Berlin")), '"2024-01-31T23:59:59.000000Z"'),
        (pa.array([DAY.date()]), '"2024-01-31"'),
        (pa.array([Decimal("12.50")]), "12.50"),
        (pa.array([math.nan]), '"NaN"'),
        (pa.array([-math.inf]), '"-Infinity"'),
        (pa.array([True]), "true"),
        (pa.array([b"\x00\xff"]), '"AP8="'),
        (pa.array(['é\u0000\n"\\']), '"é\\u0000\\n\\"\\\\"'),
        (pa.array(["x"]).dictionary_encode(), '"x"'),
        (pa.array([[1, None]]), "[1,null]"),
        (pa.array([{"x": None}]), '{"x":null}'),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), '{"k":1}'),
        (pa.array([[(7, [])]], pa.map_(pa.int8(), pa.list_(pa.int8()))), '{"7":[]}'),
        (pa.array([datetime.timedelta(seconds=5)]), '"0:00:05"'),
        (pa.array([None], pa.int8()), "null"),
        (pa.nulls(1), "null"),
    ],
)
def test_literal_matches_form_of_its_type(array: Any, expected: str) -> None:
    assert literals(array).to_pylist() == [expected]


def test_every_row_has_every_column_and_added_fields() -> None:
    rows = written(pa.table({"a": [1, None], 'b"': [None, "x"]}), _epoch=7, _pair="pair-0")
    assert rows == [
        {"a": 1, 'b"': None, "_epoch": 7, "_pair": "pair-0"},
        {"a": None, 'b"': "x", "_epoch": 7, "_pair": "pair-0"},
    ]


def test_rows_of_several_chunks_keep_their_order() -> None:
    table = pa.concat_tables([pa.table({"n": list(range(k, k + 40_000))}) for k in (0, 40_000)])
    assert [row["n"] for row in written(table)] == list(range(80_000))


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.string(): st.text(),
    pa.bool_(): st.booleans(),
    pa.list_(pa.string()): st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=3),
    pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]): st.fixed_dictionaries(
        {
            "x": st.one_of(st.none(), st.integers(0, 9)),
            "y": st.one_of(st.none(), st.lists(st.text(max_size=2), max_size=2)),
        }
    ),
    pa.map_(pa.string(), pa.float64()): st.dictionaries(
        st.text(max_size=3), st.one_of(st.none(), st.floats(-9, 9)), max_size=3
    ).map(lambda entries: list(entries.items())),
}


@thorough(200)
@given(st.data(), st.sampled_from(list(VALUES)))
def test_written_values_can_be_read_back(data: st.DataObject, kind: Any) -> None:
    values = data.draw(st.lists(st.one_of(st.none(), VALUES[kind]), max_size=6))
    first = data.draw(st.integers(0, len(values)))
    rows = written(pa.table({"a": pa.array(values, kind)}).slice(first))
    expected = values[first:]
    if pa.types.is_map(kind):
        expected = [None if value is None else dict(value) for value in expected]
    assert [row["a"] for row in rows] == expected
