"""Copies a replica's state: from its twin, from its parents, or begins with the empty state.

The lead names the source (`ReplicaView.source`): one group of volumes for each pair to copy, of
which any volume will do. A twin is copied in full, with its outbox; parents are all copied at one
epoch, each reduced to the keys of the new pair. That takes long, so one holder of each group is
asked, and another one only if it refuses or is silent; the lead lets all of them keep the epoch.
"""

from __future__ import annotations

from typing import Protocol, cast

from tandem_core.contract.intent import Generation, Share
from tandem_runtime.protocol.effects import Effect, Install, Send, ShipState
from tandem_runtime.protocol.messages.peers import (
    CopiedState,
    CopyRefused,
    CopyState,
    CopyUnderWay,
    StateCopied,
)
from tandem_runtime.protocol.replica.known_headers import KnownHeaders
from tandem_runtime.protocol.replica.outbox import Outbox, offer_of
from tandem_runtime.protocol.types import Definition, ProtocolSettings

Groups = tuple[tuple[str, ...], ...]


class Joining:
    """Progress of a copy: its source, its epoch, and the parts that have arrived."""

    __slots__ = (
        "asked_at",
        "definition",
        "epoch",
        "groups",
        "pair",
        "parts",
        "refusal",
        "share",
        "_asked",
        "_heard_at",
        "_not_before",
        "_refused",
        "_silence",
    )

    def __init__(
        self, pair: str, share: Share, definition: Definition, silence: int, now: int
    ) -> None:
        """`silence` is how long a holder may be without an answer."""
        self.pair = pair
        self.share = share
        self.definition = definition
        self.groups: Groups = ()
        self.epoch: int | None = None
        """Epoch to copy at; None for a twin's last one, 0 without groups for the empty state."""
        self.parts: dict[int, StateCopied] = {}
        """Parts that have arrived, by group."""
        self.asked_at = self._not_before = now
        self._silence = silence
        self._asked: dict[int, str] = {}
        """The holder that is asked, by group."""
        self._heard_at: dict[int, int] = {}
        """When it was first asked, or last answered that the copy is under way."""
        self._refused: set[str] = set()
        self.refusal = ""
        """The last reason for which a holder refused."""

    @property
    def from_twin(self) -> bool:
        """Whether the source is a twin, whose results are copied too."""
        return self.epoch is None

    @property
    def building(self) -> int | None:
        """Epoch at which parents are copied; None for another source."""
        return self.epoch if self.groups else None

    def told(self, groups: Groups, epoch: int | None, now: int) -> list[Effect]:
        """Takes the source that the lead names, and requests the copy if it is a new one."""
        if (not groups and epoch is None) or now < self._not_before:
            return []
        if self._is_same_source(groups, epoch):
            self.groups = groups
            return []
        self._begin(groups, epoch)
        return self.ask(now)

    def _is_same_source(self, groups: Groups, epoch: int | None) -> bool:
        """Whether the copy under way may go on; holders may have come and gone.

        Parents' state at an earlier epoch than the named one is as good, as long as they have it.
        """
        if (groups, epoch) == (self.groups, self.epoch):
            return True
        if self.building is None or epoch is None or len(groups) != len(self.groups):
            return False
        return all(
            number in self.parts or not self._refused.issuperset(group)
            for number, group in enumerate(groups)
        )

    def _begin(self, groups: Groups, epoch: int | None) -> None:
        self.groups, self.epoch = groups, epoch
        self.parts, self._asked, self._refused = {}, {}, set()

    def ask(self, now: int) -> list[Effect]:
        """Requests state from a holder of each group that has not answered.

        The empty state is installed at once.
        """
        self.asked_at = now
        if not self.groups and self.epoch == 0:
            return [Install(0, ())]
        return [
            self._ask_one(number, now)
            for number in range(len(self.groups))
            if number not in self.parts
        ]

    def _ask_one(self, number: int, now: int) -> Effect:
        """Requests a group's state: of the same holder, unless that refused, left or is silent."""
        group, before = self.groups[number], self._asked.get(number)
        able = [volume for volume in group if volume not in self._refused]
        silent = now - self._heard_at.get(number, now) >= self._silence
        if before not in able or silent:
            place = group.index(before) + 1 if before in group else 0
            in_turn = [*group[place:], *group[:place]]
            self._asked[number] = next(volume for volume in in_turn if volume in able)
            self._heard_at[number] = now
        share = None if self.from_twin else self.share
        return Send(self._asked[number], CopyState(self.pair, share, self.epoch, self.definition))

    def under_way(self, holder: str, message: CopyUnderWay, now: int) -> None:
        """Notes that a holder works on the copy."""
        number = self._group_of(holder)
        if number is not None and message.epoch == self.epoch and self._asked[number] == holder:
            self._heard_at[number] = now

    def refused(self, holder: str, message: CopyRefused, now: int) -> list[Effect]:
        """Requests the parents' state from another holder; once all have refused, gives up.

        The lead then names another epoch. A twin is asked again like one that did not answer.
        """
        self.refusal = message.reason
        number = self._group_of(holder)
        outdated = message.epoch not in (None, self.epoch)
        if number is None or self.from_twin or outdated or number in self.parts:
            return []
        self._refused.add(holder)
        if self._refused.issuperset(self.groups[number]):
            self._begin((), None)
            self._not_before = now + self._silence
            return []
        return [self._ask_one(number, now)]

    def came(self, holder: str, message: StateCopied) -> list[Effect]:
        """Stores a holder's state, and installs it once every group has answered."""
        number = self._group_of(holder)
        right = self.epoch is None or message.epoch == self.epoch
        if number is None or not right:
            return []
        self.parts[number] = message
        if len(self.parts) < len(self.groups):
            return []
        copied = [self.parts[number] for number in range(len(self.groups))]
        parts = tuple(cast("CopiedState", part.payload) for part in copied)
        share = None if self.from_twin else self.share
        return [Install(message.epoch, parts, self.older(), share)]

    def _group_of(self, holder: str) -> int | None:
        return next((n for n, volumes in enumerate(self.groups) if holder in volumes), None)

    def older(self) -> tuple[int, ...]:
        """Returns the earlier epochs whose state is part of a twin's copy."""
        return tuple(epoch for part in self.parts.values() for epoch in part.older)


class Skip:
    """Decides whether a replica copies its twin's state instead of computing the epochs it missed.

    Before its first epoch it does so once its twin is far ahead. Later it must be so far behind
    that a copy is sooner, which it may become while other processes take its CPU; then not again
    for a while, since each copy costs its twin. It waits for `skip_patience` at most, and its own
    state remains valid until the copy replaces it.
    """

    __slots__ = ("_is_first", "_since", "twin")

    def __init__(self) -> None:
        self.twin: Groups = ()
        """The twin, while it is far ahead and reports."""
        self._is_first = True
        self._since = 0

    def begins(self, now: int, behind: int, settings: ProtocolSettings) -> bool:
        """Whether to request the copy now, this many epochs behind delivery."""
        rested = now - self._since >= settings.skips_apart
        if not self.twin or not (self._is_first or (behind > settings.rebases_beyond and rested)):
            return False
        self._is_first = False
        self._since = now
        return True

    def waits(self, now: int, settings: ProtocolSettings) -> bool:
        """Whether to keep waiting for the copy."""
        return bool(self.twin) and now - self._since < settings.skip_patience

    def over(self) -> None:
        """Ends the time before the first epoch."""
        self._is_first = False


class Holder(Protocol):
    """State of a replica that others can copy from."""

    committed: int
    definition: Definition
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
    reason = _difference(holder, request)
    if not holder.verified or epoch not in holder.checkpoints or nameless:
        reason = f"it has no state of epoch {epoch}"
    if reason:
        return Send(to, CopyRefused(request.pair, request.epoch, reason))
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


def _difference(holder: Holder, request: CopyState) -> str:
    """Returns how a joiner differs from the holder; the keys of a new pair always do."""
    asked = request.definition
    wanted = asked if request.share is None else asked.replace(share="")
    difference = holder.definition.difference(wanted, "the joiner")
    return f"the holder's state was made with {difference}" if difference else ""
