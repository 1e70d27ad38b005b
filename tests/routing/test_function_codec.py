"""The serialised function: canonical, bounded, loud about every flipped bit."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_core.routing.errors import CorruptFunctionError, FunctionTooLargeError
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import (
    MOST_BYTES,
    digest_of,
    from_bytes,
    hot_keys_that_fit,
    serialised_size,
    to_bytes,
)
from tandem_core.routing.ring import BUCKETS
from tandem_core.routing.xxh64 import hash_words


def function_with(pairs: int, hot: int) -> RoutingFunction:
    names = tuple(sorted(f"pair-{number}" for number in range(pairs)))
    hashes = np.sort(hash_words(np.arange(hot, dtype=np.uint64)))
    owners = (np.arange(hot) % pairs).astype(np.uint16)
    return RoutingFunction(names, (512,) * pairs, hashes, owners)


@st.composite
def functions(draw: st.DrawFn) -> RoutingFunction:
    if draw(st.booleans()):
        return draw(explicit_functions())
    pairs = tuple(sorted(draw(st.sets(st.text(min_size=1, max_size=9), min_size=1, max_size=6))))
    weights = draw(
        st.lists(st.integers(0, 1024), min_size=len(pairs), max_size=len(pairs)).filter(any)
    )
    hot = sorted(draw(st.sets(st.integers(0, 2**64 - 1), max_size=20)))
    owners = draw(st.lists(st.integers(0, len(pairs) - 1), min_size=len(hot), max_size=len(hot)))
    return RoutingFunction(
        pairs, tuple(weights), np.array(hot, dtype=np.uint64), np.array(owners, dtype=np.uint16)
    )


@st.composite
def explicit_functions(draw: st.DrawFn) -> RoutingFunction:
    pairs = sorted(draw(st.sets(st.text(min_size=1, max_size=9), min_size=1, max_size=6)))
    owners = np.random.default_rng(draw(st.integers(0, 99))).integers(0, len(pairs), BUCKETS)
    buckets = {pair: np.flatnonzero(owners == index) for index, pair in enumerate(pairs)}
    hot = draw(st.dictionaries(st.integers(0, 2**64 - 1), st.sampled_from(pairs), max_size=20))
    return RoutingFunction.explicit(buckets, hot)


@given(functions())
def test_function_round_trips_byte_for_byte(function: RoutingFunction) -> None:
    form = to_bytes(function)
    again = from_bytes(form)
    assert to_bytes(again) == form
    assert len(form) == serialised_size(function)
    assert (again.pairs, again.vnodes) == (function.pairs, function.vnodes)
    assert np.array_equal(again.hot_hashes, function.hot_hashes)
    assert np.array_equal(again.hot_owners, function.hot_owners)
    assert np.array_equal(again.bucket_owners, function.bucket_owners)
    assert digest_of(again) == digest_of(function) == hashlib.sha256(form[:-32]).hexdigest()


@given(functions(), st.data())
def test_every_flipped_bit_is_detected(function: RoutingFunction, data: st.DataObject) -> None:
    form = bytearray(to_bytes(function))
    place = data.draw(st.integers(0, len(form) * 8 - 1))
    form[place // 8] ^= 1 << place % 8
    with pytest.raises(CorruptFunctionError):
        from_bytes(bytes(form))


@given(functions(), st.data())
def test_every_truncation_or_extension_is_detected(
    function: RoutingFunction, data: st.DataObject
) -> None:
    form = to_bytes(function)
    with pytest.raises(CorruptFunctionError):
        from_bytes(form[: data.draw(st.integers(0, len(form) - 1))])
    with pytest.raises(CorruptFunctionError):
        from_bytes(form + b"\0")


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(form: bytes) -> None:
    with pytest.raises(CorruptFunctionError):
        from_bytes(form)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"TRTF\x01\x01", b"TRTX\x01\x01", "starts with"),
        (b"TRTF\x01\x01", b"TRTF\x02\x01", "hot keys"),
        (b"TRTF\x01\x01", b"TRTF\x03\x01", "format 3"),
        (b"TRTF\x01\x01", b"TRTF\x01\x02", "scheme 2"),
        (b"\x06pair-1", b"\x06pair-0", "sorted and distinct"),
        (b"\x06pair-1", b"\x06pair\xff1", "malformed"),
        (b"\x06pair-1", b"\xffpair-1", "malformed|bytes of hot keys"),
        (b"\x00\x02", b"\xff\xff", "malformed"),
    ],
)
def test_valid_digest_does_not_admit_wrong_content(old: bytes, new: bytes, message: str) -> None:
    body = to_bytes(function_with(3, 4))[:-32]
    assert old in body
    forged = body.replace(old, new, 1)
    with pytest.raises(CorruptFunctionError, match=message):
        from_bytes(forged + hashlib.sha256(forged).digest())


def test_valid_digest_does_not_admit_wrong_length() -> None:
    body = to_bytes(function_with(3, 4))[:-32]
    for forged in (body + bytes(2), body + bytes(10), body[:-2]):
        with pytest.raises(CorruptFunctionError, match="bytes of hot keys where 4 take 40"):
            from_bytes(forged + hashlib.sha256(forged).digest())


def test_serialised_form_is_stable() -> None:
    form = to_bytes(function_with(3, 4))
    assert form[:33].hex() == ("54525446010103000400000006706169722d30000206706169722d310002067061")
    assert digest_of(function_with(3, 4)) == (
        "c676b33b03c6a98cde40dd0448e59727e907aa123d19e9f0b7825106435bb8cc"
    )


def test_hundred_pairs_and_thousand_hot_keys_fit_64_kib() -> None:
    assert len(to_bytes(function_with(100, 1_000))) < 64 * 1024


def test_oversized_function_is_refused_with_numbers() -> None:
    pairs = function_with(100, 0).pairs
    fits = hot_keys_that_fit(pairs)
    assert len(to_bytes(function_with(100, fits))) <= MOST_BYTES
    with pytest.raises(
        FunctionTooLargeError, match=r"bytes \(100 pairs, [\d,]+ hot keys\); 131,072"
    ):
        to_bytes(function_with(100, fits + 1))
    with pytest.raises(CorruptFunctionError, match="at most 131,072"):
        from_bytes(bytes(MOST_BYTES + 1))
