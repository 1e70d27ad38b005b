"""Carries out a replica's effects on Spark: run and commit epochs, copy and install state.

Spark keeps the state of several epochs in one tree of files, its checkpoint: a copy of the tree
has all of them. It differs from the simulator's toy Spark:

- it ignores `ForgetState`: Spark removes old batches by itself. `KeepState` links what it removes;
- it sends no second copy to a joiner while one is under way, and none that cannot be linked, as on
  a full disk: the joiner asks again, or another holder;
- it verifies a copy, and ends with `CopyIncomplete` if something is missing: the next process asks
  for another. It ends likewise if parts from parents cannot be united.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from tandem_core.contract.intent import Share
from tandem_core.model.pipeline import Pipeline
from tandem_runtime.protocol.effects import (
    Finish,
    ForgetState,
    Install,
    KeepState,
    Key,
    Run,
    ShipState,
)
from tandem_runtime.protocol.messages.peers import (
    BatchCommitted,
    BatchResult,
    Installed,
    SparkUp,
)
from tandem_runtime.protocol.types import Header
from tandem_runtime.services.cpu_priority import on_half_the_cores
from tandem_runtime.services.event_loop import EventLoop, Failure
from tandem_runtime.services.metrics import BATCH_SECONDS, EPOCH_COMMITTED, LATE_DROPPED
from tandem_runtime.services.state.copies import StateCopies, checkpoint_of
from tandem_runtime.services.state.moves import StateMoves
from tandem_runtime.services.state.owned_keys import KeyResolver
from tandem_runtime.spark.epochs.engine import Engine
from tandem_runtime.spark.epochs.failure import EngineError, EngineFailure
from tandem_runtime.spark.jvm.java import NoJava
from tandem_runtime.spark.state.checkpoint import (
    IncompleteCheckpoint,
    committed_epochs,
    replace_tree,
    restore,
    verify,
)
from tandem_runtime.volume.chunks import epoch_rows
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Post
from tandem_runtime.wire.frames import Tree

_log = logging.getLogger(__name__)


def checkpoints(volume: Volume) -> list[int]:
    """The epochs whose state a volume has; epoch 0 is the empty state."""
    return committed_epochs(checkpoint_of(volume)) or [0]


def is_begun(found: dict[Key, object]) -> bool:
    """Whether a volume has the state of a replica that has already run."""
    return ("verified",) in found


class Driver:
    """Runs Spark in a thread of its own, one request after the other."""

    def __init__(
        self,
        pipeline: Pipeline,
        volume: Volume,
        post: Post,
        *,
        check: bool = False,
        joins: bool = False,
        yields: bool = False,
    ) -> None:
        """Start Spark.

        Args:
            pipeline: the pipeline to run.
            volume: holds the checkpoint, the inbox and outgoing copies.
            post: sends copies of the state.
            check: refuse a query that twins cannot run, unless it ran here before.
            joins: another replica runs the query meanwhile, so a fast first epoch counts more
                than an early start.
            yields: leave half of the cores to other processes while Spark starts.
        """
        restore(checkpoint_of(volume))
        self._engine = Engine(pipeline, volume.directory / "inbox", self)
        self._pipeline, self._volume, self._post = pipeline, volume, post
        self._check = check
        self._joins = joins
        self._yields = yields
        self._loop: EventLoop | None = None
        self.failure: Failure | None = None
        """Why Spark failed, if it did."""
        self._begun = False
        """Whether the query was given an epoch. The event loop's, which is ahead of the query."""
        self._opened = False
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.booted = threading.Event()
        self.settled = threading.Event()
        """Set once Spark is up, or has failed."""
        self.late_dropped = 0
        self.batch_ms = 0.0
        threading.Thread(target=self._turn, name="driver", daemon=True).start()

    def serve(self, loop: EventLoop, share: Callable[[], Share]) -> None:
        """Carry out the machine's effects from now on; `share` is that of its pair."""
        self._loop = loop
        resolver = KeyResolver(loop.environment.functions)
        self._moves = StateMoves(self._pipeline, self._session, resolver, share)
        copies = StateCopies(self._volume, self._post, self._moves)
        if self.failure is not None:
            loop.fail(self.failure)
        if self.booted.is_set():
            loop.tell(SparkUp())
        loop.lend(
            {
                Run: self._run,
                Finish: lambda effect: self._engine.finish(effect.epoch),
                Install: self._install,
                ShipState: copies.ship,
                ForgetState: lambda _: None,
                KeepState: copies.keep,
            }
        )

    def _turn(self) -> None:
        try:
            fresh = not committed_epochs(checkpoint_of(self._volume))
            with on_half_the_cores() if self._yields else contextlib.nullcontext():
                self._engine.boot(check=self._check and fresh, warm_up=fresh or self._joins)
            self.booted.set()
            self.settled.set()
            self._tell(SparkUp())
            while True:
                self._work.get()()
        except EngineError as error:
            self.failed(error.failure)
        except NoJava as error:
            self.failed(EngineFailure("NoJava", str(error), is_users=True))
        except Exception as error:  # noqa: BLE001 - reported as the failure of Spark
            _log.exception("Spark failed")
            self.failed(EngineFailure(type(error).__name__, str(error)))

    # --- epochs -------------------------------------------------------------------------------

    def _run(self, effect: Run) -> None:
        self._begun = True
        self._work.put(lambda: self._start(effect.header, effect.rows))

    def _start(self, header: Header, rows: tuple[object, ...]) -> None:
        if not self._opened:
            self._opened = True
            self._engine.open(checkpoint_of(self._volume))
        forms = itertools.chain.from_iterable(cast("Any", rows))
        self._engine.run(header.epoch, epoch_rows(forms, header), dict(header.watermarks))

    # --- callbacks of the engine, from its threads ----------------------------------------------

    def result(self, epoch: int, payload: pa.Buffer, size: int, digest: int, rows: int) -> None:
        """Report a computed epoch; its batch function waits for `Finish`."""
        _log.debug("epoch %d has %d rows", epoch, rows)
        self._tell(BatchResult(epoch, size, digest, payload))

    def committed(self, epoch: int) -> None:
        """Report an epoch that Spark has committed."""
        EPOCH_COMMITTED.set(epoch)
        self._tell(BatchCommitted(epoch))

    def progress(self, late_dropped: int, batch_ms: float) -> None:
        """Record the metrics of a micro-batch."""
        self.late_dropped += late_dropped
        self.batch_ms = batch_ms
        LATE_DROPPED.inc(late_dropped)
        BATCH_SECONDS.observe(batch_ms / 1000)

    def failed(self, error: EngineFailure) -> None:
        """End this process after a failure; it is restarted unless the user has to act."""
        _log.error("%s: %s", error.kind, error.message)
        self.failure = Failure(error.kind, error.message, error.hint, error.is_users)
        self.settled.set()
        if self._loop is not None:
            self._loop.fail(self.failure)

    def stop(self) -> None:
        """End Spark."""
        self._engine.stop()

    def _session(self) -> SparkSession:
        """A new session of the driver's JVM, once that is up.

        Raises:
            EngineError: Spark failed.
        """
        self.settled.wait()
        if self.failure is not None:
            raise EngineError(EngineFailure(self.failure.reason, self.failure.message))
        return self._engine.new_session()

    def _tell(self, message: object) -> None:
        if self._loop is not None:
            self._loop.tell(message)

    # --- state --------------------------------------------------------------------------------

    def _install(self, effect: Install) -> None:
        """Replace the checkpoint by a copied one, or by an empty one.

        That of a twin is only moved, and Spark need not be up; a query that runs is opened again
        on it. Parts from parents are united by Spark, in its thread.
        """
        trees = [cast("Tree", part.state) for part in effect.parts]
        if not all(self._is_whole(tree.path, effect.epoch) for tree in trees):
            return
        if effect.share is not None:
            self._work.put(partial(self._unite, trees, effect.epoch))
            return
        move = trees[0].move if trees else Path.mkdir
        if self._begun:
            self._work.put(partial(self._reopen, move, effect.epoch))
            return
        replace_tree(checkpoint_of(self._volume), move)
        self._tell(Installed(effect.epoch))

    def _reopen(self, move: Callable[[Path], None], epoch: int) -> None:
        """Stop the query, which continues from another checkpoint with its next epoch."""
        if self._opened:
            self._engine.close()
            self._opened = False
        replace_tree(checkpoint_of(self._volume), move)
        self._tell(Installed(epoch))

    def _unite(self, trees: list[Tree], epoch: int) -> None:
        """Replace the checkpoint by the union of parts; this process ends if that cannot be."""
        united = self._volume.directory / "united"
        self._moves.unite([tree.path for tree in trees], epoch, united)
        replace_tree(checkpoint_of(self._volume), united.replace)
        self._tell(Installed(epoch))

    def _is_whole(self, tree: Path, epoch: int) -> bool:
        """Verify a copy; if it is incomplete this process ends, and the next one asks again."""
        try:
            if epoch:
                verify(tree, epoch)
        except IncompleteCheckpoint as problem:
            self.failed(EngineFailure("CopyIncomplete", str(problem)))
            return False
        return True
