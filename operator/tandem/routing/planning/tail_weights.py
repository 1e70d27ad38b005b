"""Computes weights of pairs on the ring: a pair with a very hot key gets fewer other keys.

Explicit entries alone cannot balance a key that is itself larger than a pair's share of the hot
ones: its pair also keeps a full share of all other keys. With fewer virtual nodes a pair loses
buckets, and no other pair does; with more it gains buckets, and no other pair does.
"""

import numpy as np
import numpy.typing as npt

from tandem.routing.planning.settings import FloatArray
from tandem.routing.planning.workload import loads_by_owner
from tandem_core.routing.function import MOST_VNODES, NOMINAL_VNODES
from tandem_core.routing.ring import Ring

VnodeArray = npt.NDArray[np.int64]

_ROUNDS = 6
"""A pair's share follows its virtual nodes only roughly, so a few corrections are needed."""

_HALVINGS = 50
_CLOSE_ENOUGH = 0.01


def band_of(loads: FloatArray, ratio: float) -> tuple[float, float]:
    """Return the band [x, ratio·x] into which loads can be brought with the least movement.

    Loads above the band are lowered to its edge, loads below are raised; the sum stays.
    """
    low, high = float(loads.min()), float(loads.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if np.clip(loads, middle, ratio * middle).sum() < loads.sum():
            low = middle
        else:
            high = middle
    return low, ratio * low


def compensating_vnodes(
    ring: Ring, vnodes: VnodeArray, bucket_loads: FloatArray, fixed: FloatArray, ratio: float
) -> VnodeArray:
    """Return virtual nodes that bring all pairs within `ratio` of each other, with few changes.

    `fixed` is the load of explicit entries on each pair and `bucket_loads` that of each bucket,
    in one line each: the mean over resources, so that a fair share of all load is 1.
    """
    for _ in range(_ROUNDS):
        tail = loads_by_owner(bucket_loads[None, :], ring.owners(vnodes), len(vnodes))[0]
        low, high = band_of(tail + fixed, ratio)
        wanted = np.maximum(np.clip(tail + fixed, low, high) - fixed, 0.0)
        off = np.abs(wanted - tail) > _CLOSE_ENOUGH
        if not off.any():
            break
        # A pair without buckets has nothing to scale: it gets the usual number for its share.
        usual = wanted / max(float(tail.sum()), 1e-12) * vnodes.sum()
        scaled = np.where(tail > 0, vnodes * wanted / np.maximum(tail, 1e-12), usual)
        aimed = np.where(off, np.rint(scaled), vnodes)
        vnodes = np.clip(aimed, 0, MOST_VNODES).astype(np.int64)
        if not vnodes.any():
            vnodes = np.full(len(vnodes), NOMINAL_VNODES)
    return vnodes
