"""The load of a pipeline by key, counted by splits and pairs: the input of construction."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tandem.routing.load.distinct_keys import DistinctSketch, merge_sketches
from tandem.routing.load.key_summary import MEASURES, AmountArray, KeySummary, merge_summaries
from tandem_core.routing.ring import BUCKETS, bucket_of
from tandem_core.routing.xxh64 import U64Array


@dataclass(frozen=True, eq=False)
class LoadProfile:
    """Load of the hottest keys, of all buckets, and the number of keys.

    Bucket amounts are exact and include the keys listed. Profiles of several splits and pairs
    are merged; splits count rows and bytes, pairs the memory.
    """

    keys: KeySummary
    buckets: AmountArray
    """One line for each bucket: rows, bytes, memory."""
    distinct: DistinctSketch

    @cached_property
    def totals(self) -> AmountArray:
        """Rows, bytes and memory of all keys."""
        totals: AmountArray = self.buckets.sum(axis=0)
        return totals

    @classmethod
    def empty(cls) -> "LoadProfile":
        """Return the profile of no rows."""
        nothing = np.zeros((BUCKETS, MEASURES), dtype=np.int64)
        return cls(KeySummary.empty(), nothing, DistinctSketch.empty())

    @classmethod
    def exact(cls, hashes: U64Array, amounts: AmountArray) -> "LoadProfile":
        """Return the profile of keys whose true amounts are known; hashes must be distinct."""
        order = np.argsort(hashes)
        summary = KeySummary(
            hashes[order],
            amounts[order],
            np.zeros(len(hashes), dtype=np.int64),
            unlisted=0,
            total_rows=int(amounts[:, 0].sum()),
        )
        return cls(
            summary, amounts_by_bucket(hashes, amounts), DistinctSketch.empty().with_hashes(hashes)
        )


def merge_profiles(profiles: Sequence[LoadProfile]) -> LoadProfile:
    """Merge profiles into one of all rows; the order of the parts does not matter."""
    if not profiles:
        return LoadProfile.empty()
    buckets: AmountArray = np.sum([part.buckets for part in profiles], axis=0)
    return LoadProfile(
        merge_summaries([part.keys for part in profiles]),
        buckets,
        merge_sketches([part.distinct for part in profiles]),
    )


def amounts_by_bucket(hashes: U64Array, amounts: AmountArray) -> AmountArray:
    """Sum amounts by the bucket of their key."""
    buckets = bucket_of(hashes)
    summed = np.zeros((BUCKETS, MEASURES), dtype=np.int64)
    for column in range(MEASURES):
        if amounts[:, column].any():
            # Sums in floating point are exact here: below 2^53 bytes in one batch.
            summed[:, column] = np.bincount(buckets, amounts[:, column], minlength=BUCKETS)
    return summed
