"""How a replica without state comes by it: from its twin, from its parents, or from nothing.

The lead says where from (`ReplicaView.source`): one group of volumes for each pair to copy from,
and any volume of a group will do. A twin is copied as it stands, with its outbox; parents are all
copied at one epoch, each reduced to the keys of the new pair.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, cast

from tandem_runtime.protocol.data import Generation, Header, Settings
from tandem_runtime.protocol.effects import Effect, Install, Key, Send, Ship
from tandem_runtime.protocol.messages import CopyRefused, CopyState, StateCopied

TRIES = 4
"""How often parents are asked for one epoch before a later one is taken."""

Groups = tuple[tuple[str, ...], ...]


class Joining:
    """What is known of the state that is being copied."""

    __slots__ = ("asked_at", "asks", "epoch", "groups", "installing", "keys", "pair", "parts")

    def __init__(self, pair: str, keys: object, now: int) -> None:
        self.pair = pair
        self.keys = keys
        self.groups: Groups = ()
        self.epoch: int | None = None
        """The epoch to copy at; None for a twin's last one. () and 0: the empty beginning."""
        self.parts: dict[int, StateCopied] = {}
        """What has come, by group."""
        self.installing: int | None = None
        """The epoch whose state is complete and is being verified."""
        self.asks = 0
        self.asked_at = now

    def told(self, groups: Groups, epoch: int | None, now: int) -> list[Effect]:
        """The lead says where state comes from."""
        if self.installing is not None or (not groups and epoch is None):
            return []
        if groups == self.groups and self.epoch is not None and self.asks < TRIES:
            # Parents' state at an earlier epoch serves as well, as long as it is there.
            return []
        if (groups, epoch) == (self.groups, self.epoch):
            return []
        self.groups, self.epoch = groups, epoch
        self.parts = {}
        self.asks = 0
        return self.ask(now)

    def ask(self, now: int) -> list[Effect]:
        """Ask a holder of each group that has not answered; another one each time."""
        self.asked_at = now
        if self.installing is not None:
            return []
        if not self.groups and self.epoch == 0:
            self.installing = 0
            return [Install(0, ())]
        keys = None if self.epoch is None else self.keys
        request = CopyState(self.pair, keys, self.epoch)
        turn, self.asks = self.asks, self.asks + 1
        return [
            Send(group[turn % len(group)], request)
            for number, group in enumerate(self.groups)
            if number not in self.parts
        ]

    def came(self, holder: str, message: StateCopied) -> list[Effect]:
        """A holder's state came; once every group has answered it can be installed."""
        group = next((n for n, volumes in enumerate(self.groups) if holder in volumes), None)
        right = self.epoch is None or message.epoch == self.epoch
        if group is None or self.installing is not None or not right:
            return []
        self.parts[group] = message
        if len(self.parts) < len(self.groups):
            return []
        self.installing = message.epoch
        parts = tuple(self.parts[number].payload for number in range(len(self.groups)))
        return [Install(message.epoch, parts)]

    @property
    def from_twin(self) -> bool:
        """Is it a twin that is copied, so that its results come along?"""
        return self.epoch is None

    def older(self) -> list[tuple[int, object]]:
        """State of epochs before the copied one, as far as a twin still had it."""
        return [
            pair
            for part in self.parts.values()
            for pair in zip(part.older, _values(part)[1 + len(part.outbox) :], strict=True)
        ]


def _values(message: StateCopied) -> tuple[object, ...]:
    return cast("tuple[object, ...]", message.payload)


class Skip:
    """Whether a replica that starts again copies what it missed instead of computing it.

    Only before its first epoch, once, and never for longer than its patience: meanwhile it keeps
    its own state, which counts until the copy has taken its place.
    """

    __slots__ = ("_allowed", "_since", "begun", "twin")

    def __init__(self) -> None:
        self.twin: Groups = ()
        """The twin, while it is far ahead and speaks."""
        self.begun = False
        self._allowed = True
        self._since = 0

    def begins(self, now: int) -> bool:
        """Is the copy to be asked for now?"""
        if not self._allowed or self.begun or not self.twin:
            return False
        self.begun = True
        self._since = now
        return True

    def waits(self, now: int, settings: Settings) -> bool:
        """Is the copy still worth waiting for?"""
        if self.begun and (not self.twin or now - self._since >= settings.skip_patience):
            self.over()
        return self.begun

    def over(self) -> None:
        """It was copied, or is computed after all."""
        self.begun = self._allowed = False


class Kept(NamedTuple):
    """A result in an outbox: what an offer says of it. Its bytes are on the volume."""

    size: int
    digest: int


def copied_results(message: StateCopied) -> list[tuple[int, Kept, object]]:
    """The results in a twin's outbox: epoch, what an offer says, bytes."""
    values = _values(message)[1 : 1 + len(message.outbox)]
    return [
        (epoch, Kept(size, digest), value)
        for (epoch, size, digest), value in zip(message.outbox, values, strict=True)
    ]


class Holder(Protocol):
    """What a replica must know of itself to be copied from."""

    verified: bool
    committed: int
    checkpoints: list[int]
    outbox: dict[int, Kept]
    headers: dict[int, Header]
    generations: dict[int, Generation]


def shipped_state(holder: Holder, to: str, request: CopyState) -> Effect:
    """The answer to a joiner: the whole tree for a twin, one epoch's state for another pair."""
    whole = request.epoch is None
    epoch = holder.committed if request.epoch is None else request.epoch
    if not holder.verified or epoch not in holder.checkpoints:
        return Send(to, CopyRefused(request.pair))
    kept = sorted(e for e in holder.outbox if e <= epoch) if whole else []
    older = tuple(e for e in holder.checkpoints if e < epoch) if whole else ()
    header = holder.headers.get(epoch)
    reply = StateCopied(
        pair=request.pair,
        epoch=epoch,
        header=header,
        generation=holder.generations.get(header.generation) if header else None,
        outbox=tuple((e, *holder.outbox[e]) for e in kept),
        older=older,
    )
    files: tuple[Key, ...] = (
        ("checkpoint", epoch),
        *(("outbox", e) for e in kept),
        *(("checkpoint", e) for e in older),
    )
    return Ship(to, reply, files, request.keys)
