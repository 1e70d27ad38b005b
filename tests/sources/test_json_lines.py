"""JSON lines into rows: what fits, and that haste never changes the answer."""

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough
from tests.sources.builders import only_value

from tandem_core.model.ddl.parser import parse_schema
from tandem_runtime.arrow.schema import arrow_schema
from tandem_runtime.sources.formats.json_lines import JsonDecoder
from tandem_runtime.sources.formats.json_rows import JsonRows
from tandem_runtime.sources.formats.text_values import Unfit

MICROSECONDS_OF_2024 = 1_704_067_200_000_000
TYPES = [
    "BOOLEAN",
    "TINYINT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "DECIMAL(5,2)",
    "ARRAY<INT>",
    "ARRAY<DATE>",
    "MAP<STRING, INT>",
    "STRUCT<x: FLOAT, y: TIMESTAMP>",
    "STRUCT<x: INT NOT NULL>",
]


def one(kind: str, literal: str) -> Any:
    """The value of one JSON literal in a column of this type; times as Arrow's numbers."""
    decoded = JsonDecoder(parse_schema(f"a {kind}")).decode(f'{{"a": {literal}}}\n'.encode())
    return only_value(decoded)


@pytest.mark.parametrize(
    ("kind", "literal", "value"),
    [
        ("BOOLEAN", "true", True),
        ("TINYINT", "-128", -128),
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("DOUBLE", "1", 1.0),
        ("DOUBLE", '"-Infinity"', float("-inf")),
        ("DOUBLE", "Infinity", float("inf")),
        ("FLOAT", "0.1", 0.10000000149011612),
        ("STRING", '"\\u00e9\\ud83d\\ude00"', "é😀"),
        ("BINARY", '"' + base64.b64encode(b"\x00\xff").decode() + '"', b"\x00\xff"),
        ("DATE", '"2024-01-02"', 19724),
        ("TIMESTAMP", '"2024-01-01T00:00:00Z"', MICROSECONDS_OF_2024),
        ("TIMESTAMP", '"2024-01-01 00:00:00"', MICROSECONDS_OF_2024),
        ("TIMESTAMP", '"2024-01-01"', MICROSECONDS_OF_2024),
        ("TIMESTAMP", '"2024-01-01T02:00:00.5+02:00"', MICROSECONDS_OF_2024 + 500_000),
        ("TIMESTAMP", '"2024-01-01T00:00:00.123456789Z"', MICROSECONDS_OF_2024 + 123_456),
        ("TIMESTAMP_NTZ", '"2024-01-01T00:00:00"', MICROSECONDS_OF_2024),
        ("DECIMAL(5,2)", "1.5", Decimal("1.50")),
        ("DECIMAL(5,2)", '"-999.99"', Decimal("-999.99")),
        ("DECIMAL(38,37)", "1." + "1" * 37, Decimal("1." + "1" * 37)),
        ("ARRAY<INT>", "[1, null]", [1, None]),
        ("MAP<STRING, INT>", '{"x": 1, "y": null}', [("x", 1), ("y", None)]),
        ("MAP<INT, INT>", '{"7": 1}', [(7, 1)]),
        ("STRUCT<x: INT, y: STRING>", '{"x": 1, "z": 2}', {"x": 1, "y": None}),
        ("BIGINT", "null", None),
    ],
)
def test_literal_fitting_type_is_converted(kind: str, literal: str, value: object) -> None:
    assert one(kind, literal) == value


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        ("BOOLEAN", "1"),
        ("BOOLEAN", '"true"'),
        ("TINYINT", "128"),
        ("BIGINT", "9223372036854775808"),
        ("BIGINT", "1.0"),
        ("BIGINT", '"1"'),
        ("BIGINT", "9" * 5000),
        ("FLOAT", "1e39"),
        ("DOUBLE", "1e400"),
        ("DOUBLE", '"1.5"'),
        ("DOUBLE", "Inf"),
        ("STRING", "5"),
        ("STRING", '{"x": 1}'),
        ("STRING", '"\\ud800"'),
        ("STRING", '"\x01"'),
        ("BINARY", '"not base 64"'),
        ("DATE", '"2024-02-30"'),
        ("DATE", '"0000-01-01"'),
        ("TIMESTAMP", "1704067200"),
        ("TIMESTAMP", '"yesterday"'),
        ("TIMESTAMP", '"2024-01-01T24:00:00"'),
        ("TIMESTAMP", '"0001-01-01T00:00:00+01:00"'),
        ("TIMESTAMP", '"0000-06-01T00:00:00"'),
        ("DECIMAL(5,2)", "1.234"),
        ("DECIMAL(5,2)", "1000"),
        ("DECIMAL(5,2)", "1.00E-83"),
        ("DECIMAL(5,2)", '"NaN"'),
        ("ARRAY<INT>", "[1.5]"),
        ("ARRAY<INT>", "1"),
        ("MAP<STRING, INT>", "[]"),
        ("STRUCT<x: INT>", "[]"),
        ("STRUCT<x: INT NOT NULL>", "{}"),
        ("BIGINT NOT NULL", "null"),
    ],
)
def test_literal_not_fitting_type_is_unfit(kind: str, literal: str) -> None:
    with pytest.raises(Unfit):
        one(kind, literal)


def test_reason_names_path_to_value() -> None:
    with pytest.raises(Unfit, match=r"^a\.x: "):
        one("STRUCT<x: INT>", '{"x": "text"}')


def test_other_fields_are_ignored_and_missing_ones_null() -> None:
    decoder = JsonDecoder(parse_schema("a INT, b STRING"))
    decoded = decoder.decode(b'{"c": [1, {"d": null}], "b": "x"}\n{}\n')
    assert [batch.to_pylist() for batch in decoded.batches] == [
        [{"a": None, "b": "x"}, {"a": None, "b": None}]
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"5",
        b"[]",
        b'{"a": 1',
        b'{"a": 1}}',
        b'{"a": 1} {"a": 2}',
        b'{"a": 1} null {"a": 2}',
        b'{"a": 1}\x00',
        b'{"a": 1, "b": "\xff"}',
        b"\xff",
        b'{"b": Inf}',
        b'{"a": 1,}',
    ],
)
def test_line_without_object_is_separated_from_its_neighbours(line: bytes) -> None:
    decoded = JsonDecoder(parse_schema("a INT")).decode(b'{"a": 1}\n' + line + b'\n{"a": 3}\n')
    rows = [row["a"] for batch in decoded.batches for row in batch.to_pylist()]
    assert rows == [1, 3]
    assert [(bad.offset, bad.line) for bad in decoded.bad] == [(9, line)]


@pytest.mark.parametrize("neighbour", [b'{"a": 2}', b"wrong"])
def test_deep_nesting_in_unread_field_is_tolerated(neighbour: bytes) -> None:
    deep = b'{"a": 1, "b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    decoded = JsonDecoder(parse_schema("a INT")).decode(deep + neighbour + b"\n")
    assert decoded.batches[0].column("a").to_pylist()[0] == 1


def test_deep_nesting_in_value_is_bad_line() -> None:
    deep = b'{"a": ' + b'{"a": ' * 100_000 + b"1" + b"}" * 100_001 + b"\n"
    decoded = JsonDecoder(parse_schema("a INT")).decode(deep)
    assert [bad.offset for bad in decoded.bad] == [0]


@pytest.mark.parametrize("depth", [500, 900, 950, 980, 1000, 5000])
def test_any_nesting_depth_is_at_most_bad_line(depth: int) -> None:
    deep = b'{"a": ' + b"[" * depth + b"]" * depth + b"}\n"
    decoded = JsonDecoder(parse_schema("a INT")).decode(deep)
    assert [bad.offset for bad in decoded.bad] == [0]


def test_object_over_two_lines_is_two_bad_lines_even_if_row_count_matches() -> None:
    block = b'{"a": 1}{"a": 2}\n{"a":\n3}\n'
    decoded = JsonDecoder(parse_schema("a INT")).decode(block)
    assert [bad.offset for bad in decoded.bad] == [0, 17, 23]
    assert decoded.batches == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \t\n", b"\n\n", b"\n  \n"])
def test_white_space_around_lines_is_ignored(end: bytes) -> None:
    block = end + end.join(b'{"a": %d}' % n for n in range(100)) + end
    decoded = JsonDecoder(parse_schema("a INT")).decode(block)
    assert not decoded.bad
    assert [row["a"] for batch in decoded.batches for row in batch.to_pylist()] == list(range(100))


def test_bad_row_among_many_is_found_with_its_offset() -> None:
    lines = [b'{"a": %d, "pad": "%s"}\n' % (n, b"x" * (n % 90)) for n in range(20_000)]
    lines[12_345] = b'{"a": "wrong"}\n'
    decoded = JsonDecoder(parse_schema("a INT")).decode(b"".join(lines))
    assert [bad.offset for bad in decoded.bad] == [len(b"".join(lines[:12_345]))]
    rows = [row["a"] for batch in decoded.batches for row in batch.to_pylist()]
    assert rows == [n for n in range(20_000) if n != 12_345]


def test_long_bad_line_after_short_one_is_found() -> None:
    block = b'{"a": 1}\n{"a": "' + b"x" * 100_000 + b'"}\n'
    decoded = JsonDecoder(parse_schema("a INT")).decode(block)
    assert [bad.offset for bad in decoded.bad] == [9]
    assert decoded.batches[0].num_rows == 1


# --- haste changes nothing ----------------------------------------------------------------------

_TIMES = st.from_regex(
    r"(0000|0001|2024|9999)-(01|12|02)-(01|29|31)([T ](00|23|24)(:(00|59)(:(00|59|60)"
    r"([.](5|123456|1234567))?)?)?)?(Z|z|[+-](01|23|24)(:?(30|60))?)?",
    fullmatch=True,
)
_NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.integers(-200, 200).map(str),
    st.floats().map(json.dumps),
    st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["-0", "1e39", "16777217.0000001", "-NaN", "Inf", "-Inf", "1e-400", "00", "1."]
    ),
)
_TEXTS = st.one_of(
    _TIMES,
    _NUMBERS,
    st.text(max_size=4),
    st.sampled_from(["true", "NaN", "inf", "+1", ".5", "5.", "1_0", "\ud800", " 1", "YQ=="]),
).map(json.dumps)
_SCALARS = st.one_of(_NUMBERS, _TEXTS, st.sampled_from(["true", "false", "null", "nul", ""]))
_LITERALS = st.one_of(
    _SCALARS,
    st.lists(_SCALARS, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    st.dictionaries(st.sampled_from(["x", "y", "1"]), _SCALARS, max_size=2).map(
        lambda items: "{" + ", ".join(f'"{k}": {v}' for k, v in items.items()) + "}"
    ),
)


def likely(kind: str) -> st.SearchStrategy[str]:
    """Literals of which many fit the type."""
    if "DATE" in kind or "TIMESTAMP" in kind:
        return st.one_of(_TIMES.map(json.dumps), _LITERALS)
    return _LITERALS


@st.composite
def columns_and_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    names = ["a", "b"][: len(kinds)]
    lines = [
        "{"
        + ", ".join(f'"{n}": {draw(likely(k))}' for n, k in zip(names, kinds, strict=True))
        + "}"
        for _ in range(draw(st.integers(1, 4)))
    ]
    return ", ".join(f"{n} {k}" for n, k in zip(names, kinds, strict=True)), lines


def by_line(schema: str, block: bytes) -> tuple[Any, list[int]]:
    """What reading line by line gives: rows and the offsets of bad lines."""
    parsed = parse_schema(schema)
    reader = JsonRows(parsed)
    taken, bad, offset = [], [], 0
    for line in block.split(b"\n")[:-1]:
        if line.strip(b" \t\r"):
            try:
                taken.append(reader(line))
            except Unfit:
                bad.append(offset)
        offset += len(line) + 1
    arrow = arrow_schema(parsed)
    values = list(zip(*taken, strict=True)) if taken else [()] * len(arrow)
    arrays = [pa.array(v, f.type) for v, f in zip(values, arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow), bad


def assert_agreement(schema: str, block: bytes) -> None:
    expected, bad = by_line(schema, block)
    decoded = JsonDecoder(parse_schema(schema)).decode(block)
    assert [line.offset for line in decoded.bad] == bad
    table = pa.Table.from_batches(decoded.batches, schema=expected.schema)
    table.validate(full=True)
    # NaN is not equal to itself, but its text is.
    assert str(table.to_pydict()) == str(expected.to_pydict())


@thorough(300)
@given(columns_and_lines())
def test_blocks_and_single_lines_decode_equally(case: tuple[str, list[str]]) -> None:
    schema, lines = case
    encoded = [line.encode("utf-8", "replace") + b"\n" for line in lines]
    assert_agreement(schema, b"".join(encoded))
    for line in encoded:
        assert_agreement(schema, line)


def _fragments() -> Iterator[bytes]:
    yield from (b"{", b"}", b"[", b"]", b",", b":", b'"', b'"a"', b'{"a": 1}', b'{"a":', b"1")
    yield from (b"null", b"\n", b"\n", b" ", b"\r", b"\\", b"Inf", b"\xef\xbb\xbf", b"{}", b"\x00")


@thorough(400)
@given(st.lists(st.sampled_from(list(_fragments())), max_size=14))
def test_broken_text_decodes_equally_in_blocks_and_lines(fragments: list[bytes]) -> None:
    assert_agreement("a INT", b"".join(fragments) + b"\n")
