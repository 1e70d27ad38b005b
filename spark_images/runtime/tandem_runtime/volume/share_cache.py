"""Caches shares of chunks until the second replica of a pair has fetched them.

Both replicas of a pair fetch the same share of every chunk, usually within moments. It is cut out
for the first and kept for the second. The oldest shares are evicted when room is needed [12]; an
evicted share is cut out again on request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tandem_runtime.protocol.effects import Key, Select
from tandem_runtime.volume.chunks import share_of

MOST_BYTES = 32 * 2**20
"""Most bytes of cached shares; a larger share is not cached."""

Buffer = Any
_Name = tuple[Key, Select | None]


class Shares:
    """Cuts shares out of chunks, for several threads at once."""

    def __init__(self, read: Callable[[Key], Buffer], most: int = MOST_BYTES) -> None:
        """`read` gives the bytes of a chunk, which never change."""
        self._read = read
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[_Name, Future[Buffer]] = {}
        """Shares that one reader has requested, the oldest first."""
        self._sizes: dict[_Name, int] = {}

    def get(self, key: Key, select: Select | None) -> Buffer:
        """The share of a chunk.

        Raises:
            FileNotFoundError: the chunk has been erased.
        """
        name = (key, select)
        with self._lock:
            share = self._kept.pop(name, None)
            self._sizes.pop(name, None)
            first = share is None
            if share is None:
                share = self._kept[name] = Future()
        if first:
            self._cut(name, share)
        return share.result()

    def _cut(self, name: _Name, share: Future[Buffer]) -> None:
        key, select = name
        try:
            whole = self._read(key)
            cut = share_of(whole, select)
        except BaseException as problem:  # noqa: BLE001 - raised again in every waiter
            share.set_exception(problem)
            self._forget(name, share)
            return
        share.set_result(cut)
        if cut is whole:
            # The whole chunk, which is mapped from the volume: reading it again costs nothing.
            self._forget(name, share)
        else:
            self._keep(name, share, len(cut))

    def _keep(self, name: _Name, share: Future[Buffer], size: int) -> None:
        with self._lock:
            if self._kept.get(name) is share:
                self._sizes[name] = size
            while sum(self._sizes.values()) > self._most:
                oldest = next(iter(self._sizes))
                del self._sizes[oldest], self._kept[oldest]

    def _forget(self, name: _Name, share: Future[Buffer]) -> None:
        with self._lock:
            if self._kept.get(name) is share:
                del self._kept[name]
