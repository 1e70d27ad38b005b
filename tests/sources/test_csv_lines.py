"""CSV lines into rows: what fits, and that haste never changes the answer."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough
from tests.sources.builders import only_value

from tandem_core.contract.partitions import SourceUnsupported
from tandem_core.model.ddl.parser import parse_schema
from tandem_runtime.arrow.schema import arrow_schema
from tandem_runtime.sources.formats.csv_lines import BadHeader, CsvDecoder, check_csv_schema
from tandem_runtime.sources.formats.csv_rows import CsvRows
from tandem_runtime.sources.formats.text_values import Unfit

MICROSECONDS_OF_2024 = 1_704_067_200_000_000


def one(kind: str, text: str) -> Any:
    decoded = CsvDecoder(parse_schema(f"a {kind}"), b"a,b").decode(f"{text},x\n".encode())
    return only_value(decoded)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("BOOLEAN", "TRUE", True),
        ("BIGINT", " -7 ", -7),
        ("BIGINT", '"7"', 7),
        ("BIGINT", "", None),
        ("DOUBLE", "NaN", pytest.approx(float("nan"), nan_ok=True)),
        ("DOUBLE", "-inf", float("-inf")),
        ("DOUBLE", ".5e1", 5.0),
        ("STRING", "", None),
        ("STRING", '""', ""),
        ("STRING", ' "x" ', ' "x" '),
        ("STRING", '"a,""b"""', 'a,"b"'),
        ("STRING", "0xff", "0xff"),
        ("BINARY", "AP8=", b"\x00\xff"),
        ("DATE", "2024-01-02", 19724),
        ("TIMESTAMP", "2024-01-01T01:00:00+01:00", MICROSECONDS_OF_2024),
        ("TIMESTAMP", "2024-01-01 00:00:00", MICROSECONDS_OF_2024),
        ("TIMESTAMP_NTZ", "2024-01-01 00:00:00", MICROSECONDS_OF_2024),
        ("DECIMAL(5,2)", "1.5", Decimal("1.50")),
    ],
)
def test_text_fitting_type_is_converted(kind: str, text: str, value: object) -> None:
    assert one(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("BOOLEAN", "1"),
        ("BIGINT", "x"),
        ("BIGINT", '""'),
        ("BIGINT", "0x10"),
        ("TINYINT", "0xff"),
        ("TINYINT", "128"),
        ("FLOAT", "1e39"),
        ("DOUBLE", "1e400"),
        ("STRING", '"open'),
        ("STRING", "a\rb"),
        ("DATE", "0000-01-01"),
        ("TIMESTAMP", "noon"),
        ("DECIMAL(5,2)", "1000"),
        ("DECIMAL(5,2)", "1e-39"),
        ("BIGINT NOT NULL", ""),
    ],
)
def test_text_not_fitting_type_is_unfit(kind: str, text: str) -> None:
    with pytest.raises(Unfit):
        one(kind, text)


def test_columns_are_matched_by_name() -> None:
    decoder = CsvDecoder(parse_schema("a INT, b STRING, c INT"), b'"b",,a\r')
    decoded = decoder.decode(b"x,,1\r\ny,2,3\r\n")
    assert decoded.batches[0].to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 3, "b": "y", "c": None},
    ]


@pytest.mark.parametrize("line", [b"1", b"1,2,3", b'1,"2', b"1,2\r3,4", b"1,\xff", b" "])
def test_malformed_line_is_separated_from_its_neighbours(line: bytes) -> None:
    decoded = CsvDecoder(parse_schema("a INT"), b"a,b").decode(b"1,x\n" + line + b"\n3,z\n")
    assert [row["a"] for batch in decoded.batches for row in batch.to_pylist()] == [1, 3]
    assert [(bad.offset, bad.line) for bad in decoded.bad] == [(4, line)]


def test_unclosed_quote_in_last_line_is_bad_line() -> None:
    decoded = CsvDecoder(parse_schema("a INT, b STRING"), b"a,b").decode(b'1,x\n2,"a""\n')
    assert [bad.offset for bad in decoded.bad] == [4]


def test_extra_carriage_return_is_bad_line_even_before_empty_lines() -> None:
    decoded = CsvDecoder(parse_schema("a INT"), b"a,b").decode(b"1,\r\r\n\n2,\n")
    assert [bad.offset for bad in decoded.bad] == [0]


def test_empty_lines_are_skipped() -> None:
    decoded = CsvDecoder(parse_schema("a INT"), b"a").decode(b"\n\r\n1\n\n\r\n2\r\n\n")
    assert [row["a"] for batch in decoded.batches for row in batch.to_pylist()] == [1, 2]
    assert not decoded.bad


def test_times_with_and_without_zone_may_be_mixed() -> None:
    decoder = CsvDecoder(parse_schema("a TIMESTAMP, b TIMESTAMP"), b"a,b")
    block = b"2024-01-01T00:00:00Z,2024-01-01\n2024-01-01 00:00:00,2024-01-01T00:00:00Z\n"
    decoded = decoder.decode(block * 500)
    rows = pa.Table.from_batches(decoded.batches)
    assert rows.num_rows == 1000
    assert set(rows.column("a").cast(pa.int64()).to_pylist()) == {MICROSECONDS_OF_2024}
    assert not decoded.bad


@pytest.mark.parametrize("header", [b"a,a", b'a,"b', b"x,y", b"\xff,a"])
def test_unusable_headers_are_refused(header: bytes) -> None:
    with pytest.raises(BadHeader):
        CsvDecoder(parse_schema("a INT"), header)


@pytest.mark.parametrize("kind", ["ARRAY<INT>", "MAP<STRING, INT>", "STRUCT<x: INT>"])
def test_nested_columns_are_refused_for_csv(kind: str) -> None:
    with pytest.raises(SourceUnsupported, match=r"column b .* CSV"):
        check_csv_schema(parse_schema(f"a INT, b {kind}"))


# --- haste changes nothing ----------------------------------------------------------------------

TYPES = [
    "BOOLEAN",
    "TINYINT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "STRING",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "DECIMAL(5,2)",
    "BIGINT NOT NULL",
]
_TIMES = st.from_regex(
    r"(0000|0001|2024|9999)-(01|12|02)-(01|29|31)([T ](00|23|24)(:(00|59)(:(00|59|60)"
    r"([.](5|123456|1234567))?)?)?)?(Z|z|[+-](01|23|24)(:?(30|60))?)?",
    fullmatch=True,
)
_PLAIN = st.one_of(
    _TIMES,
    st.integers(-(2**64), 2**64).map(str),
    st.integers(-200, 200).map(str),
    st.floats().map(str),
    st.from_regex(r"[+-]?[0-9]{0,4}\.?[0-9]{0,4}([eE][+-]?[0-9]{0,3})?", fullmatch=True),
    st.sampled_from(
        ["true", "False", "nan(x)", "-nan", "inf", "INFINITY", "0x7f", "0X1", "", "1e39"]
    ),
    st.text(alphabet='a",\r\t 1é', max_size=4),
)
_VALUES = st.one_of(
    _PLAIN,
    _PLAIN.map(lambda text: '"' + text.replace('"', '""') + '"'),
    _PLAIN.map(lambda text: f" {text}\t"),
)


def by_line(schema: str, header: list[str], block: bytes) -> tuple[Any, list[int]]:
    parsed = parse_schema(schema)
    reader = CsvRows(parsed, header)
    taken, bad, offset = [], [], 0
    for line in block.split(b"\n")[:-1]:
        try:
            values = reader(line)
        except Unfit:
            bad.append(offset)
        else:
            if values is not None:
                taken.append(values)
        offset += len(line) + 1
    arrow = arrow_schema(parsed)
    columns = list(zip(*taken, strict=True)) if taken else [()] * len(arrow)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow), bad


def assert_agreement(schema: str, block: bytes) -> None:
    expected, bad = by_line(schema, ["a", "b"], block)
    decoded = CsvDecoder(parse_schema(schema), b"a,b").decode(block)
    assert [line.offset for line in decoded.bad] == bad
    table = pa.Table.from_batches(decoded.batches, schema=expected.schema)
    table.validate(full=True)
    # NaN is not equal to itself, but its text is.
    assert str(table.to_pydict()) == str(expected.to_pydict())


@thorough(150)
@given(
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    st.lists(st.tuples(_VALUES, _VALUES), min_size=1, max_size=4),
)
def test_blocks_and_single_lines_decode_equally(
    first: str, second: str, values: list[tuple[str, str]]
) -> None:
    schema = f"a {first}, b {second}"
    lines = [f"{a},{b}\n".encode("utf-8", "replace") for a, b in values]
    assert_agreement(schema, b"".join(lines))
    for line in lines:
        assert_agreement(schema, line)


@thorough(300)
@given(
    st.lists(
        st.sampled_from(
            [b"1", b"x", b",", b'"', b'""', b'"x"', b"\n", b"\n", b"\r", b"\r\n", b" ", b"\xff"]
        ),
        max_size=14,
    )
)
def test_broken_text_decodes_equally_in_blocks_and_lines(fragments: list[bytes]) -> None:
    block = b"".join(fragments) + b"\n"
    assert_agreement("a INT, b STRING", block)
    assert_agreement("b STRING", block)
