"""The paper's experimental setting: Zipf keys, pairs added one at a time, exact measurement."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tandem.routing.load.distinct_keys import DistinctSketch
from tandem.routing.load.key_summary import MEASURES, KeySummary
from tandem.routing.load.profile import LoadProfile
from tandem.routing.planning.settings import Beta, FloatArray, Measure, PlanningSettings, Resource
from tandem_core.routing.ring import BUCKETS, OwnerArray, bucket_of
from tandem_core.routing.xxh64 import U64Array, hash_words

BETAS = {"C": Beta.CONSTANT, "L": Beta.LINEAR, "Q": Beta.QUADRATIC}
_SCALE = 10**12
"""Frequencies as whole numbers of rows, fine enough for the rarest key."""
_LISTED = 60_000
"""Hottest keys that the profile lists; others are known by bucket only."""


def settings_for(
    functions: str = "LCL", *, tolerance: float = 1.2, sigma: float = 0.1
) -> PlanningSettings:
    """Settings with the paper's three-letter resource functions (state, computation, network)."""
    state, computation, network = (
        Resource(name, Measure.ROWS, BETAS[letter], tolerance)
        for name, letter in zip(("state", "computation", "network"), functions, strict=True)
    )
    return PlanningSettings(state, computation, network, untracked_share=sigma)


def pair_names(count: int) -> list[str]:
    """Names in the order in which pairs are added."""
    return [f"pair-{number:04d}" for number in range(count)]


@dataclass(frozen=True, eq=False)
class World:
    """A domain of keys with Zipf frequencies; another seed gives other keys, distributed alike."""

    domain: int = 1_000_000
    skew: float = 1.0
    seed: int = 0

    @cached_property
    def hashes(self) -> U64Array:
        """Hash of each key, hottest first."""
        return hash_words(np.arange(self.domain, dtype=np.uint64), seed=self.seed + 1)

    @cached_property
    def frequencies(self) -> FloatArray:
        """Share of each key, hottest first; sums to 1."""
        weights = 1 / np.arange(1, self.domain + 1, dtype=np.float64) ** self.skew
        shares: FloatArray = weights / weights.sum()
        return shares

    @cached_property
    def profile(self) -> LoadProfile:
        """The profile that perfect counting would report."""
        rows = np.rint(self.frequencies * _SCALE).astype(np.int64)
        buckets = np.zeros((BUCKETS, MEASURES), dtype=np.int64)
        buckets[:, 0] = np.bincount(bucket_of(self.hashes), rows, minlength=BUCKETS)
        listed = min(self.domain, _LISTED)
        order = np.argsort(self.hashes[:listed])
        amounts = np.zeros((listed, MEASURES), dtype=np.int64)
        amounts[:, 0] = rows[:listed][order]
        keys = KeySummary(
            self.hashes[:listed][order],
            amounts,
            np.zeros(listed, dtype=np.int64),
            unlisted=int(rows[listed - 1]) if listed < self.domain else 0,
            total_rows=int(rows.sum()),
        )
        return LoadProfile(keys, buckets, DistinctSketch.empty().with_hashes(self.hashes))

    def measure(
        self, old: OwnerArray, new: OwnerArray, pairs: int, settings: PlanningSettings
    ) -> "Measured":
        """The paper's b and m, over every key of the domain."""
        relative = []
        for resource in settings.resources:
            load = np.bincount(new, resource.beta.of(self.frequencies), minlength=pairs)
            relative.append(float(load.max() / max(load.min(), 1e-300)) / resource.tolerance)
        cost = settings.state.beta.of(self.frequencies)
        migration = float(cost[old != new].sum() / cost.sum() * pairs)
        return Measured(float(np.prod(relative)) ** (1 / 3), migration, tuple(relative))


@dataclass(frozen=True)
class Measured:
    """Result of one step from N-1 to N pairs."""

    imbalance: float
    migration: float
    each: tuple[float, ...]
    """Relative imbalance of state, computation and network."""
    explicit: int = 0
    """Explicit entries of the function."""
