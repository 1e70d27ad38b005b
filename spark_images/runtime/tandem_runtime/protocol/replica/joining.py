"""How a replica without state comes by it: from its twin, from its parents, or from nothing.

The lead says where from (`ReplicaView.source`): one group of volumes for each pair to copy from,
and any volume of a group will do. A twin is copied as it stands, with its outbox; parents are all
copied at one epoch, each reduced to the keys of the new pair.
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
"""How often parents are asked for one epoch before a later one is taken."""

Groups = tuple[tuple[str, ...], ...]


class Joining:
    """What is known of the state that is being copied."""

    __slots__ = ("asked_at", "asks", "epoch", "groups", "pair", "parts", "share")

    def __init__(self, pair: str, share: Share, now: int) -> None:
        self.pair = pair
        self.share = share
        self.groups: Groups = ()
        self.epoch: int | None = None
        """The epoch to copy at; None for a twin's last one. () and 0: the empty beginning."""
        self.parts: dict[int, StateCopied] = {}
        """What has come, by group."""
        self.asks = 0
        self.asked_at = now

    def told(self, groups: Groups, epoch: int | None, now: int) -> list[Effect]:
        """The lead says where state comes from."""
        if not groups and epoch is None:
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
        """Ask a holder of each group that has not answered; another one each time.

        The empty beginning need not be asked for: it is installed.
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
        """A holder's state came; once every group has answered it can be installed."""
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
        """Is it a twin that is copied, so that its results come along?"""
        return self.epoch is None

    def older(self) -> tuple[int, ...]:
        """Epochs before the copied one of which a twin still had the state."""
        return tuple(epoch for part in self.parts.values() for epoch in part.older)


class Skip:
    """Whether a replica that starts again copies what it missed instead of computing it.

    Only before its first epoch, once, and never for longer than its patience: meanwhile it keeps
    its own state, which counts until the copy has taken its place.
    """

    __slots__ = ("_allowed", "_since", "twin")

    def __init__(self) -> None:
        self.twin: Groups = ()
        """The twin, while it is far ahead and speaks."""
        self._allowed = True
        self._since = 0

    def begins(self, now: int) -> bool:
        """Is the copy to be asked for now?"""
        if not self._allowed or not self.twin:
            return False
        self._allowed = False
        self._since = now
        return True

    def waits(self, now: int, settings: ProtocolSettings) -> bool:
        """Is the copy that was asked for still worth waiting for?"""
        return bool(self.twin) and now - self._since < settings.skip_patience

    def over(self) -> None:
        """Epochs are computed from now on."""
        self._allowed = False


class Holder(Protocol):
    """What a replica must know of itself to be copied from."""

    committed: int
    checkpoints: list[int]
    outbox: Outbox
    headers: KnownHeaders
    generations: dict[int, Generation]

    @property
    def verified(self) -> bool:
        """Is there a whole state on its volume?"""


def shipped_state(holder: Holder, to: str, request: CopyState) -> Effect:
    """The answer to a joiner: the whole tree for a twin, one epoch's state for another pair."""
    whole = request.epoch is None
    epoch = holder.committed if request.epoch is None else request.epoch
    header = holder.headers.get(epoch)
    generation = holder.generations.get(header.generation) if header else None
    # Without its header nobody can tell of which history a state is.
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
