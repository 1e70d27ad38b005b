"""Draws ranks of keys from a Zipf distribution: rank k has the weight (k + 1) ** -skew."""

import math

import numpy as np

FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]
RankArray = np.ndarray[tuple[int], np.dtype[np.int64]]

_EXACT = 100_000
"""Number of ranks whose weights are added one by one. Beyond, an integral replaces the sum, with a
relative error below one billionth at this rank."""


class Zipf:
    """Draws ranks by inverting the distribution function: equal draws give equal ranks."""

    def __init__(self, keys: int, skew: float) -> None:
        self._keys = keys
        self._skew = skew
        exact = min(keys, _EXACT)
        self._head = np.cumsum(np.arange(1, exact + 1, dtype=np.float64) ** -skew)
        self._tail_begins = self._integral(exact + 0.5)
        tail = self._integral(keys + 0.5) - self._tail_begins
        self._total = float(self._head[-1] + (tail if keys > exact else 0.0))

    def ranks(self, uniform: FloatArray) -> RankArray:
        """Return the ranks, from 0 on, for numbers in [0, 1)."""
        if self._skew == 0:
            return (uniform * self._keys).astype(np.int64)
        weight = uniform * self._total
        ranks = np.searchsorted(self._head, weight, side="right")
        beyond = ranks == len(self._head)
        if beyond.any():
            ranks[beyond] = self._tail_ranks(weight[beyond] - self._head[-1])
        return np.minimum(ranks, self._keys - 1)

    def _tail_ranks(self, weight: FloatArray) -> RankArray:
        place = self._inverse(self._tail_begins + weight)
        first = len(self._head)
        ranks: RankArray = np.floor(np.minimum(place, self._keys) - 0.5).astype(np.int64)
        return np.maximum(ranks, first)

    def _integral(self, place: float) -> float:
        """Return the integral of the weights up to a place, up to a constant."""
        if self._skew == 1:
            return math.log(place)
        return math.pow(place, 1 - self._skew) / (1 - self._skew)

    def _inverse(self, integral: FloatArray) -> FloatArray:
        if self._skew == 1:
            return np.exp(integral)
        base = np.maximum(integral * (1 - self._skew), np.finfo(np.float64).tiny)
        return base ** (1 / (1 - self._skew))
