"""XXH64 for keys: whole numpy columns of integers at once, byte strings one by one in C.

XXH64 is fixed by a public specification, implemented in every language, and is what Spark's own
`xxhash64` expression and `XXH64` class compute. A JVM can therefore work out a key's hash with
what it already ships.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import xxhash

U64Array = npt.NDArray[np.uint64]

SEED = 42
"""Spark's default seed for `xxhash64`."""

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)
_LANE_BYTES = 8
_WORD_BITS = 64
_BLOCK_ROWS = 32_768
"""Rows handled at a time: a block's temporaries (256 KiB each) then stay in the core's cache."""


def hash_words(words: U64Array, seed: U64Array | int = SEED) -> U64Array:
    """Hash each 64-bit word as the 8 little-endian bytes it is made of.

    `seed` is one number, or one for each word; the latter chains the columns of a key.
    """
    return _in_blocks((words,), seed)


def hash_double_words(low: U64Array, high: U64Array, seed: U64Array | int = SEED) -> U64Array:
    """Hash each 128-bit value, given as low and high words, as its 16 little-endian bytes."""
    return _in_blocks((low, high), seed)


def hash_byte_strings(values: Iterable[bytes], count: int) -> U64Array:
    """Hash `count` byte strings of any length with the default seed."""
    digest = xxhash.xxh64_intdigest
    return np.fromiter((digest(value, SEED) for value in values), dtype=np.uint64, count=count)


def _in_blocks(lanes: tuple[U64Array, ...], seed: U64Array | int) -> U64Array:
    """Run `_hash_lanes` over cache-sized blocks of rows."""
    rows = len(lanes[0])
    seeds = np.broadcast_to(np.asarray(seed, dtype=np.uint64), (rows,))
    hashes = np.empty(rows, dtype=np.uint64)
    for start in range(0, rows, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        hashes[block] = _hash_lanes([lane[block] for lane in lanes], seeds[block])
    return hashes


def _hash_lanes(lanes: list[U64Array], seeds: U64Array) -> U64Array:
    """XXH64 of inputs that are whole 8-byte lanes and shorter than its 32-byte stripes."""
    state = seeds + (_PRIME_5 + np.uint64(_LANE_BYTES * len(lanes)))
    for lane in lanes:
        mixed = lane * _PRIME_2
        mixed = _rotate_left(mixed, 31)
        mixed *= _PRIME_1
        state ^= mixed
        state = _rotate_left(state, 27)
        state *= _PRIME_1
        state += _PRIME_4
    return _avalanche(state)


def _avalanche(state: U64Array) -> U64Array:
    """Spread every input bit over the whole word; changes `state` in place."""
    state ^= state >> np.uint64(33)
    state *= _PRIME_2
    state ^= state >> np.uint64(29)
    state *= _PRIME_3
    state ^= state >> np.uint64(32)
    return state


def _rotate_left(words: U64Array, bits: int) -> U64Array:
    """Rotate each word; overwrites the argument."""
    wrapped = words >> np.uint64(_WORD_BITS - bits)
    words <<= np.uint64(bits)
    words |= wrapped
    return words
