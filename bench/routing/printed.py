"""The paper's construction as printed: hot keys balanced among themselves over a plain ring.

ρ is (max - min) / (θ · mean) with the geometric mean, and readj overwrites the utility that gains
are measured from while it iterates over the candidates. Only the reproduction uses this.
"""

import numpy as np
from bench.routing.world import Measured, World, pair_names

from tandem.routing.planning.heuristics import redist, scan
from tandem.routing.planning.placement import NOWHERE, Board
from tandem.routing.planning.settings import Beta, FloatArray, Heuristic, PlanningSettings
from tandem.routing.planning.thresholds import theta
from tandem.routing.planning.workload import hot_keys
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.ring import OwnerArray

VNODES = 1_000
"""Virtual nodes of a channel; the text leaves open whether 1,000 are one channel's or all."""

_FLOOR = 1e-9


class PrintedBoard(Board):
    """A board with the paper's ρ; `tolerance` holds θ."""

    def penalty(self, highest: FloatArray, lowest: FloatArray, mean: FloatArray) -> FloatArray:
        """ρ as printed, with a floor so that one balanced resource does not zero it."""
        scale = self.tolerance.reshape(-1, *[1] * (highest.ndim - 1)) * mean
        each = np.maximum((highest - lowest) / np.maximum(scale, 1e-300), _FLOOR)
        combined: FloatArray = np.prod(each, axis=0) ** (1 / len(each))
        return combined


def grow(
    world: World, settings: PlanningSettings, heuristic: Heuristic, pairs: int
) -> list[Measured]:
    """Add channels one at a time; return the result of every step from the second on."""
    owners: OwnerArray = np.zeros(world.domain, dtype=np.uint16)
    tracked = 0
    results = []
    for count in range(2, pairs + 1):
        ring = RoutingFunction.plain(pair_names(count), VNODES).owner_of(world.hashes)
        hot = len(hot_keys(world.profile, settings, count)[0])
        board = _board(world, settings, owners, ring, hot, max(tracked, hot), count)
        match heuristic:
            case Heuristic.SCAN:
                scan(board)
            case Heuristic.REDIST:
                redist(board)
            case Heuristic.READJ:
                _readj(board, owners[:hot])
        ring[:hot] = board.places
        measured = world.measure(owners, ring, count, settings)
        results.append(Measured(measured.imbalance, measured.migration, measured.each, hot))
        owners, tracked = ring, hot
    return results


def _board(
    world: World,
    settings: PlanningSettings,
    owners: OwnerArray,
    ring: OwnerArray,
    hot: int,
    considered: int,
    pairs: int,
) -> PrintedBoard:
    active = [each for each in settings.resources if each.beta is not Beta.CONSTANT]
    frequencies = world.frequencies[:considered]
    cost = settings.state.beta.of(frequencies)
    dropped = slice(hot, considered)
    return PrintedBoard(
        loads=np.zeros((len(active), pairs)),
        key_loads=np.array([each.beta.of(frequencies[:hot]) for each in active]),
        tolerance=np.array([theta(each.tolerance, pairs) for each in active]),
        volume=frequencies[:hot],
        move_cost=cost[:hot],
        former=owners[:hot].astype(np.intp),
        utility=settings.utility,
        ideal_cost=float(cost.sum()) / pairs,
        spent=float(cost[dropped][owners[dropped] != ring[dropped]].sum()),
    )


def _readj(board: Board, start: OwnerArray) -> None:
    """Algorithm 4 with `break` read as `continue`, the rest as printed."""
    for key, place in enumerate(start):
        board.put(key, int(place))
    last = 0.0
    while True:
        first, second, target = _all_adjustments(board)
        penalty, value = _after(board, first, second, target)
        volume = np.append(board.volume, 0.0)
        moved = np.maximum(np.abs(volume[first] - volume[second]), 1e-12)
        best, gain = NOWHERE, -np.inf
        for each in np.flatnonzero(penalty < board.penalty_now() * (1 - 1e-9)):
            candidate = (last - value[each]) / moved[each]
            if candidate > gain:
                best, gain, last = int(each), candidate, float(value[each])
        if best == NOWHERE:
            return
        if second[best] < board.keys:
            board.put(int(second[best]), int(board.places[first[best]]))
        board.put(int(first[best]), int(target[best]))


def _all_adjustments(board: Board) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every move and swap, channel by channel."""
    keys = np.arange(board.keys)
    first = np.repeat(keys, board.pairs + board.keys)
    second = np.tile(np.append(np.full(board.pairs, board.keys), keys), board.keys)
    target = np.tile(np.append(np.arange(board.pairs), board.places), board.keys)
    different = board.places[first] != target
    order = np.lexsort((target[different], board.places[first[different]]))
    return first[different][order], second[different][order], target[different][order]


def _after(
    board: Board, first: np.ndarray, second: np.ndarray, target: np.ndarray
) -> tuple[FloatArray, FloatArray]:
    """ρ and U after each adjustment, computed from all loads."""
    rows = np.arange(len(first))
    key_loads = np.append(board.key_loads, np.zeros((len(board.key_loads), 1)), axis=1)
    moved = key_loads[:, first] - key_loads[:, second]
    loads = np.repeat(board.loads[:, None, :], len(first), axis=1)
    loads[:, rows, board.places[first]] -= moved
    loads[:, rows, target] += moved
    penalty = board.penalty(loads.max(axis=2), loads.min(axis=2), loads.mean(axis=2))
    home = np.append(board.former, NOWHERE)
    cost = np.append(board.move_cost, 0.0)
    source = board.places[first]
    extra = cost[first] * ((home[first] == source) * 1.0 - (home[first] == target))
    extra += cost[second] * ((home[second] == target) * 1.0 - (home[second] == source))
    return penalty, board.value(penalty, board.spent + extra)
