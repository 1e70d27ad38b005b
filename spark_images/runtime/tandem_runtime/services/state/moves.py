"""Rewrites copied checkpoints for other keys or other numbers of state partitions.

A holder reduces its own state to the keys of a new pair, a new pair unites what it got from each of
its parents. Both go through the state stores of the driver's JVM, in sessions of their own: views
and settings of the running query's session do not change.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from pyspark.sql import SparkSession

from tandem_core.contract.intent import Share
from tandem_core.model.pipeline import Pipeline
from tandem_runtime.services.cpu_priority import lower_thread
from tandem_runtime.services.state.owned_keys import KeyResolver
from tandem_runtime.spark.checks.key_places import KeyPlace
from tandem_runtime.spark.checks.state_operators import key_places
from tandem_runtime.spark.jvm.launch import native_thread, state_partitions
from tandem_runtime.spark.state.mover import MoveTarget, Parent, move_state, partitions_after

_log = logging.getLogger(__name__)


class StateMoves:
    """Moves state between checkpoints of a pipeline's query. Used by one thread at a time."""

    def __init__(
        self,
        pipeline: Pipeline,
        session: Callable[[], SparkSession],
        resolver: KeyResolver,
        own: Callable[[], Share],
    ) -> None:
        """`session` gives a new session, and blocks until Spark is up; `own` the own share."""
        self._pipeline = pipeline
        self._new_session = session
        self._resolver = resolver
        self._own = own

    def give_way(self) -> None:
        """Lower the CPU priority of the calling thread's work in the JVM, for good."""
        lower_thread(native_thread(self._session))

    def reduce(self, tree: Path, epoch: int, share: Share, target: Path) -> None:
        """Make a checkpoint of those keys of the own state that belong to another share.

        Raises:
            UnknownFunction: a routing function is not known.
            CannotMove, UnknownKeyPlace, UnsupportedCheckpoint: the state cannot be moved by key.
        """
        mine, theirs = self._resolver.keys_of(self._own()), self._resolver.keys_of(share)
        wanted = MoveTarget(target, theirs, partitions_after(tree, epoch))
        self._move([Parent(tree, mine)], epoch, wanted)

    def unite(self, trees: Sequence[Path], epoch: int, target: Path) -> None:
        """Make a checkpoint of reduced ones, with as many state partitions as this driver wants.

        It is the only one itself if there is nothing to rewrite. An earlier attempt is removed.

        Raises:
            UnknownFunction: the routing function of the own share is not known.
            CannotMove, UnknownKeyPlace, UnsupportedCheckpoint: they cannot be united.
        """
        shutil.rmtree(target, ignore_errors=True)
        partitions = state_partitions(self._pipeline.spec.spark)
        if len(trees) == 1 and partitions_after(trees[0], epoch) == partitions:
            trees[0].replace(target)
            return
        mine = self._resolver.keys_of(self._own())
        parents = [Parent(tree, mine) for tree in trees]
        self._move(parents, epoch, MoveTarget(target, mine, partitions))

    def _move(self, parents: list[Parent], epoch: int, target: MoveTarget) -> None:
        began = time.monotonic()
        moved = move_state(self._session, parents, epoch, target, self._places)
        read, kept = (sum(getattr(one, name) for one in moved) for name in ("read", "kept"))
        seconds = time.monotonic() - began
        _log.info("moved %d of %d rows of state at epoch %d in %.1f s", kept, read, epoch, seconds)

    @cached_property
    def _session(self) -> SparkSession:
        return self._new_session()

    @cached_property
    def _places(self) -> tuple[KeyPlace, ...]:
        return key_places(self._session, self._pipeline)
