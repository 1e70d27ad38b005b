"""Keeps results until they are delivered. Their bytes are on the volume."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from tandem_core.contract.records import Record
from tandem_runtime.protocol.effects import Effect, Erase, Ship, Write
from tandem_runtime.protocol.messages.results import Answer, CopiedState, Offer, StateCopied


class Kept(Record):
    """Metadata of a result in an outbox, as an offer carries it."""

    size: int
    digest: int
    header: str = ""
    """Digest of the epoch's header."""


class Outbox(dict[int, Kept]):
    """Metadata of undelivered results, by epoch."""

    def keep(self, epoch: int, kept: Kept, value: object) -> list[Effect]:
        """Adds a result."""
        self[epoch] = kept
        return [Write(("outbox", epoch), value), Write(("kept", epoch), kept)]

    def offers(self, delivered: int, committed: int, at_most: int) -> tuple[Offer, ...]:
        """Returns offers of the lowest results that are committed and not delivered."""
        ready = sorted(epoch for epoch in self if delivered < epoch <= committed)
        return tuple(offer_of(epoch, self[epoch]) for epoch in ready[:at_most])

    def answers(self, to: str, pair: str, epochs: Iterable[int], committed: int) -> list[Effect]:
        """Ships the results that a merge requests, if they are here and committed."""
        return [
            Ship(
                to,
                Answer(pair, epoch, self[epoch].digest, header=self[epoch].header),
                (("outbox", epoch),),
            )
            for epoch in epochs
            if epoch in self and epoch <= committed
        ]

    def forget(self, delivered: int) -> list[Effect]:
        """Drops delivered results [12]."""
        effects: list[Effect] = []
        for epoch in [epoch for epoch in self if epoch <= delivered]:
            del self[epoch]
            effects += [Erase(("kept", epoch)), Erase(("outbox", epoch))]
        return effects


def offer_of(epoch: int, kept: Kept) -> Offer:
    """Returns the offer of a result."""
    return Offer(epoch=epoch, size=kept.size, digest=kept.digest, header=kept.header)


def copied_results(message: StateCopied) -> list[tuple[int, Kept, object]]:
    """Returns the results in a twin's outbox as (epoch, metadata, bytes)."""
    values = cast("CopiedState", message.payload).results
    return [
        (offer.epoch, Kept(size=offer.size, digest=offer.digest, header=offer.header), value)
        for offer, value in zip(message.outbox, values, strict=True)
    ]
