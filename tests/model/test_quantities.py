import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_core.model.fields.quantities import ByteSize, Duration, parse_bytes, parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("10s", 10_000), ("1m30s", 90_000), ("2h", 7_200_000), ("1d", 86_400_000)],
)
def test_valid_durations_are_parsed(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == Duration(milliseconds)


@pytest.mark.parametrize(
    "text", ["", "10", "s", "1.5s", "-1s", "10 s", "1s1m", "1s1s", "10sec", "١s", "9" * 5000 + "s"]
)
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**15))
def test_durations_round_trip(milliseconds: int) -> None:
    duration = Duration(milliseconds)
    assert parse_duration(str(duration)) == duration


def test_durations_are_formatted_in_largest_units() -> None:
    assert [str(Duration(ms)) for ms in (0, 500, 90_000)] == ["0s", "500ms", "1m30s"]
    assert Duration(1500).seconds == 1.5


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("17", 17),
        ("1k", 1024),
        ("1g", 2**30),
        ("512m", 2**29),
        ("32Mi", 2**25),
        ("32MB", 32_000_000),
        ("3kB", 3_000),
        ("1t", 2**40),
    ],
)
def test_valid_byte_sizes_are_parsed(text: str, count: int) -> None:
    assert parse_bytes(text) == ByteSize(count)


@pytest.mark.parametrize("text", ["", "g", "1.5g", "-1g", "1 g", "1Pi", "1gb", "9" * 5000])
def test_invalid_byte_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="amount of bytes"):
        parse_bytes(text)


@pytest.mark.parametrize(("text", "remedy"), [("1G", "1Gi"), ("32M", "32MB"), ("5K", "5kB")])
def test_ambiguous_byte_unit_is_refused_with_both_readings(text: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        parse_bytes(text)


@given(st.integers(min_value=0, max_value=2**60))
def test_byte_sizes_round_trip(count: int) -> None:
    assert parse_bytes(str(ByteSize(count))) == ByteSize(count)


def test_byte_sizes_are_formatted_in_largest_units() -> None:
    assert [str(ByteSize(n)) for n in (0, 1000, 2**30, 32_000_000)] == ["0", "1kB", "1Gi", "32MB"]
