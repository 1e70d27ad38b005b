"""Readj: improves the present placement by moves and swaps that each lower the imbalance.

In the corrected form: a candidate that does not lower ρ is skipped and the search continues; gains
are measured from the utility at the beginning of the round, independent of the order of
candidates; keys of equal volume may be swapped.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tandem.routing.planning.placement import Board, PlaceArray
from tandem.routing.planning.settings import FloatArray

MOST_CANDIDATES = 3_000_000
"""Candidates considered in one run: a bound on time (about a second) that needs no clock."""

_MANY_CANDIDATES = 5_000
"""With more swaps than this, swaps are considered only once no move is good enough."""

_LEAST_FALLS = (0.1, 0.01, 0.001)
"""Least relative decreases of ρ in one adjustment; each applies once none achieves the previous.

Gains are per volume moved, so without these bounds many nearly useless swaps of keys of similar
size would come first.
"""

_GOOD_FALLS = _LEAST_FALLS[:2]

_LEAST_VOLUME = 1e-3
"""Volume assumed for a swap of equal keys, relative to the smallest key: just above zero."""


def readj(board: Board, start: PlaceArray) -> bool:
    """Improve the placement `start` until nothing lowers ρ; False if `MOST_CANDIDATES` ended it."""
    for key, place in enumerate(start):
        board.put(key, int(place))
    if board.pairs == 1:
        return True
    looked_at = 0
    while looked_at <= MOST_CANDIDATES:
        moves, swaps = _candidates(board)
        best = None
        if len(swaps) > _MANY_CANDIDATES:
            best = _best(board, moves, _GOOD_FALLS)
            looked_at += len(moves)
        if best is None:
            best = _best(board, moves.joined(swaps), _LEAST_FALLS)
            looked_at += len(moves) + len(swaps)
        if best is None:
            return True
        first, second, target = best
        if second < board.keys:
            board.put(second, int(board.places[first]))
        board.put(first, target)
    return False


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Adjustments, one for each index.

    Key `first` goes to pair `target`; key `second` comes back from there, unless it is the
    number of keys, which stands for none.
    """

    first: PlaceArray
    second: PlaceArray
    target: PlaceArray

    def __len__(self) -> int:
        return len(self.first)

    def joined(self, other: "_Candidates") -> "_Candidates":
        """Return both sets of candidates together."""
        return _Candidates(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
            np.concatenate([self.target, other.target]),
        )

    def only(self, chosen: npt.NDArray[np.bool_]) -> "_Candidates":
        """Return the chosen candidates."""
        return _Candidates(self.first[chosen], self.second[chosen], self.target[chosen])


def _candidates(board: Board) -> tuple[_Candidates, _Candidates]:
    """Return all moves, and all swaps, that can lower ρ.

    ρ falls only if some resource's maximum falls or its minimum rises, so an adjustment must
    touch the first pair at that maximum or minimum. All others are skipped.
    """
    critical = np.unique([board.loads.argmax(axis=1), board.loads.argmin(axis=1)])
    is_critical = np.isin(board.places, critical)
    inside, outside = np.flatnonzero(is_critical), np.flatnonzero(~is_critical)
    leaving, targets = _product(inside, np.arange(board.pairs))
    entering, goals = _product(outside, critical)
    first = np.concatenate([leaving, entering])
    target = np.concatenate([targets, goals])
    moves = _Candidates(first, np.full(len(first), board.keys), target)
    one, other = _product(inside, np.arange(board.keys))
    swaps = _Candidates(one, other, board.places[other])
    # A swap within the critical pairs would be listed twice, once from either side.
    once = (one < other) | ~is_critical[other]
    elsewhere = board.places[one] != swaps.target
    return moves.only(board.places[first] != target), swaps.only(once & elsewhere)


def _product(left: PlaceArray, right: PlaceArray) -> tuple[PlaceArray, PlaceArray]:
    return np.repeat(left, len(right)), np.tile(right, len(left))


def _best(
    board: Board, candidates: _Candidates, falls: tuple[float, ...]
) -> tuple[int, int, int] | None:
    """Return the candidate with the highest gain of those that lower ρ enough, or None."""
    if len(candidates) == 0:
        return None
    now = board.penalty_now()
    penalty = board.penalty(*_extremes_after(board, candidates), board.loads.mean(axis=1)[:, None])
    for fall in falls:
        better = np.flatnonzero(penalty < now * (1 - fall))
        if len(better):
            break
    else:
        return None
    first, second = candidates.first[better], candidates.second[better]
    target = candidates.target[better]
    spent = board.spent + _extra_cost(board, first, second, target)
    value = board.value(penalty[better], spent)
    value_now = board.value(np.array(now), np.array(board.spent))
    volume = np.append(board.volume, 0.0)
    moved = np.maximum(np.abs(volume[first] - volume[second]), _LEAST_VOLUME * board.volume.min())
    choice = int(np.argmax((value_now - value) / moved))
    return int(first[choice]), int(second[choice]), int(target[choice])


def _extremes_after(board: Board, candidates: _Candidates) -> tuple[FloatArray, FloatArray]:
    """Return the maximum and minimum of each resource (lines) after each candidate (columns)."""
    source, target = board.places[candidates.first], candidates.target
    key_loads = np.append(board.key_loads, np.zeros((len(board.key_loads), 1)), axis=1)
    moved = key_loads[:, candidates.first] - key_loads[:, candidates.second]
    at_source = board.loads[:, source] - moved
    at_target = board.loads[:, target] + moved
    highest = np.maximum(at_source, at_target)
    lowest = np.minimum(at_source, at_target)
    for line, loads in enumerate(board.loads):
        order = np.argsort(loads, kind="stable")
        _include_others(loads, order[::-1][:2], source, target, np.maximum, highest[line])
        _include_others(loads, order[:2], source, target, np.minimum, lowest[line])
    return highest, lowest


def _include_others(
    loads: FloatArray,
    extremes: PlaceArray,
    source: PlaceArray,
    target: PlaceArray,
    pick: np.ufunc,
    result: FloatArray,
) -> None:
    """Include the most extreme pair that an adjustment does not touch in its result.

    Checking two pairs is enough: an adjustment that touches both only redistributes their sum, so
    one of them stays at least as extreme as every other pair.
    """
    done = np.zeros(len(result), dtype=np.bool_)
    for pair in extremes:
        untouched = ~done & (source != pair) & (target != pair)
        pick(result, loads[pair], out=result, where=untouched)
        done |= untouched


def _extra_cost(
    board: Board, first: PlaceArray, second: PlaceArray, target: PlaceArray
) -> FloatArray:
    """Return the cost added by adjustments; negative where a key returns to its former place."""
    source = board.places[first]
    former = np.append(board.former, -1)
    cost = np.append(np.where(board.former >= 0, board.move_cost, 0.0), 0.0)
    leaves = (former[first] == source).astype(np.float64) - (former[first] == target)
    returns = (former[second] == target).astype(np.float64) - (former[second] == source)
    extra: FloatArray = cost[first] * leaves + cost[second] * returns
    return extra
