"""Lossy counting of key frequencies, a column of hashes at a time.

Rows are counted in windows of ceil(1/ε). A key new in window i starts at count 1 with error i-1;
when window i closes, keys with count + error <= i are forgotten. So a count is never above the
truth and never below it by more than ε times the rows seen.

Windows close in blocks: with b windows a block, keys new in a block carry the number of windows
closed before it as error, and forgetting happens at the block's end. The bounds stay the same,
and small windows do not cost one pass through Python each. `windows_per_block=1` is the
algorithm exactly as published.
"""

import math

import numpy as np
import numpy.typing as npt

from tandem.routing.load.key_summary import BYTES, MEASURES, MEMORY, ROWS, AmountArray, KeySummary
from tandem_core.routing.errors import InvalidSettingError
from tandem_core.routing.xxh64 import U64Array

_LEAST_BLOCK_ROWS = 16_384
"""Rows below which a block's fixed cost in Python outweighs the counting."""


class LossyCounter:
    """Counts rows, bytes and memory of keys in bounded space.

    The result depends on the order of rows, never on how they are cut into batches.
    """

    def __init__(self, epsilon: float, windows_per_block: int | None = None) -> None:
        if not 0 < epsilon <= 1:
            raise InvalidSettingError(f"epsilon is {epsilon}; it must be within (0, 1]")
        self.window_rows = math.ceil(1 / epsilon)
        self.block_windows = windows_per_block or -(-_LEAST_BLOCK_ROWS // self.window_rows)
        self.rows = 0
        self._hashes: U64Array = np.empty(0, dtype=np.uint64)
        self._amounts: AmountArray = np.zeros((MEASURES, 0), dtype=np.int64)
        self._errors: AmountArray = np.zeros(0, dtype=np.int64)

    @property
    def block_rows(self) -> int:
        """Rows between two rounds of forgetting."""
        return self.window_rows * self.block_windows

    @property
    def closed_windows(self) -> int:
        """Number of closed windows; no count is below the truth by more."""
        return self.rows // self.block_rows * self.block_windows

    @property
    def entries(self) -> int:
        """Keys remembered now."""
        return len(self._hashes)

    def most_entries(self, rows: int) -> int:
        """Return the bound on `entries` for any stream of this many rows.

        A key that entered j blocks before a close remains after it only if it occurred at least
        j·b times since, and a block has b·w rows: at most w·(1 + 1/2 + … + 1/blocks) keys remain.
        Until the next close every further row may add a key.
        """
        blocks = rows // self.block_rows
        left = self.window_rows * (1 + math.log(blocks)) if blocks else 0
        return min(rows, math.floor(left) + self.block_rows)

    def add(
        self, hashes: U64Array, sizes: AmountArray | None = None, memory: AmountArray | None = None
    ) -> None:
        """Count rows by their key hashes, with the bytes and the growth of state of each."""
        start = 0
        while start < len(hashes):
            room = self.block_rows - self.rows % self.block_rows
            part = slice(start, start + room)
            self._fold(
                *_by_key(
                    hashes[part],
                    None if sizes is None else sizes[part],
                    None if memory is None else memory[part],
                )
            )
            self.rows += len(hashes[part])
            if self.rows % self.block_rows == 0:
                self._forget()
            start += room

    def summary(self) -> KeySummary:
        """Return the summary of all rows so far; later rows do not change it."""
        return KeySummary(
            self._hashes,
            self._amounts.T,
            self._errors,
            unlisted=self.closed_windows,
            total_rows=self.rows,
        )

    def _fold(self, hashes: U64Array, amounts: AmountArray) -> None:
        """Add amounts of distinct, ascending keys."""
        both = np.concatenate([self._hashes, hashes])
        # Stable: if both have a key, the old entry with its error comes first.
        order = np.argsort(both, kind="stable")
        self._hashes, starts = _runs(both[order])
        errors = np.concatenate([self._errors, np.full(len(hashes), self.closed_windows)])
        self._errors = errors[order[starts]]
        amounts = np.concatenate([self._amounts, amounts], axis=1)
        self._amounts = np.add.reduceat(amounts[:, order], starts, axis=1)

    def _forget(self) -> None:
        """Drop the keys that a closing block makes insignificant."""
        kept = self._amounts[ROWS] + self._errors > self.closed_windows
        self._hashes = self._hashes[kept]
        self._amounts = self._amounts[:, kept]
        self._errors = self._errors[kept]


def _by_key(
    hashes: U64Array, sizes: AmountArray | None, memory: AmountArray | None
) -> tuple[U64Array, AmountArray]:
    """Return distinct ascending hashes with their amounts, one line for each measure."""
    plain = sizes is None and memory is None
    order = None if plain else np.argsort(hashes)
    distinct, starts = _runs(np.sort(hashes) if order is None else hashes[order])
    amounts = np.zeros((MEASURES, len(distinct)), dtype=np.int64)
    amounts[ROWS] = np.diff(np.append(starts, len(hashes)))
    for measure, values in ((BYTES, sizes), (MEMORY, memory)):
        if values is not None:
            amounts[measure] = np.add.reduceat(values[order], starts)
    return distinct, amounts


def _runs(ordered: U64Array) -> tuple[U64Array, npt.NDArray[np.intp]]:
    """Return the distinct values of an ascending array and the start of each."""
    begins = np.empty(len(ordered), dtype=np.bool_)
    begins[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    return ordered[starts], starts
