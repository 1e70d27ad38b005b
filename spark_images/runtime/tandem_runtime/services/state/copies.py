"""Sends copies of a checkpoint to joiners: all of it to a twin, its share of the keys to others."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import KeepState, ShipState
from tandem_runtime.protocol.messages.peers import CopyRefused, CopyUnderWay, StateCopied
from tandem_runtime.services.metrics import STATE_SENT
from tandem_runtime.services.state.moves import StateMoves
from tandem_runtime.services.state.reducer import Reducer, Reduction
from tandem_runtime.spark.state.checkpoint import IncompleteCheckpoint, copyable_epochs, link_tree
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Parcel, Post
from tandem_runtime.wire.frames import FramePart, tree_parts

_log = logging.getLogger(__name__)


def checkpoint_of(volume: Volume) -> Path:
    """Spark's checkpoint on a volume."""
    return volume.directory / "spark"


class StateCopies:
    """Sends copies of a checkpoint to joiners."""

    def __init__(self, volume: Volume, post: Post, moves: StateMoves) -> None:
        """Remove copies that an earlier process left."""
        self._volume = volume
        self._post = post
        self._outgoing = volume.directory / "outgoing"
        self._numbers = itertools.count()
        self._under_way: set[str] = set()
        """Joiners whose copy is being reduced, queued or on its way."""
        self._kept: dict[int, Path] = {}
        """Linked checkpoints of the epochs that new pairs copy."""
        shutil.rmtree(self._outgoing, ignore_errors=True)
        self._reducer = Reducer(self._outgoing / "reduced", moves)

    def keep(self, effect: KeepState) -> None:
        """Hard-link the checkpoint at these epochs, and release all others [12].

        Spark removes a batch after a hundred more, and a new pair may take much longer: it asks
        another holder if the first one is lost. What cannot be linked, as on a full disk, is
        copied from Spark's own tree as long as it is there.
        """
        for epoch in self._kept.keys() - set(effect.epochs):
            shutil.rmtree(self._kept.pop(epoch), ignore_errors=True)
        # The empty state of epoch 0 has no files.
        for epoch in set(effect.epochs) - self._kept.keys() - {0}:
            tree = self._outgoing / "kept" / str(epoch)
            try:
                tree.parent.mkdir(parents=True, exist_ok=True)
                link_tree(checkpoint_of(self._volume), epoch, epoch, tree)
            except (IncompleteCheckpoint, OSError) as problem:
                shutil.rmtree(tree, ignore_errors=True)
                _log.warning("epoch %d is not kept for new pairs: %s", epoch, problem)
            else:
                self._kept[epoch] = tree

    def ship(self, effect: ShipState) -> None:
        """Hard-link the checkpoint as it is now, and queue it; its files are read when it is sent.

        The links keep the epoch when Spark removes it meanwhile. A joiner asks until it has a
        state, so none is sent while a copy to it is under way [12]. Once that copy is over, arrived
        or not, the next request is answered again [11].
        """
        if effect.to in self._under_way:
            self._tell_under_way(effect)
            return
        tree = self._fresh()
        try:
            message = self._linked(effect.message, tree)
            kept = [self._volume.buffer(("outbox", offer.epoch)) for offer in message.outbox]
        except (IncompleteCheckpoint, OSError) as problem:
            # Also on a full disk: a joiner's request must not end the replica that has the state.
            shutil.rmtree(tree, ignore_errors=True)
            self._refuse(effect, str(problem))
            return
        self._under_way.add(effect.to)
        if effect.share is None:
            self._send(effect.to, message, tree, kept)
        else:
            self._reduce(effect, message, tree, effect.share)

    def _reduce(self, effect: ShipState, message: StateCopied, tree: Path, share: Share) -> None:
        """Send the joiner's share once it is reduced."""
        self._tell_under_way(effect)

        def done(reduced: Path) -> None:
            copy = self._fresh()
            shutil.copytree(reduced, copy, copy_function=os.link)
            self._send(effect.to, message, copy, [])

        def failed(reason: str) -> None:
            self._under_way.discard(effect.to)
            self._refuse(effect, reason)

        self._reducer.submit(Reduction(tree, message.epoch, share, done, failed))

    def _send(self, to: str, message: StateCopied, tree: Path, kept: list[Any]) -> None:
        def parts() -> Iterator[FramePart]:
            size = 0
            for part in tree_parts(0, tree):
                size += len(part.data)
                yield part
            STATE_SENT.inc(size)
            _log.info("sent %d bytes of state at epoch %d to %s", size, message.epoch, to)
            for index, value in enumerate(kept, start=1):
                yield FramePart(index, None, value)

        self._post.send(to, Parcel(message, parts, partial(self._end, to, tree)))

    def _end(self, joiner: str, tree: Path) -> None:
        """Remove a copy that was sent or dropped; only then is another linked for its joiner."""
        shutil.rmtree(tree, ignore_errors=True)
        self._under_way.discard(joiner)

    def _tell_under_way(self, effect: ShipState) -> None:
        if effect.share is not None:
            message = effect.message
            self._post.send(effect.to, Parcel(CopyUnderWay(message.pair, message.epoch)))

    def _refuse(self, effect: ShipState, reason: str) -> None:
        """Log why there is no copy; a twin has no other holder to ask and retries anyway."""
        _log.warning("copy for %s refused: %s", effect.to, reason)
        if effect.share is not None:
            message = effect.message
            refusal = CopyRefused(message.pair, message.epoch, reason)
            self._post.send(effect.to, Parcel(refusal))

    def _linked(self, message: StateCopied, tree: Path) -> StateCopied:
        """Link the epochs of a copy; Spark may have removed the older ones."""
        tree.parent.mkdir(exist_ok=True)
        if message.epoch in self._kept and not message.older:
            link_tree(self._kept[message.epoch], message.epoch, message.epoch, tree)
        elif message.epoch:
            checkpoint = checkpoint_of(self._volume)
            there = set(copyable_epochs(checkpoint))
            message = message.replace(older=tuple(e for e in message.older if e in there))
            link_tree(checkpoint, min((message.epoch, *message.older)), message.epoch, tree)
        tree.mkdir(exist_ok=True)
        return message

    def _fresh(self) -> Path:
        """Name a directory that does not exist; called from any thread."""
        return self._outgoing / str(next(self._numbers))
