"""The result of construction: a routing function, its moves, and the reasons."""

from dataclasses import dataclass

import numpy as np

from tandem.routing.load.key_summary import AmountArray
from tandem.routing.planning.balance import Balance
from tandem.routing.planning.workload import Workload
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.ring import BucketArray, OwnerArray
from tandem_core.routing.xxh64 import U64Array


@dataclass(frozen=True, eq=False)
class KeyMoves:
    """Every change of owner between two functions.

    A key changes owner exactly if it is listed in `keys`, or it is not in `single` and its bucket
    is listed in `buckets`. Owners are indices into the pairs of the old and the new function.
    """

    single: U64Array
    """Keys with an explicit entry before or after: they never move with their bucket."""
    keys: U64Array
    keys_from: OwnerArray
    keys_to: OwnerArray
    keys_bytes: AmountArray
    buckets: BucketArray
    buckets_from: OwnerArray
    buckets_to: OwnerArray
    buckets_bytes: AmountArray
    """Without the bytes of `single` keys."""

    @property
    def total_bytes(self) -> int:
        """State to move, in bytes; bytes of rows while no state was measured."""
        return int(self.keys_bytes.sum() + self.buckets_bytes.sum())

    @property
    def count(self) -> int:
        """Number of keys and buckets listed."""
        return len(self.keys) + len(self.buckets)


@dataclass(frozen=True, eq=False)
class RoutingDecision:
    """A new routing function with its predicted effects."""

    function: RoutingFunction
    moves: KeyMoves
    before: Balance | None
    """Balance of the present load under the previous function, if there was one."""
    after: Balance
    migration: float
    """m: state moved over the mean state of a pair; 1 is what a new pair needs at least."""
    missed: tuple[str, ...]
    """A sentence for every bound that the new function misses; empty when all hold."""
    reasons: tuple[str, ...]
    """Sentences that state the decision and why it was made."""


def moves_between(old: RoutingFunction, new: RoutingFunction, workload: Workload) -> KeyMoves:
    """Return the moves between two functions; `workload` must have the single keys of both."""
    keys_from, keys_to = old.owner_of(workload.hashes), new.owner_of(workload.hashes)
    buckets_from, buckets_to = old.bucket_owners, new.bucket_owners
    new_index = {pair: index for index, pair in enumerate(new.pairs)}
    translate = np.array([new_index.get(pair, -1) for pair in old.pairs])
    keys = np.flatnonzero(translate[keys_from] != keys_to)
    buckets = np.flatnonzero(translate[buckets_from] != buckets_to)
    return KeyMoves(
        workload.hashes,
        workload.hashes[keys],
        keys_from[keys],
        keys_to[keys],
        workload.key_bytes[keys],
        buckets,
        buckets_from[buckets],
        buckets_to[buckets],
        workload.bucket_bytes[buckets],
    )
