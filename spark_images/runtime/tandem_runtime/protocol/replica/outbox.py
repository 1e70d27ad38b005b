"""Results that a replica keeps until they are delivered. Their bytes are on the volume."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from tandem_core.contract.records import Record
from tandem_runtime.protocol.effects import Effect, Erase, Ship, Write
from tandem_runtime.protocol.messages.results import Answer, CopiedState, Offer, StateCopied


class Kept(Record):
    """A result in an outbox: what an offer says of it."""

    size: int
    digest: int
    header: str = ""
    """Digest of the header that it answers."""


class Outbox(dict[int, Kept]):
    """The results that are kept, by epoch."""

    def keep(self, epoch: int, kept: Kept, value: object) -> list[Effect]:
        """Put a result in."""
        self[epoch] = kept
        return [Write(("outbox", epoch), value), Write(("kept", epoch), kept)]

    def offers(self, delivered: int, committed: int, at_most: int) -> tuple[Offer, ...]:
        """The lowest results that are committed and not delivered."""
        ready = sorted(epoch for epoch in self if delivered < epoch <= committed)
        return tuple(offer_of(epoch, self[epoch]) for epoch in ready[:at_most])

    def answers(self, to: str, pair: str, epochs: Iterable[int], committed: int) -> list[Effect]:
        """The results that a merge wants, as far as they are here."""
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
        """Drop what is delivered [12]."""
        effects: list[Effect] = []
        for epoch in [epoch for epoch in self if epoch <= delivered]:
            del self[epoch]
            effects += [Erase(("kept", epoch)), Erase(("outbox", epoch))]
        return effects


def offer_of(epoch: int, kept: Kept) -> Offer:
    """What others are told of a result."""
    return Offer(epoch=epoch, size=kept.size, digest=kept.digest, header=kept.header)


def copied_results(message: StateCopied) -> list[tuple[int, Kept, object]]:
    """The results in a twin's outbox: epoch, what an offer says, bytes."""
    values = cast("CopiedState", message.payload).results
    return [
        (offer.epoch, Kept(size=offer.size, digest=offer.digest, header=offer.header), value)
        for offer, value in zip(message.outbox, values, strict=True)
    ]
