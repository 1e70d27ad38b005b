"""A load profile converted for construction.

For each resource it has the loads of single keys, and of the other keys of each bucket.
"""

from dataclasses import dataclass

import numpy as np

from tandem.routing.load.key_summary import BYTES, MEMORY, ROWS, AmountArray
from tandem.routing.load.profile import LoadProfile
from tandem.routing.planning.settings import Beta, FloatArray, PlanningSettings, Resource
from tandem.routing.planning.thresholds import delta
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.ring import BUCKETS, OwnerArray, bucket_of
from tandem_core.routing.xxh64 import U64Array


@dataclass(frozen=True, eq=False)
class Workload:
    """Loads of `hashes`, the single keys, and of buckets without them.

    Lines of both load tables follow `PlanningSettings.resources`.
    """

    hashes: U64Array
    """Ascending, distinct."""
    key_loads: FloatArray
    bucket_loads: FloatArray
    key_rows: FloatArray
    """Share of all rows of each key (f)."""
    key_bytes: AmountArray
    """Bytes of state to move with each key, or of its rows while no state was measured."""
    bucket_bytes: AmountArray

    @classmethod
    def of(cls, profile: LoadProfile, settings: PlanningSettings, hashes: U64Array) -> "Workload":
        """Return the workload with these hashes (ascending, distinct) as single keys."""
        amounts = profile.keys.amounts_of(hashes)
        rest = _without(profile.buckets, hashes, amounts)
        loads = [
            _Loads.of(resource, profile, hashes, amounts, rest) for resource in settings.resources
        ]
        column = _bytes_column(profile)
        return cls(
            hashes,
            np.array([load.keys for load in loads]),
            np.array([load.buckets for load in loads]),
            _share(profile, ROWS, amounts),
            amounts[:, column],
            rest[:, column],
        )

    def pair_loads(
        self, bucket_owners: OwnerArray, key_owners: OwnerArray, pairs: int
    ) -> FloatArray:
        """Return the load of each resource (lines) on each pair (columns)."""
        return loads_by_owner(self.bucket_loads, bucket_owners, pairs) + loads_by_owner(
            self.key_loads, key_owners, pairs
        )

    def loads_under(self, function: RoutingFunction) -> FloatArray:
        """Return the load of each resource (lines) on each pair (columns) under a function."""
        return self.pair_loads(
            function.bucket_owners, function.owner_of(self.hashes), len(function.pairs)
        )


def loads_by_owner(loads: FloatArray, owners: OwnerArray, pairs: int) -> FloatArray:
    """Sum loads (one line for each resource) by owner."""
    return np.array([np.bincount(owners, line, minlength=pairs) for line in loads])


def hot_keys(profile: LoadProfile, settings: PlanningSettings, pairs: int) -> tuple[U64Array, int]:
    """Return the keys that need an explicit entry, hottest first, and the number over the limit.

    A key is hot if it is hot for any resource (δ = min over k, each in its own measure).
    """
    summary = profile.keys
    heat = np.zeros(len(summary.hashes))
    for resource in settings.resources:
        column = _measured(profile, resource)
        shares = _share(profile, column, summary.amounts)
        total = _total_load(resource, profile, shares)
        threshold = delta(resource, pairs, settings.untracked_share, total)
        if resource.beta is not Beta.CONSTANT and threshold > 0:
            heat = np.maximum(heat, shares / threshold)
    hot = np.flatnonzero(heat >= 1) if pairs > 1 else np.empty(0, dtype=np.intp)
    hottest = hot[np.lexsort((summary.hashes[hot], -heat[hot]))]
    kept = hottest[: settings.most_hot_keys]
    return summary.hashes[kept], len(hot) - len(kept)


@dataclass(frozen=True, eq=False)
class _Loads:
    """Loads of one resource."""

    keys: FloatArray
    buckets: FloatArray

    @classmethod
    def of(
        cls,
        resource: Resource,
        profile: LoadProfile,
        hashes: U64Array,
        amounts: AmountArray,
        rest: AmountArray,
    ) -> "_Loads":
        column = _measured(profile, resource)
        keys = resource.beta.of(_share(profile, column, amounts))
        if resource.beta is Beta.LINEAR:
            return cls(keys, _share(profile, column, rest))
        others = max(profile.distinct.estimate - len(hashes), 0.0)
        if resource.beta is Beta.CONSTANT:
            return cls(keys, np.full(BUCKETS, others / BUCKETS))
        return cls(keys, _quadratic_rest(profile, column, hashes, rest, others))


def _quadratic_rest(
    profile: LoadProfile, column: int, hashes: U64Array, rest: AmountArray, others: float
) -> FloatArray:
    """Return Σx² in each bucket over all but the single keys.

    Counted keys are squared one by one. The rest is assumed to be spread evenly over the remaining
    keys of a bucket, which is a lower bound; none of these keys is hot.
    """
    summary = profile.keys
    listed = ~np.isin(summary.hashes, hashes)
    counted = summary.amounts[listed]
    buckets = bucket_of(summary.hashes[listed])
    squares = np.bincount(buckets, _share(profile, column, counted) ** 2, minlength=BUCKETS)
    unlisted = _share(profile, column, _without(rest, summary.hashes[listed], counted))
    keys_in_a_bucket = max((others - len(counted)) / BUCKETS, 1.0)
    spread: FloatArray = squares + unlisted**2 / keys_in_a_bucket
    return spread


def _total_load(resource: Resource, profile: LoadProfile, shares: FloatArray) -> float:
    """Return Σβ over all keys, of which the given shares are counted."""
    if resource.beta is not Beta.QUADRATIC:
        return 1.0
    uncounted = max(1.0 - float(shares.sum()), 0.0)
    others = max(profile.distinct.estimate - len(shares), 1.0)
    return float((shares**2).sum()) + uncounted**2 / others


def _measured(profile: LoadProfile, resource: Resource) -> int:
    """Return the column of a resource's measure; rows while nothing of it was counted."""
    column: int = resource.measure.value
    return column if profile.totals[column] > 0 else ROWS


def _bytes_column(profile: LoadProfile) -> int:
    return MEMORY if profile.totals[MEMORY] > 0 else BYTES


def _share(profile: LoadProfile, column: int, amounts: AmountArray) -> FloatArray:
    """Return amounts as shares of the total; an amount that shrank below 0 counts as 0."""
    total = max(float(profile.totals[column]), 1.0)
    shares: FloatArray = np.maximum(amounts[:, column], 0) / total
    return shares


def _without(buckets: AmountArray, hashes: U64Array, amounts: AmountArray) -> AmountArray:
    """Return bucket amounts without those of the given keys."""
    rest = buckets.copy()
    np.subtract.at(rest, bucket_of(hashes), amounts)
    return rest
