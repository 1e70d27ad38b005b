"""Key hashes: golden vectors of an independent implementation, and layouts that must not matter."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tandem_core.routing.errors import UnroutableKeyError
from tandem_core.routing.key_hashing import NULL_HASH, hash_column, hash_columns, hash_keys

GOLDEN = json.loads((Path(__file__).parent / "golden" / "vectors.json").read_text("utf-8"))
INTEGER_TYPES = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
]
BYTE_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]


def golden(kind: str) -> list[tuple[Any, int]]:
    found = [(value, int(digits, 16)) for name, value, digits in GOLDEN if name == kind]
    assert found
    return found


def one(value: object, arrow_type: object) -> int:
    return int(hash_column(pa.array([value], arrow_type), "k")[0])


def test_golden_integers_in_every_width_that_holds_them() -> None:
    for value, expected in golden("integer"):
        widths = [t for t in INTEGER_TYPES if holds(t, value)]
        assert {one(value, t) for t in widths} == {expected}


def holds(arrow_type: Any, value: int) -> bool:
    limits = np.iinfo(arrow_type.to_pandas_dtype())
    return bool(limits.min <= value <= limits.max)


def test_golden_booleans() -> None:
    for value, expected in golden("boolean"):
        assert one(value, pa.bool_()) == expected


def test_golden_dates_in_both_units() -> None:
    for text, expected in golden("date"):
        day = datetime.date.fromisoformat(text)
        assert one(day, pa.date32()) == one(day, pa.date64()) == expected


def test_golden_timestamps_in_every_unit_and_zone_that_holds_the_instant() -> None:
    for text, expected in golden("timestamp"):
        instant = datetime.datetime.fromisoformat(text)
        units = ["us", "ns"] if instant.microsecond else ["s", "ms", "us", "ns"]
        for unit in units:
            for zone in (None, "UTC", "Europe/Zurich", "+05:30"):
                value = instant.replace(tzinfo=None) if zone is None else instant
                assert one(value, pa.timestamp(unit, zone)) == expected


def test_golden_decimals_at_any_scale_and_precision() -> None:
    for digits, expected in golden("decimal"):
        for scale in (0, 2, 18):
            value = Decimal(f"{digits}e-{scale}")
            assert one(value, pa.decimal128(38, scale)) == expected
    assert one(Decimal("0.01"), pa.decimal32(9, 2)) == dict(golden("decimal"))["1"]
    assert one(Decimal("0.01"), pa.decimal64(18, 2)) == dict(golden("decimal"))["1"]


def test_golden_strings_in_every_layout() -> None:
    for text, expected in golden("string"):
        assert {one(text, t) for t in TEXT_TYPES} == {expected}
        assert one(text.encode(), pa.binary()) == expected


def test_golden_binary() -> None:
    for digits, expected in golden("binary"):
        value = bytes.fromhex(digits)
        assert {one(value, t) for t in [*BYTE_TYPES, pa.binary(len(value))]} == {expected}


def test_golden_keys_of_several_columns() -> None:
    for values, expected in golden("key"):
        columns = [pa.array([v]) for v in values]
        names = [f"k{i}" for i in range(len(values))]
        assert int(hash_columns(columns, names)[0]) == expected


@given(st.lists(st.one_of(st.none(), st.binary(max_size=80)), max_size=50))
def test_byte_hashes_match_reference_library(values: list[bytes | None]) -> None:
    hashes = hash_column(pa.array(values, pa.binary()), "k")
    expected = [42 if v is None else xxhash.xxh64_intdigest(v, 42) for v in values]
    assert hashes.tolist() == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_integer_hashes_match_reference_library(values: list[int]) -> None:
    hashes = hash_column(pa.array(values, pa.int64()), "k")
    expected = [xxhash.xxh64_intdigest(v.to_bytes(8, "little", signed=True), 42) for v in values]
    assert hashes.tolist() == expected


COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), st.text(max_size=6)), min_size=1, max_size=40).map(
        lambda v: pa.array(v, pa.string())
    ),
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=1, max_size=40).map(
        lambda v: pa.array(v, pa.int32())
    ),
    st.lists(st.one_of(st.none(), st.booleans()), min_size=1, max_size=40).map(
        lambda v: pa.array(v, pa.bool_())
    ),
    st.lists(
        st.one_of(st.none(), st.integers(-(10**30), 10**30).map(lambda n: Decimal(f"{n}e-3"))),
        min_size=1,
        max_size=40,
    ).map(lambda v: pa.array(v, pa.decimal128(38, 3))),
)


@given(COLUMNS, st.data())
def test_array_layout_never_changes_hash(column: Any, data: st.DataObject) -> None:
    plain = hash_column(column, "k")
    cut = data.draw(st.integers(0, len(column)))
    parts = [column.slice(0, cut), column.slice(cut)]
    assert np.array_equal(hash_column(pa.chunked_array(parts), "k"), plain)
    assert np.array_equal(hash_column(parts[1], "k"), plain[cut:])
    encoded = column.dictionary_encode()
    assert np.array_equal(hash_column(encoded, "k"), plain)
    assert np.array_equal(hash_column(encoded.slice(cut), "k"), plain[cut:])
    in_values = column.dictionary_encode(null_encoding="encode")
    assert np.array_equal(hash_column(in_values, "k"), plain)


@pytest.mark.parametrize("distinct", [7, 30_000])
def test_hashing_distinct_values_only_gives_same_result(distinct: int) -> None:
    texts = [f"user-{i * 7919 % distinct}" for i in range(30_000)]
    hashes = hash_column(pa.array(texts), "k")
    assert hashes.tolist() == [xxhash.xxh64_intdigest(t.encode(), 42) for t in texts]


def test_empty_columns_have_no_hashes() -> None:
    for empty in (
        pa.array([], pa.string()),
        pa.array([], pa.int64()),
        pa.chunked_array([], pa.decimal128(10, 2)),
        pa.chunked_array([], pa.dictionary(pa.int32(), pa.string())),
        pa.array([], pa.string()).dictionary_encode(),
    ):
        assert hash_column(empty, "k").shape == (0,)


def test_nulls_differ_from_every_empty_or_zero_value() -> None:
    values = [
        one("", pa.string()),
        one(0, pa.int64()),
        one(False, pa.bool_()),
        one(b"", pa.binary()),
    ]
    assert int(NULL_HASH) not in values
    assert hash_column(pa.nulls(2), "k").tolist() == [int(NULL_HASH)] * 2
    assert one(None, pa.date32()) == one(None, pa.timestamp("ms")) == int(NULL_HASH)


def test_column_order_and_null_position_change_hash() -> None:
    batch = pa.record_batch({"a": ["x", "y", None, "x"], "b": ["y", "x", "x", None]})
    assert len(set(hash_keys(batch, ["a", "b"]).tolist())) == 4
    assert not np.array_equal(hash_keys(batch, ["a", "b"]), hash_keys(batch, ["b", "a"]))


def test_sub_microsecond_timestamps_hash_as_in_spark() -> None:
    nanoseconds = pa.array([1_999, 1_000, -1, -1_000], pa.timestamp("ns"))
    assert hash_column(nanoseconds, "k").tolist() == [one(v, pa.int64()) for v in (1, 1, -1, -1)]


def test_instant_beyond_spark_range_raises_overflow() -> None:
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        hash_column(pa.array([2**60], pa.timestamp("s")), "k")


@pytest.mark.parametrize(
    ("arrow_type", "advice"),
    [
        (pa.float64(), "cast it to a decimal"),
        (pa.float32(), "cast it to a decimal"),
        (pa.uint64(), "signed 64-bit"),
        (pa.list_(pa.int8()), "separate key columns"),
        (pa.time64("us"), "use a string"),
        (pa.duration("us"), "use a string"),
        (pa.decimal256(50, 2), "use a string"),
    ],
)
def test_unsupported_key_type_is_refused_by_column_name(arrow_type: Any, advice: str) -> None:
    batch = pa.record_batch([pa.nulls(1, arrow_type)], names=["price"])
    with pytest.raises(UnroutableKeyError, match=f"'price' is of type .*{advice}"):
        hash_keys(batch, ["price"])
    encoded = pa.chunked_array([], arrow_type)
    with pytest.raises(UnroutableKeyError, match="'price'"):
        hash_column(encoded, "price")


def test_unknown_or_empty_key_columns_are_refused() -> None:
    batch = pa.record_batch({"user": ["a"]})
    with pytest.raises(
        UnroutableKeyError, match=r"'account' is not in the batch; it has \['user'\]"
    ):
        hash_keys(batch, ["account"])
    with pytest.raises(UnroutableKeyError, match="at least one"):
        hash_keys(batch, [])
