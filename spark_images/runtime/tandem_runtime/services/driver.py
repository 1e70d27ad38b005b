"""Carries out a replica's effects on Spark: run and commit epochs, copy and install state.

Spark keeps the state of several epochs in one tree of files, its checkpoint: a copy of the tree
has all of them. It differs from the simulator's toy Spark:

- it cannot cut a parent's state by share, until state moves by key: `CopyRefused`, and a warning;
- it cannot merge the state of several parents: the process ends with `StateUnsupported`;
- it ignores `ForgetState`: Spark removes old batches by itself;
- it sends no second copy to a joiner while one is on its way, and none that cannot be linked, as on
  a full disk: the joiner asks again;
- it verifies a copy, and ends with `CopyIncomplete` if something is missing: the next process asks
  for another.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from tandem_core.model.pipeline import Pipeline
from tandem_runtime.protocol.effects import Finish, ForgetState, Install, Key, Run, ShipState
from tandem_runtime.protocol.messages.peers import (
    BatchCommitted,
    BatchResult,
    CopyRefused,
    Installed,
    SparkUp,
    StateCopied,
)
from tandem_runtime.protocol.types import Header
from tandem_runtime.services.cpu_priority import on_half_the_cores
from tandem_runtime.services.event_loop import EventLoop, Failure
from tandem_runtime.services.metrics import BATCH_SECONDS, EPOCH_COMMITTED, LATE_DROPPED
from tandem_runtime.spark.epochs.engine import Engine
from tandem_runtime.spark.epochs.failure import EngineError, EngineFailure
from tandem_runtime.spark.jvm.java import NoJava
from tandem_runtime.spark.state.checkpoint import (
    IncompleteCheckpoint,
    committed_epochs,
    link_tree,
    replace_tree,
    restore,
    verify,
)
from tandem_runtime.volume.chunks import epoch_rows
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Parcel, Post
from tandem_runtime.wire.frames import FramePart, Tree, tree_parts

_log = logging.getLogger(__name__)


def checkpoint_of(volume: Volume) -> Path:
    """Spark's checkpoint on a volume."""
    return volume.directory / "spark"


def checkpoints(volume: Volume) -> list[int]:
    """The epochs whose state a volume has; epoch 0 is the empty state."""
    return committed_epochs(checkpoint_of(volume)) or [0]


def is_begun(found: dict[Key, object]) -> bool:
    """Whether a volume has the state of a replica that has already run."""
    return ("verified",) in found


class StateCopies:
    """Sends copies of a checkpoint to joiners."""

    def __init__(self, volume: Volume, post: Post) -> None:
        """Remove copies that an earlier process left."""
        self._volume = volume
        self._post = post
        self._outgoing = volume.directory / "outgoing"
        self._numbers = itertools.count()
        self._under_way: set[str] = set()
        """Joiners whose copy is queued or on its way."""
        shutil.rmtree(self._outgoing, ignore_errors=True)

    def ship(self, effect: ShipState) -> None:
        """Hard-link the checkpoint as it is now, and queue it; its files are read when it is sent.

        A joiner asks until it has a state, so none is sent while a copy to it is on its way [12].
        Once that copy is over, arrived or not, the next request is answered again [11].
        """
        message = effect.message
        if effect.share is not None:
            _log.warning("copy for %s refused: state cannot be filtered by share", effect.to)
            self._post.send(effect.to, Parcel(CopyRefused(message.pair)))
            return
        if effect.to in self._under_way:
            return
        tree = self._outgoing / str(next(self._numbers))
        try:
            self._link(message, tree)
            kept = [self._volume.buffer(("outbox", offer.epoch)) for offer in message.outbox]
        except (IncompleteCheckpoint, OSError) as problem:
            # Also on a full disk: a joiner's request must not end the replica that has the state.
            _log.warning("copy for %s failed, it retries: %s", effect.to, problem)
            shutil.rmtree(tree, ignore_errors=True)
            return

        def parts() -> Iterator[FramePart]:
            yield from tree_parts(0, tree)
            for index, value in enumerate(kept, start=1):
                yield FramePart(index, None, value)

        self._under_way.add(effect.to)
        over = partial(self._end, effect.to, tree)
        self._post.send(effect.to, Parcel(message, parts, over))

    def _end(self, joiner: str, tree: Path) -> None:
        """Remove a copy that was sent or dropped; only then is another linked for its joiner."""
        shutil.rmtree(tree, ignore_errors=True)
        self._under_way.discard(joiner)

    def _link(self, message: StateCopied, tree: Path) -> None:
        tree.parent.mkdir(exist_ok=True)
        if message.epoch:
            oldest = min([message.epoch, *(epoch for epoch in message.older if epoch)])
            link_tree(checkpoint_of(self._volume), oldest, message.epoch, tree)
        tree.mkdir(exist_ok=True)


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
        self._volume = volume
        self._copies = StateCopies(volume, post)
        self._check = check
        self._joins = joins
        self._yields = yields
        self._loop: EventLoop | None = None
        self.failure: Failure | None = None
        """Why Spark failed, if it did."""
        self._opened = False
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.booted = threading.Event()
        self.settled = threading.Event()
        """Set once Spark is up, or has failed."""
        self.late_dropped = 0
        self.batch_ms = 0.0
        threading.Thread(target=self._turn, name="driver", daemon=True).start()

    def serve(self, loop: EventLoop) -> None:
        """Carry out the machine's effects from now on."""
        self._loop = loop
        if self.failure is not None:
            loop.fail(self.failure)
        if self.booted.is_set():
            loop.tell(SparkUp())
        loop.lend(
            {
                Run: self._run,
                Finish: lambda effect: self._engine.finish(effect.epoch),
                Install: self._install,
                ShipState: self._copies.ship,
                ForgetState: lambda _: None,
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

    def _tell(self, message: object) -> None:
        if self._loop is not None:
            self._loop.tell(message)

    # --- state --------------------------------------------------------------------------------

    def _install(self, effect: Install) -> None:
        """Replace the checkpoint by a twin's, or by an empty one; Spark need not be up yet."""
        move: Callable[[Path], None] = Path.mkdir
        if len(effect.parts) > 1:
            what = f"{len(effect.parts)} parts of state cannot be united"
            self.failed(EngineFailure("StateUnsupported", what))
            return
        if effect.parts:
            tree = cast("Tree", effect.parts[0].state)
            if not self._is_whole(tree.path, effect.epoch):
                return
            move = tree.move
        replace_tree(checkpoint_of(self._volume), move)
        self._tell(Installed(effect.epoch))

    def _is_whole(self, tree: Path, epoch: int) -> bool:
        """Verify a copy; if it is incomplete this process ends, and the next one asks again."""
        try:
            if epoch:
                verify(tree, epoch)
        except IncompleteCheckpoint as problem:
            self.failed(EngineFailure("CopyIncomplete", str(problem)))
            return False
        return True
