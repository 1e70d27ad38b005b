"""Summary of key frequencies: the hottest keys, with error bounds on their counts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tandem_core.routing.xxh64 import U64Array

ROWS, BYTES, MEMORY = range(3)
"""Columns of every table of amounts: rows; their size; state kept for them, in bytes."""

MEASURES = 3

AmountArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeySummary:
    """Counts of the keys seen most, by hash.

    Invariant, for the true number t of rows of any key: a listed key has
    `rows <= t <= rows + errors`; any other has `t <= unlisted`. No error exceeds `unlisted`.
    Bytes and memory are those of the rows counted, so they too are never above the truth.
    """

    hashes: U64Array
    """Ascending, distinct."""
    amounts: AmountArray
    """One line for each hash: rows, bytes, memory."""
    errors: AmountArray
    """Rows that each key may have had beyond those counted."""
    unlisted: int
    """Bound on the rows of a key that is not listed."""
    total_rows: int

    @property
    def rows(self) -> AmountArray:
        """Rows counted for each key."""
        return self.amounts[:, ROWS]

    def at_least(self, rows: float) -> U64Array:
        """Return every key with at least this many rows, and none with over `unlisted` fewer.

        Complete only above `unlisted` rows: keys with fewer may be missing altogether.
        """
        return self.hashes[self.rows >= rows - self.unlisted]

    def amounts_of(self, hashes: U64Array) -> AmountArray:
        """Return the amounts of the given keys; zeros for keys that are not listed."""
        if len(self.hashes) == 0:
            return np.zeros((len(hashes), MEASURES), dtype=np.int64)
        places = np.searchsorted(self.hashes, hashes)
        places[places == len(self.hashes)] = 0
        listed = self.hashes[places] == hashes
        return np.where(listed[:, None], self.amounts[places], 0)

    @classmethod
    def empty(cls) -> "KeySummary":
        """Return the summary of no rows."""
        none = np.zeros((0, MEASURES), dtype=np.int64)
        return cls(np.empty(0, dtype=np.uint64), none, none[:, ROWS], 0, 0)


def merge_summaries(summaries: Sequence[KeySummary]) -> KeySummary:
    """Merge summaries into one of all rows; the order of the parts does not matter.

    A key that a part does not list may have had that part's `unlisted` rows there. Merging
    merged summaries keeps the invariant, but may list fewer keys than merging all at once.
    """
    if not summaries:
        return KeySummary.empty()
    unlisted = sum(part.unlisted for part in summaries)
    hashes, place = np.unique(
        np.concatenate([part.hashes for part in summaries]), return_inverse=True
    )
    amounts = np.zeros((len(hashes), MEASURES), dtype=np.int64)
    errors = np.full(len(hashes), unlisted, dtype=np.int64)
    start = 0
    for part in summaries:
        into = place[start : start + len(part.hashes)]
        amounts[into] += part.amounts
        errors[into] += part.errors - part.unlisted
        start += len(part.hashes)
    # A key that cannot have more rows than an unlisted one adds no information and costs memory.
    kept = amounts[:, ROWS] + errors > unlisted
    total = sum(part.total_rows for part in summaries)
    return KeySummary(hashes[kept], amounts[kept], errors[kept], unlisted, total)
