"""The routing function, which maps each key to the pair that owns it.

p = ⟨explicit entries for hot keys, owners of buckets for the rest⟩. Buckets follow a consistent
hash of the pairs' names, or an explicit map: a change of the map concerns only the pairs that it
names. An entry holds the 64-bit hash of its key, not the key: two keys that share all 64 bits are
in the same bucket and move together, which is still one owner for each key, the same everywhere.
With a million distinct keys that happens to a given hot key once in 10^13.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tandem_core.routing.errors import InvalidSettingError
from tandem_core.routing.key_hashing import Batch, hash_keys
from tandem_core.routing.ring import BUCKETS, BucketArray, OwnerArray, Ring, bucket_of
from tandem_core.routing.xxh64 import U64Array

NOMINAL_VNODES = 512
"""Virtual nodes of a pair of usual weight. Its share of the ring then varies by about 1/√512."""

MOST_VNODES = 2 * NOMINAL_VNODES
MOST_PAIRS = 4_096
LONGEST_NAME = 63
"""In bytes; the limit of a Kubernetes label."""

NO_OWNER = 2**16 - 1
"""Stands for a bucket without owner while a map is made."""

_IDENTITY_DIGITS = 32
_BLOCK_ROWS = 32_768
_SLOT_BITS = 16
_SLOT_MASK = np.uint64((1 << _SLOT_BITS) - 1)

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RoutingFunction:
    """An immutable routing function in canonical form; equal functions have equal bytes.

    Invariant: `pairs` are sorted and distinct, `vnodes` has one number for each, `hot_hashes`
    ascend strictly, `hot_owners` has one index into `pairs` for each of them. `bucket_map` has an
    index for each bucket, and then all vnodes are 0; without it, buckets follow the ring, and not
    all are 0.
    """

    pairs: tuple[str, ...]
    vnodes: tuple[int, ...]
    hot_hashes: U64Array
    hot_owners: OwnerArray
    bucket_map: OwnerArray | None = None

    def __post_init__(self) -> None:
        self._check()
        for array in (self.hot_hashes, self.hot_owners, self.bucket_map):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def plain(cls, pairs: Sequence[str], vnodes: int = NOMINAL_VNODES) -> "RoutingFunction":
        """Return the plain consistent hash: equal weights, no explicit entries."""
        names = tuple(sorted(pairs))
        return cls(
            names,
            (vnodes,) * len(names),
            np.empty(0, dtype=np.uint64),
            np.empty(0, dtype=np.uint16),
        )

    @classmethod
    def explicit(
        cls, buckets: Mapping[str, Iterable[int]], hot: Mapping[int, str] = MappingProxyType({})
    ) -> "RoutingFunction":
        """Return the function in which pairs own these buckets, and these hot keys by their hashes.

        Raises:
            InvalidSettingError: a bucket has no owner, or several; a hot key's owner is no pair.
        """
        names = tuple(sorted(buckets))
        owners = np.full(BUCKETS, NO_OWNER, dtype=np.uint16)
        for index, name in enumerate(names):
            mine = np.fromiter(buckets[name], dtype=np.intp)
            if np.any(owners[mine] != NO_OWNER):
                raise InvalidSettingError(f"some buckets of {name} have another owner too")
            owners[mine] = index
        hashes = np.array(sorted(hot), dtype=np.uint64)
        if unknown := set(hot.values()).difference(names):
            raise InvalidSettingError(f"hot keys of {sorted(unknown)}; there are {names}")
        places = np.array([names.index(hot[key]) for key in sorted(hot)], dtype=np.uint16)
        return cls(names, (0,) * len(names), hashes, places, owners)

    @property
    def hot_count(self) -> int:
        """Number of explicit entries."""
        return len(self.hot_hashes)

    @cached_property
    def bucket_owners(self) -> OwnerArray:
        """The owner of each bucket, for keys without an explicit entry."""
        if self.bucket_map is not None:
            return self.bucket_map
        owners = Ring(self.pairs, max(self.vnodes)).owners(self.vnodes)
        owners.setflags(write=False)
        return owners

    @cached_property
    def _hot_index(self) -> "_HotIndex":
        return _HotIndex(self.hot_hashes)

    def owner_of(self, hashes: U64Array) -> OwnerArray:
        """Return the owner of each key, given by its hash, as index into `pairs`."""
        owners = np.empty(len(hashes), dtype=np.uint16)
        for start in range(0, len(hashes), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            owners[block] = self._owner_of_block(hashes[block])
        return owners

    def owner_of_rows(self, batch: Batch, key_columns: Sequence[str]) -> OwnerArray:
        """Return the owner of each row of a record batch or table, as index into `pairs`."""
        return self.owner_of(hash_keys(batch, key_columns))

    def share_of(self, pair: str) -> "OwnedKeys":
        """Return the keys that a pair owns, in the form in which it requests its rows."""
        try:
            index = self.pairs.index(pair)
        except ValueError:
            raise InvalidSettingError(f"no pair {pair!r}; there are {self.pairs}") from None
        mine = self.hot_owners == index
        buckets = self.bucket_owners == index
        foreign = ~mine & buckets[bucket_of(self.hot_hashes)]
        return OwnedKeys(buckets, self.hot_hashes[mine], self.hot_hashes[foreign])

    def _owner_of_block(self, hashes: U64Array) -> OwnerArray:
        owners = self.bucket_owners.take(bucket_of(hashes))
        if self.hot_count:
            entries, found = self._hot_index.find(hashes)
            np.copyto(owners, self.hot_owners.take(entries), where=found)
        return owners

    def _check(self) -> None:
        if not 1 <= len(self.pairs) <= MOST_PAIRS:
            raise InvalidSettingError(
                f"{len(self.pairs)} pairs; a routing function has 1 to {MOST_PAIRS}"
            )
        for name in self.pairs:
            if not 1 <= len(name.encode()) <= LONGEST_NAME:
                raise InvalidSettingError(
                    f"pair name {name!r} has {len(name.encode())} bytes; 1 to {LONGEST_NAME} fit"
                )
        if any(a >= b for a, b in zip(self.pairs, self.pairs[1:], strict=False)):
            raise InvalidSettingError(f"pairs {self.pairs} are not sorted and distinct")
        by_ring = self.bucket_map is None
        if len(self.vnodes) != len(self.pairs) or (max(self.vnodes) > 0) != by_ring:
            raise InvalidSettingError(
                f"{len(self.vnodes)} vnode counts for {len(self.pairs)} pairs, the largest "
                f"{max(self.vnodes, default=0)}; one for each is needed, and one above 0 unless "
                "there is a map of buckets"
            )
        if not all(0 <= count <= MOST_VNODES for count in self.vnodes):
            raise InvalidSettingError(f"vnodes {self.vnodes} are not all within 0..{MOST_VNODES}")
        if self.bucket_map is not None:
            self._check_map(self.bucket_map)
        if np.any(self.hot_hashes[1:] <= self.hot_hashes[:-1]):
            raise InvalidSettingError("hashes of hot keys do not ascend strictly")
        if len(self.hot_owners) != len(self.hot_hashes):
            raise InvalidSettingError("hot keys and their owners differ in number")
        if self.hot_count and int(self.hot_owners.max()) >= len(self.pairs):
            raise InvalidSettingError(
                f"a hot key is given to pair number {self.hot_owners.max()} of {len(self.pairs)}"
            )

    def _check_map(self, owners: OwnerArray) -> None:
        if len(owners) != BUCKETS:
            raise InvalidSettingError(f"{len(owners):,} owners of buckets; there are {BUCKETS:,}")
        if int(owners.max()) >= len(self.pairs):
            bucket = int(owners.argmax())
            raise InvalidSettingError(f"bucket {bucket} has no owner among {len(self.pairs)} pairs")


@dataclass(frozen=True, eq=False)
class OwnedKeys:
    """The keys of one pair: its buckets and hot keys, without others' hot keys in its buckets."""

    buckets: BoolArray
    hot_hashes: U64Array
    foreign_hashes: U64Array

    @cached_property
    def identity(self) -> str:
        """The identity of a share, whatever function and label name it: a digest, in hexadecimal.

        A hot key in one of the own buckets is no addition.
        """
        added = self.hot_hashes[~self.buckets[bucket_of(self.hot_hashes)]]
        parts = (
            np.packbits(self.buckets).tobytes(),
            added.astype("<u8").tobytes(),
            self.foreign_hashes.astype("<u8").tobytes(),
        )
        lengths = b"".join(len(part).to_bytes(8, "little") for part in parts)
        return hashlib.sha256(lengths + b"".join(parts)).hexdigest()[:_IDENTITY_DIGITS]

    def holds(self, hashes: U64Array) -> BoolArray:
        """Return whether the pair owns each key, given by its hash."""
        held = self.buckets[bucket_of(hashes)]
        held |= np.isin(hashes, self.hot_hashes)
        held &= ~np.isin(hashes, self.foreign_hashes)
        return held


class _HotIndex:
    """Finds hashes among the hot ones, by their lowest bits; the highest choose the bucket.

    A slot holds one hot hash. The few hashes that share a slot are found by binary search.
    """

    def __init__(self, hot_hashes: U64Array) -> None:
        self._hashes = hot_hashes
        slots = (hot_hashes & _SLOT_MASK).astype(np.intp)
        self._entry = np.zeros(1 << _SLOT_BITS, dtype=np.intp)
        self._entry[slots] = np.arange(len(hot_hashes))
        shared = np.bincount(slots, minlength=1 << _SLOT_BITS) > 1
        self._shared = shared if shared.any() else None

    def find(self, hashes: U64Array) -> tuple[BucketArray, BoolArray]:
        """Return for each hash an entry's number, and whether it is that entry's hash."""
        slots = (hashes & _SLOT_MASK).astype(np.intp)
        # An empty slot names entry 0, whose hash cannot be equal: it would be in another slot.
        entries = self._entry.take(slots)
        found = self._hashes.take(entries) == hashes
        if self._shared is not None:
            unsure = np.flatnonzero(self._shared.take(slots) & ~found)
            self._search(hashes, unsure, entries, found)
        return entries, found

    def _search(
        self, hashes: U64Array, rows: BucketArray, entries: BucketArray, found: BoolArray
    ) -> None:
        """Look up the given rows among all hot hashes, correcting `entries` and `found`."""
        places = np.searchsorted(self._hashes, hashes[rows])
        places[places == len(self._hashes)] = 0
        entries[rows] = places
        found[rows] = self._hashes[places] == hashes[rows]
