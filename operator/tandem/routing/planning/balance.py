"""The balance of load over pairs, in the measures that users set bounds for."""

import math
from dataclasses import dataclass

import numpy as np

from tandem.routing.planning.settings import FloatArray, PlanningSettings
from tandem_core.routing.ring import OwnerArray
from tandem_core.routing.xxh64 import U64Array


@dataclass(frozen=True)
class ResourceBalance:
    """One resource over all pairs."""

    name: str
    loads: tuple[float, ...]
    """Load of each pair, in the order of the function's pairs."""
    tolerance: float

    @property
    def ratio(self) -> float:
        """r: most loaded over least loaded pair; infinite if only some pairs have load."""
        least, most = min(self.loads), max(self.loads)
        if most <= 0:
            return 1.0
        return most / least if least > 0 else math.inf

    @property
    def relative(self) -> float:
        """The ratio over the tolerance; above 1 the bound is missed."""
        return self.ratio / self.tolerance

    @property
    def missed(self) -> bool:
        """Whether the imbalance exceeds the tolerance."""
        return self.ratio > self.tolerance


@dataclass(frozen=True)
class Balance:
    """All resources over all pairs."""

    resources: tuple[ResourceBalance, ...]

    @property
    def relative(self) -> float:
        """b: geometric mean of the resources' relative imbalance; at most 1 is the aim."""
        return math.prod(each.relative for each in self.resources) ** (1 / len(self.resources))

    @property
    def missed(self) -> tuple[ResourceBalance, ...]:
        """The resources whose bound is missed."""
        return tuple(each for each in self.resources if each.missed)


def balance_of(loads: FloatArray, settings: PlanningSettings) -> Balance:
    """Return the balance of loads with a line for each resource and a column for each pair."""
    return Balance(
        tuple(
            ResourceBalance(resource.name, tuple(map(float, line)), resource.tolerance)
            for resource, line in zip(settings.resources, loads, strict=True)
        )
    )


def modulo_owner(hashes: U64Array, pairs: int) -> OwnerArray:
    """Return owners by hash modulo number of pairs, which moves nearly all keys at any change."""
    return (hashes % np.uint64(pairs)).astype(np.uint16)
