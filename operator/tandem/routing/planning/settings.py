"""Settings of construction, with the paper's letters beside them."""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from tandem.routing.load.key_summary import BYTES, MEMORY, ROWS
from tandem_core.routing.errors import InvalidSettingError

FloatArray = npt.NDArray[np.float64]

MOST_TRACKED_KEYS = 10_000


class Beta(Enum):
    """The growth of a resource with the amount x of a key (β)."""

    CONSTANT = "constant"
    """The same for every key: windows of a fixed number of rows."""
    LINEAR = "linear"
    """As x: bytes sent, state of time windows, work for each row."""
    QUADRATIC = "quadratic"
    """As x²: each row meets all rows of its key, as in a join of a window with itself."""

    def of(self, amounts: FloatArray) -> FloatArray:
        """Return the load of keys with these amounts, as shares of the total."""
        if self is Beta.CONSTANT:
            return np.ones_like(amounts)
        return amounts if self is Beta.LINEAR else amounts * amounts


class Measure(Enum):
    """The counted amount of a key that determines the load of a resource."""

    ROWS = ROWS
    BYTES = BYTES
    MEMORY = MEMORY


class Utility(Enum):
    """The weighting of imbalance ρ and migration γ; lower is better."""

    UA = "ρ"
    UAPM = "ρ + γ"
    UAPLM = "ρ + log(1 + γ)"
    UATM = "ρ · (1 + γ)"
    UATLM = "ρ · (1 + log(1 + γ))"

    def of(self, imbalance: FloatArray, migration: FloatArray) -> FloatArray:
        """Return the utility of candidates."""
        match self:
            case Utility.UA:
                return imbalance
            case Utility.UAPM:
                return imbalance + migration
            case Utility.UAPLM:
                return imbalance + np.log1p(migration)
            case Utility.UATM:
                return imbalance * (1 + migration)
            case Utility.UATLM:
                scaled: FloatArray = imbalance * (1 + np.log1p(migration))
                return scaled


class Heuristic(Enum):
    """The heuristic that places hot keys."""

    SCAN = "scan"
    """Each key once, hottest first. Quickest with few pairs."""
    REDIST = "redist"
    """Always the key and place that help most for the key's size. Slowest with many hot keys."""
    READJ = "readj"
    """From where keys are now, by moves and swaps that lower the imbalance. Best balance, and
    quickest with many pairs."""


@dataclass(frozen=True)
class Resource:
    """One resource to balance over pairs."""

    name: str
    measure: Measure
    """Amount that determines its load; rows while nothing of this measure was counted."""
    beta: Beta = Beta.LINEAR
    tolerance: float = 1.2
    """α: bound on the load of the most loaded pair over that of the least loaded one. 1.1 keeps
    every pair at 90 % of the busiest; below 1.1 moves become frequent."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tolerance) and self.tolerance >= 1):
            raise InvalidSettingError(
                f"tolerance of {self.name} is {self.tolerance}; it must be 1 or more"
            )


@dataclass(frozen=True)
class PlanningSettings:
    """The settings on which construction depends, besides load and pairs."""

    state: Resource = Resource("state", Measure.MEMORY)
    """Its load is also the cost of moving a key or bucket."""
    computation: Resource = Resource("computation", Measure.ROWS)
    communication: Resource = Resource("communication", Measure.BYTES)
    heuristic: Heuristic = Heuristic.READJ
    utility: Utility = Utility.UAPM
    untracked_share: float = 0.1
    """σ: part of the tolerance that one key outside the explicit entries may use up. Smaller
    means more explicit entries, better balance, longer construction."""
    most_hot_keys: int = 1_000
    """Maximum number of explicit entries; the hottest keys get them, the rest is reported."""

    def __post_init__(self) -> None:
        if not 0 < self.untracked_share <= 1:
            raise InvalidSettingError(
                f"untracked_share is {self.untracked_share}; it must be within (0, 1]"
            )
        if not 0 <= self.most_hot_keys <= MOST_TRACKED_KEYS:
            raise InvalidSettingError(
                f"most_hot_keys is {self.most_hot_keys}; it must be within 0..{MOST_TRACKED_KEYS}"
            )

    @property
    def resources(self) -> tuple[Resource, Resource, Resource]:
        """The three resources, state first."""
        return (self.state, self.computation, self.communication)
