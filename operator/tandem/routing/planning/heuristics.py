"""Scan and redist: place hot keys from scratch. The third heuristic is in `readjust`."""

import numpy as np

from tandem.routing.planning.placement import Board, PlaceArray
from tandem.routing.planning.settings import FloatArray

_TIE = 1e-12
"""Relative difference up to which utilities are equal: the order of a sum can cause as much."""


def scan(board: Board) -> None:
    """Place keys in the order given, hottest first, each where the utility is lowest."""
    for key in range(board.keys):
        values = board.placing(np.array([key]))[0]
        board.put(key, _roomiest_of_best(board, values))


def redist(board: Board) -> None:
    """Place repeatedly the key and pair with the lowest utility for the key's volume."""
    unplaced: PlaceArray = np.arange(board.keys)
    while len(unplaced):
        values = board.placing(unplaced) / board.volume[unplaced, None]
        line = int(np.argmin(values.min(axis=1)))
        board.put(int(unplaced[line]), _roomiest_of_best(board, values[line]))
        unplaced = np.delete(unplaced, line)


def _roomiest_of_best(board: Board, values: FloatArray) -> int:
    """Return the pair with the lowest value; of equals the one with most room, then the first.

    Equals are common: placing on a pair that stays between the least and the most loaded one
    changes neither, and without this rule the first pair would fill up.
    """
    best = values.min()
    equal = np.flatnonzero(values <= best + _TIE * abs(best))
    fill = (board.loads[:, equal] / board.tolerance[:, None]).sum(axis=0)
    return int(equal[np.argmin(fill)])
