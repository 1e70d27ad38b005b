"""Copies a replica's state: from its twin, from its parents, or begins with the empty state.

The lead names the source (`ReplicaView.source`): one group of volumes for each pair to copy, of
which any volume will do. A twin is copied in full, with its outbox; parents are all copied at one
epoch, each reduced to the keys of the new pair.
"""

from __future__ import annotations

from typing import Protocol, cast

from tandem_core.contract.intent import Generation, Share
from tandem_runtime.protocol.effects import Effect, Install, Send, ShipState
from tandem_runtime.protocol.messages.peers import CopiedState, CopyRefused, CopyState, StateCopied
from tandem_runtime.protocol.replica.known_headers import KnownHeaders
from tandem_runtime.protocol.replica.outbox import Outbox, offer_of
from tandem_runtime.protocol.types import ProtocolSettings

TRIES = 4
"""Requests to parents for one epoch before a later epoch is accepted."""

Groups = tuple[tuple[str, ...], ...]


class Joining:
    """Progress of a copy: its source, its epoch, and the parts that have arrived."""

    __slots__ = ("asked_at", "asks", "epoch", "groups", "pair", "parts", "share")

    def __init__(self, pair: str, share: Share, now: int) -> None:
        self.pair = pair
        self.share = share
        self.groups: Groups = ()
        self.epoch: int | None = None
        """Epoch to copy at; None for a twin's last one, 0 without groups for the empty state."""
        self.parts: dict[int, StateCopied] = {}
        """Parts that have arrived, by group."""
        self.asks = 0
        self.asked_at = now

    def told(self, groups: Groups, epoch: int | None, now: int) -> list[Effect]:
        """Takes the source that the lead names, and requests the copy if it is a new one."""
        if not groups and epoch is None:
            return []
        if groups == self.groups and self.epoch is not None and self.asks < TRIES:
            # Parents' state at an earlier epoch is as good, as long as they have it.
            return []
        if (groups, epoch) == (self.groups, self.epoch):
            return []
        self.groups, self.epoch = groups, epoch
        self.parts = {}
        self.asks = 0
        return self.ask(now)

    def ask(self, now: int) -> list[Effect]:
        """Requests state from one holder of each group that has not answered, in turn.

        The empty state is installed at once.
        """
        self.asked_at = now
        if not self.groups and self.epoch == 0:
            return [Install(0, ())]
        share = None if self.epoch is None else self.share
        request = CopyState(self.pair, share, self.epoch)
        turn, self.asks = self.asks, self.asks + 1
        return [
            Send(group[turn % len(group)], request)
            for number, group in enumerate(self.groups)
            if number not in self.parts
        ]

    def came(self, holder: str, message: StateCopied) -> list[Effect]:
        """Stores a holder's state, and installs it once every group has answered."""
        group = next((n for n, volumes in enumerate(self.groups) if holder in volumes), None)
        right = self.epoch is None or message.epoch == self.epoch
        if group is None or not right:
            return []
        self.parts[group] = message
        if len(self.parts) < len(self.groups):
            return []
        copied = [self.parts[number] for number in range(len(self.groups))]
        parts = tuple(cast("CopiedState", part.payload) for part in copied)
        return [Install(message.epoch, parts, self.older())]

    @property
    def from_twin(self) -> bool:
        """Whether the source is a twin, whose results are copied too."""
        return self.epoch is None

    def older(self) -> tuple[int, ...]:
        """Returns the earlier epochs whose state is part of a twin's copy."""
        return tuple(epoch for part in self.parts.values() for epoch in part.older)


class Skip:
    """Decides whether a restarted replica copies its twin's state instead of computing epochs.

    It does so only before its first epoch, once, and for `skip_patience` at most. Its own state
    remains valid until the copy replaces it.
    """

    __slots__ = ("_allowed", "_since", "twin")

    def __init__(self) -> None:
        self.twin: Groups = ()
        """The twin, while it is far ahead and reports."""
        self._allowed = True
        self._since = 0

    def begins(self, now: int) -> bool:
        """Whether to request the copy now; true at most once."""
        if not self._allowed or not self.twin:
            return False
        self._allowed = False
        self._since = now
        return True

    def waits(self, now: int, settings: ProtocolSettings) -> bool:
        """Whether to keep waiting for the copy."""
        return bool(self.twin) and now - self._since < settings.skip_patience

    def over(self) -> None:
        """Rules out a copy from now on: epochs are computed."""
        self._allowed = False


class Holder(Protocol):
    """State of a replica that others can copy from."""

    committed: int
    checkpoints: list[int]
    outbox: Outbox
    headers: KnownHeaders
    generations: dict[int, Generation]

    @property
    def verified(self) -> bool:
        """Whether its volume has a complete state."""


def shipped_state(holder: Holder, to: str, request: CopyState) -> Effect:
    """Returns the answer to a joiner: all state for a twin, one epoch's for another pair."""
    whole = request.epoch is None
    epoch = holder.committed if request.epoch is None else request.epoch
    header = holder.headers.get(epoch)
    generation = holder.generations.get(header.generation) if header else None
    # Without its header, the history of a state is unknown.
    nameless = epoch > 0 and generation is None
    if not holder.verified or epoch not in holder.checkpoints or nameless:
        return Send(to, CopyRefused(request.pair))
    kept = sorted(e for e in holder.outbox if e <= epoch) if whole else []
    older = tuple(e for e in holder.checkpoints if e < epoch) if whole else ()
    headers = tuple(holder.headers[e] for e in older if e in holder.headers)
    named = sorted({h.generation for h in headers} & set(holder.generations))
    reply = StateCopied(
        pair=request.pair,
        epoch=epoch,
        header=header,
        generation=generation,
        outbox=tuple(offer_of(e, holder.outbox[e]) for e in kept),
        older=older,
        older_headers=headers,
        older_generations=tuple(holder.generations[number] for number in named),
    )
    return ShipState(to, reply, request.share)
