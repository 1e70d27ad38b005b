"""Counts the recent load of keys in a sliding window, so that formerly hot keys are forgotten.

The stream is cut into panes of half a window. The last two whole panes and the growing one count:
between W and 1.5·W rows after the start, as with the paper's three staggered counters, but each
row is counted once instead of three times. The panes' lossy counts are merged on demand; their
errors add up to at most ε times the rows in the window.
"""

from collections import deque

import numpy as np

from tandem.routing.load.distinct_keys import DistinctSketch
from tandem.routing.load.key_summary import BYTES, MEASURES, MEMORY, ROWS, AmountArray
from tandem.routing.load.lossy_counter import LossyCounter
from tandem.routing.load.profile import LoadProfile, merge_profiles
from tandem_core.routing.errors import InvalidSettingError
from tandem_core.routing.ring import BUCKETS, bucket_of
from tandem_core.routing.xxh64 import U64Array

PANES = 3
_PANES_IN_A_WINDOW = PANES - 1


class KeyCounter:
    """Counts the load of keys over the last `window_rows` to 1.5·`window_rows` rows.

    Space is bounded by `most_entries` keys and three tables of bucket amounts (1.5 MiB each).
    """

    def __init__(self, window_rows: int, epsilon: float) -> None:
        if window_rows < _PANES_IN_A_WINDOW:
            raise InvalidSettingError(f"a window of {window_rows} rows; at least 2 are needed")
        self._pane_rows = -(-window_rows // _PANES_IN_A_WINDOW)
        self._epsilon = epsilon
        self._panes: deque[_Pane] = deque([_Pane(epsilon)], maxlen=PANES)

    @property
    def rows(self) -> int:
        """Rows in the window now."""
        return sum(pane.counter.rows for pane in self._panes)

    @property
    def entries(self) -> int:
        """Keys remembered now, in all panes."""
        return sum(pane.counter.entries for pane in self._panes)

    @property
    def most_entries(self) -> int:
        """The bound on `entries`, whatever the stream."""
        return PANES * LossyCounter(self._epsilon).most_entries(self._pane_rows)

    def add(
        self, hashes: U64Array, sizes: AmountArray | None = None, memory: AmountArray | None = None
    ) -> None:
        """Count rows by their key hashes, with the bytes and the growth of state of each."""
        start = 0
        while start < len(hashes):
            if self._panes[-1].counter.rows == self._pane_rows:
                self._panes.append(_Pane(self._epsilon))
            room = self._pane_rows - self._panes[-1].counter.rows
            part = slice(start, start + room)
            self._panes[-1].add(
                hashes[part],
                None if sizes is None else sizes[part],
                None if memory is None else memory[part],
            )
            start += room

    def profile(self) -> LoadProfile:
        """Return the load in the current window; later rows do not change it."""
        return merge_profiles([pane.profile() for pane in self._panes])


class _Pane:
    """The rows of half a window."""

    def __init__(self, epsilon: float) -> None:
        self.counter = LossyCounter(epsilon)
        self._buckets: AmountArray = np.zeros((MEASURES, BUCKETS), dtype=np.int64)
        self._distinct = DistinctSketch.empty()

    def add(self, hashes: U64Array, sizes: AmountArray | None, memory: AmountArray | None) -> None:
        self.counter.add(hashes, sizes, memory)
        buckets = bucket_of(hashes)
        self._buckets[ROWS] += np.bincount(buckets, minlength=BUCKETS)
        for measure, values in ((BYTES, sizes), (MEMORY, memory)):
            if values is not None:
                sums = np.bincount(buckets, values, minlength=BUCKETS)
                self._buckets[measure] += sums.astype(np.int64)
        self._distinct = self._distinct.with_hashes(hashes)

    def profile(self) -> LoadProfile:
        return LoadProfile(self.counter.summary(), self._buckets.T.copy(), self._distinct)
