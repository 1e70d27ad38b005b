"""The canonical bytes of a routing function, stored beside the intent under its digest.

Layout, little-endian: `TRTF`; format version (u8); hash scheme (u8); number of pairs (u16);
number of hot keys (u32); for each pair the length of its name (u8), the name in UTF-8, its
virtual nodes (u16); with a map of buckets (format 2) the owner of each bucket, in as few bits as
the highest index takes, most significant first; all hot hashes ascending (u64 each); their owners
(u16 each); SHA-256 of all that precedes. One function has exactly one such form. The ring (format
1) is not stored: it follows from names and numbers by the rules of the hash scheme.
"""

import hashlib
import struct

import numpy as np

from tandem_core.routing.errors import (
    CorruptFunctionError,
    FunctionTooLargeError,
    InvalidSettingError,
)
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.key_hashing import HASH_SCHEME
from tandem_core.routing.ring import BUCKETS, OwnerArray

RING_FORMAT, MAP_FORMAT = 1, 2

MOST_BYTES = 128 * 1024
"""Bound of the serialised form. Three generations of it, in base64, stay well below the 1 MiB
that a Kubernetes object may hold."""

_MAGIC = b"TRTF"
_HEAD = struct.Struct("<4sBBHI")
_VNODES = struct.Struct("<H")
_DIGEST_BYTES = 32
_HOT_BYTES = 10


def to_bytes(function: RoutingFunction) -> bytes:
    """Return the canonical form.

    Raises:
        FunctionTooLargeError: the form would exceed `MOST_BYTES`.
    """
    size = serialised_size(function)
    if size > MOST_BYTES:
        raise FunctionTooLargeError(
            f"the routing function takes {size:,} bytes ({len(function.pairs):,} pairs, "
            f"{function.hot_count:,} hot keys); {MOST_BYTES:,} are allowed"
        )
    body = _body(function)
    return body + hashlib.sha256(body).digest()


def digest_of(function: RoutingFunction) -> str:
    """Return the digest that ends the canonical form, in hexadecimal: the function's identity."""
    return digest_of_form(to_bytes(function))


def digest_of_form(form: bytes) -> str:
    """Return the digest that ends a canonical form, in hexadecimal."""
    return form[-_DIGEST_BYTES:].hex()


def serialised_size(function: RoutingFunction) -> int:
    """Return the length of the canonical form, even if it exceeds the bound."""
    names = sum(len(name.encode()) for name in function.pairs)
    per_pair = 1 + _VNODES.size
    fixed = _HEAD.size + per_pair * len(function.pairs) + _DIGEST_BYTES
    mapped = 0 if function.bucket_map is None else _map_bytes(len(function.pairs))
    return fixed + names + mapped + _HOT_BYTES * function.hot_count


def hot_keys_that_fit(pairs: tuple[str, ...]) -> int:
    """Return how many explicit entries fit besides these pairs; negative if the pairs do not."""
    return (MOST_BYTES - serialised_size(RoutingFunction.plain(pairs))) // _HOT_BYTES


def from_bytes(form: bytes) -> RoutingFunction:
    """Decode a canonical form.

    Raises:
        CorruptFunctionError: the bytes are not exactly what `to_bytes` writes.
    """
    if len(form) > MOST_BYTES:
        raise CorruptFunctionError(f"{len(form):,} bytes; at most {MOST_BYTES:,} can be a function")
    if len(form) < _HEAD.size + _DIGEST_BYTES:
        raise CorruptFunctionError(f"{len(form)} bytes are too few for a routing function")
    body, digest = form[:-_DIGEST_BYTES], form[-_DIGEST_BYTES:]
    magic, version, scheme, pairs, hot = _HEAD.unpack_from(body)
    if magic != _MAGIC:
        raise CorruptFunctionError(f"starts with {magic!r}; a routing function with {_MAGIC!r}")
    if version not in {RING_FORMAT, MAP_FORMAT} or scheme != HASH_SCHEME:
        raise CorruptFunctionError(
            f"format {version} with hash scheme {scheme}; this version reads formats "
            f"{RING_FORMAT} and {MAP_FORMAT} with scheme {HASH_SCHEME}"
        )
    if hashlib.sha256(body).digest() != digest:
        raise CorruptFunctionError("the digest does not match the content")
    try:
        return _read_body(body, pairs, hot, mapped=version == MAP_FORMAT)
    except (struct.error, IndexError, UnicodeDecodeError, InvalidSettingError) as problem:
        raise CorruptFunctionError(f"the content is malformed: {problem}") from problem


def _body(function: RoutingFunction) -> bytes:
    owners = function.bucket_map
    version = RING_FORMAT if owners is None else MAP_FORMAT
    parts = [_HEAD.pack(_MAGIC, version, HASH_SCHEME, len(function.pairs), function.hot_count)]
    for name, vnodes in zip(function.pairs, function.vnodes, strict=True):
        encoded = name.encode()
        parts += [bytes([len(encoded)]), encoded, _VNODES.pack(vnodes)]
    if owners is not None:
        parts.append(_pack(owners, len(function.pairs)))
    parts += [
        function.hot_hashes.astype("<u8").tobytes(),
        function.hot_owners.astype("<u2").tobytes(),
    ]
    return b"".join(parts)


def _width(pairs: int) -> int:
    """Return the bits of one owner in a map of buckets."""
    return max(1, (pairs - 1).bit_length())


def _map_bytes(pairs: int) -> int:
    return BUCKETS * _width(pairs) // 8


def _pack(owners: OwnerArray, pairs: int) -> bytes:
    shifts = np.arange(_width(pairs) - 1, -1, -1, dtype=np.uint16)
    bits = (owners[:, None] >> shifts) & 1
    return np.packbits(bits.astype(np.uint8).ravel()).tobytes()


def _unpack(form: bytes, pairs: int) -> OwnerArray:
    width = _width(pairs)
    bits = np.unpackbits(np.frombuffer(form, dtype=np.uint8)).reshape(BUCKETS, width)
    weights = 1 << np.arange(width - 1, -1, -1, dtype=np.uint16)
    owners: OwnerArray = (bits * weights).sum(axis=1).astype(np.uint16)
    return owners


def _read_body(body: bytes, pairs: int, hot: int, *, mapped: bool) -> RoutingFunction:
    names, vnodes, at = [], [], _HEAD.size
    for _ in range(pairs):
        end = at + 1 + body[at]
        names.append(body[at + 1 : end].decode())
        vnodes.append(_VNODES.unpack_from(body, end)[0])
        at = end + _VNODES.size
    owners = None
    if mapped:
        end = at + _map_bytes(pairs)
        owners = _unpack(body[at:end], pairs) if end <= len(body) else None
        at = end
    if len(body) - at != hot * _HOT_BYTES or (mapped and owners is None):
        raise CorruptFunctionError(
            f"{len(body) - at} bytes of hot keys where {hot:,} take {hot * _HOT_BYTES:,}"
        )
    owners_at = at + hot * 8
    return RoutingFunction(
        tuple(names),
        tuple(vnodes),
        np.frombuffer(body[at:owners_at], dtype="<u8").astype(np.uint64),
        np.frombuffer(body[owners_at:], dtype="<u2").astype(np.uint16),
        owners,
    )
