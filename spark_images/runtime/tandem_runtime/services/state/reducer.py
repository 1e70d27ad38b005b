"""Reduces linked checkpoints to the shares of new pairs, one after the other, beside the query.

It works in a thread of its own, whose share of the CPU is what the owner's batches leave. The last
reduced trees are kept, since a joiner whose copy was lost asks again.
"""

from __future__ import annotations

import itertools
import logging
import queue
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tandem_core.contract.intent import Share
from tandem_runtime.services.state.moves import StateMoves

KEPT = 2
"""Reduced trees that are kept: of a pair that is divided, one for each half [12]."""

_log = logging.getLogger(__name__)


class Reduction(NamedTuple):
    """A request: the linked checkpoint, which is removed afterwards, and what becomes of it."""

    tree: Path
    epoch: int
    share: Share
    done: Callable[[Path], None]
    """Takes the reduced tree, which it must not change or move."""
    failed: Callable[[str], None]
    """Takes the reason."""


class Reducer:
    """Makes reduced trees below a directory, which it owns."""

    def __init__(self, directory: Path, moves: StateMoves) -> None:
        self._directory = directory
        self._moves = moves
        self._numbers = itertools.count()
        self._kept: dict[tuple[Share, int], Path] = {}
        """Reduced trees by share and epoch, the oldest first."""
        self._requests: queue.SimpleQueue[Reduction] = queue.SimpleQueue()
        self._started = self._gave_way = False

    def submit(self, request: Reduction) -> None:
        """Queue a request; it is answered from the reducer's thread."""
        if not self._started:
            self._started = True
            threading.Thread(target=self._turn, name="reducer", daemon=True).start()
        self._requests.put(request)

    def _turn(self) -> None:
        while True:
            request = self._requests.get()
            try:
                request.done(self._reduced_once(request))
            except Exception as problem:  # noqa: BLE001 - of Spark or the disk; the query goes on
                request.failed(f"{type(problem).__name__}: {problem}")

    def _reduced_once(self, request: Reduction) -> Path:
        try:
            if not self._gave_way:
                self._moves.give_way()
                self._gave_way = True
            return self._reduced(request)
        finally:
            shutil.rmtree(request.tree, ignore_errors=True)

    def _reduced(self, request: Reduction) -> Path:
        name = (request.share, request.epoch)
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        target = self._directory / str(next(self._numbers))
        self._directory.mkdir(parents=True, exist_ok=True)
        self._moves.reduce(request.tree, request.epoch, request.share, target)
        self._kept[name] = target
        while len(self._kept) > KEPT:
            oldest = next(iter(self._kept))
            shutil.rmtree(self._kept.pop(oldest), ignore_errors=True)
        return target
