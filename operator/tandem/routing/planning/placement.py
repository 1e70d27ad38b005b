"""The board on which hot keys are placed: loads, penalties, and the price of moving.

γ, the migration penalty, is as in the paper: the cost of all moves so far over the ideal one, a
pair's share of all keys considered.

ρ, the balance penalty, is the logarithm of max/min over that of the tolerance α, the mean of all
resources. The paper takes (max - min) / (θ · mean) and the geometric mean, because max/min is
infinite on a board that is still empty. Here the ring's share is on the board from the start, so
ρ can be what the bounds are about: 1 at the tolerance, and log b of the whole. The paper's form
hardly sees a starved pair when one key dominates, as quadratic loads do, and a resource in perfect
balance hides all others; both need no correction here. The paper's ρ is kept in the reproduction,
under `bench`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tandem.routing.planning.settings import FloatArray, Utility

LEAST_PENALTY = 0.4
BALANCED = 1.075
"""Floor of ρ for one resource: two fifths of the tolerance, or this ratio if that is less.
Nothing is moved to get below it. Lower floors cost migration and hardly gained balance."""

EMPTY_PAIR = 0.01
"""Added to loads, relative to the mean, so that an empty pair has a high but finite penalty."""

NOWHERE = -1
"""Former place of a key that had none: moving it costs nothing."""

PlaceArray = npt.NDArray[np.intp]


@dataclass(eq=False)
class Board:
    """A placement in progress. Only resources that are not constant take part.

    Invariant: `loads` is what the ring gives each pair plus the loads of the keys placed; a key
    not yet placed stands `NOWHERE`.
    """

    loads: FloatArray
    """Load of each resource (lines) on each pair (columns)."""
    key_loads: FloatArray
    """Load of each resource (lines) by each key (columns)."""
    tolerance: FloatArray
    """Logarithm of the tolerated ratio of each resource; above 0."""
    volume: FloatArray
    """Size of each key (f), by which utilities and gains are scaled; above 0."""
    move_cost: FloatArray
    """Cost of moving each key away from its former place."""
    former: PlaceArray
    """Former pair of each key, or `NOWHERE` if it is gone or there was no function before."""
    utility: Utility
    ideal_cost: float
    """Cost by which migration is measured; above 0."""
    spent: float = 0.0
    """Cost of moves so far, those of keys that lost their entry included."""

    def __post_init__(self) -> None:
        self.places = np.full(self.keys, NOWHERE, dtype=np.intp)
        self._floor = np.minimum(LEAST_PENALTY, np.log(BALANCED) / self.tolerance)

    @property
    def keys(self) -> int:
        """Number of keys to place."""
        return len(self.volume)

    @property
    def pairs(self) -> int:
        """Number of pairs to place them on."""
        return len(self.loads[0])

    def put(self, key: int, pair: int) -> None:
        """Place or move a key, and update the costs."""
        at = int(self.places[key])
        if at != NOWHERE:
            self.loads[:, at] -= self.key_loads[:, key]
            self.spent -= self._price(key, at)
        self.loads[:, pair] += self.key_loads[:, key]
        self.spent += self._price(key, pair)
        self.places[key] = pair

    def penalty(self, highest: FloatArray, lowest: FloatArray, mean: FloatArray) -> FloatArray:
        """Return ρ of candidates from each resource's extremes and mean (first axis of each)."""
        slack = EMPTY_PAIR * mean
        ratio = (highest + slack) / np.maximum(lowest + slack, np.finfo(np.float64).tiny)
        resources = (-1, *[1] * (ratio.ndim - 1))
        each = np.log(np.maximum(ratio, 1.0)) / self.tolerance.reshape(resources)
        penalty: FloatArray = np.maximum(each, self._floor.reshape(resources)).mean(axis=0)
        return penalty

    def penalty_now(self) -> float:
        """Return ρ of the board in its present state."""
        return float(
            self.penalty(self.loads.max(axis=1), self.loads.min(axis=1), self.loads.mean(axis=1))
        )

    def value(self, penalty: FloatArray, spent: FloatArray) -> FloatArray:
        """Return U of candidates; lower is better."""
        return self.utility.of(penalty, np.maximum(spent, 0.0) / self.ideal_cost)

    def placing(self, keys: PlaceArray) -> FloatArray:
        """Return U of placing each of these unplaced keys (lines) on each pair (columns)."""
        loads = self.loads[:, None, :]
        after = loads + self.key_loads[:, keys, None]
        lowest = np.argmin(self.loads, axis=1)
        resources = np.arange(len(self.loads))
        others = np.repeat(self.loads[resources, lowest][:, None], self.pairs, axis=1)
        # On the least loaded pair itself, the next one is the least loaded of the others.
        others[resources, lowest] = np.partition(self.loads, min(1, self.pairs - 1), axis=1)[
            :, min(1, self.pairs - 1)
        ]
        highest = np.maximum(self.loads.max(axis=1)[:, None, None], after)
        lowest = np.minimum(others[:, None, :], after)
        mean = self.loads.mean(axis=1)[:, None] + self.key_loads[:, keys] / self.pairs
        return self.value(
            self.penalty(highest, lowest, mean[:, :, None]), self.spent + self._prices(keys)
        )

    def _prices(self, keys: PlaceArray) -> FloatArray:
        """Return the cost of each key (lines) on each pair (columns)."""
        moved = (self.former[keys, None] != np.arange(self.pairs)) & (
            self.former[keys, None] != NOWHERE
        )
        prices: FloatArray = moved * self.move_cost[keys, None]
        return prices

    def _price(self, key: int, pair: int) -> float:
        moved = self.former[key] not in (NOWHERE, pair)
        return float(self.move_cost[key]) if moved else 0.0
