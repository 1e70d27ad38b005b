"""Consistent hashing of buckets to pairs.

The ring is the space of 64-bit hashes, cut into `BUCKETS` equal arcs. A pair stands on it at as
many points as it has virtual nodes, each the hash of the pair's name and the point's number; an
arc belongs to the pair whose point is the first at or after its start, clockwise. So a new pair
takes arcs only for itself, a removed one gives up only its own, and the same holds for adding
and removing virtual nodes. Names of pairs are never reused, hence neither are points.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tandem_core.routing.xxh64 import U64Array, hash_byte_strings, hash_words

BUCKET_BITS = 16
BUCKETS = 1 << BUCKET_BITS
"""Fixed forever: stored state and running pipelines depend on the bucket of a key.

Large enough that a hundred pairs have over 600 buckets each, small enough that a table of all
owners (128 KiB) stays in a core's cache and a set of buckets is 8 KiB.
"""

OwnerArray = npt.NDArray[np.uint16]
BucketArray = npt.NDArray[np.intp]

_SHIFT = np.uint64(64 - BUCKET_BITS)


def bucket_of(hashes: U64Array) -> BucketArray:
    """Return the bucket of each key hash: its highest bits."""
    return (hashes >> _SHIFT).astype(np.intp)


class Ring:
    """The sorted points of pairs, from which owners are computed for any weights."""

    def __init__(self, pairs: Sequence[str], most_vnodes: int) -> None:
        names = hash_byte_strings([name.encode() for name in pairs], len(pairs))
        numbers = np.tile(np.arange(most_vnodes, dtype=np.uint64), len(pairs))
        points = hash_words(numbers, seed=np.repeat(names, most_vnodes))
        # Stable: of two points at one place, the pair earlier in `pairs` comes first.
        order = np.argsort(points, kind="stable")
        self._arc = bucket_of(points[order])
        self._number = order % most_vnodes
        self._pair = (order // most_vnodes).astype(np.uint16)

    def owners(self, vnodes: Sequence[int] | npt.NDArray[np.int64]) -> OwnerArray:
        """Return the owner of each bucket if pair i uses its first `vnodes[i]` points."""
        used = self._number < np.asarray(vnodes)[self._pair]
        pairs = self._pair[used]
        points_in_arc = np.bincount(self._arc[used], minlength=BUCKETS)
        # The first point at or after an arc's start comes after all those of earlier arcs.
        following = np.cumsum(points_in_arc) - points_in_arc
        following[following == len(pairs)] = 0
        owners: OwnerArray = pairs[following]
        return owners
