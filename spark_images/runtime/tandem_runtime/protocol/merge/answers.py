"""Tracks offers and answers of replicas: which replica to ask, and which ones diverge.

One replica's answer is taken for each (pair, epoch); the other's offer is compared with it by
digest [4]. An offer counts only if it was computed from the same header that the merge has.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from tandem_runtime.protocol.messages.peers import Answer, Offer
from tandem_runtime.protocol.types import Header

Part = tuple[str, int]
"""Pair and epoch."""


class Taken(NamedTuple):
    """Answer that is to be delivered for a (pair, epoch)."""

    volume: str
    digest: int
    payload: object


class Answers:
    """Offers, requests and answers of the epochs that are not delivered."""

    __slots__ = ("asked", "differing", "offers", "taken", "_ask_again_after")

    def __init__(self, ask_again_after: int) -> None:
        self._ask_again_after = ask_again_after
        self.offers: dict[Part, dict[str, Offer]] = {}
        """Newest offer of each volume."""
        self.asked: dict[Part, tuple[str, int]] = {}
        """Volume that was last asked for the answer, and when."""
        self.taken: dict[Part, Taken] = {}
        self.differing: dict[str, Part] = {}
        """Volumes whose answer differs from their twin's; not asked until they are rebuilt."""

    def add_offer(self, part: Part, volume: str, offer: Offer) -> None:
        """Stores a volume's offer in place of its earlier one."""
        self.offers.setdefault(part, {})[volume] = offer

    def offering(self, part: Part, header: Header | None) -> list[str]:
        """Returns the volumes that offer a valid result, computed from this header."""
        return [
            volume
            for volume, offer in self.offers.get(part, {}).items()
            if volume not in self.differing and header and offer.header == header.digest
        ]

    def choose_volume(self, part: Part, header: Header, now: int) -> str | None:
        """Returns the replica to ask for an answer; None if it has arrived or is on its way.

        If a replica does not answer in time, its twin is next.
        """
        if part in self.taken:
            return None
        offering = self.offering(part, header)
        if not offering:
            return None
        asked = self.asked.get(part)
        if asked is not None and now - asked[1] < self._ask_again_after:
            return None
        last = offering.index(asked[0]) if asked is not None and asked[0] in offering else -1
        volume = offering[(last + 1) % len(offering)]
        self.asked[part] = (volume, now)
        return volume

    def take(self, volume: str, message: Answer) -> None:
        """Takes the first answer of a pair and epoch, and stores it as an offer as well."""
        part = (message.pair, message.epoch)
        (result,) = cast("tuple[object]", message.payload)
        self.taken[part] = Taken(volume, message.digest, result)
        offer = Offer(epoch=message.epoch, size=0, digest=message.digest, header=message.header)
        self.add_offer(part, volume, offer)

    def find_other(self, part: Part, header: Header | None) -> str | None:
        """Returns a volume whose offer differs from the answer taken; None if all agree."""
        taken = self.taken.get(part)
        if taken is None:
            return None
        for volume in self.offering(part, header):
            if self.offers[part][volume].digest != taken.digest:
                return volume
        return None

    def give_up(self, part: Part) -> str:
        """Drops the answer taken, so that another one is fetched; returns its volume."""
        return self.taken.pop(part).volume

    def whole(self, pairs: tuple[str, ...], epoch: int) -> tuple[tuple[str, object], ...] | None:
        """Returns the results of an epoch by pair; None while one is missing."""
        found = []
        for pair in pairs:
            answer = self.taken.get((pair, epoch))
            if answer is None:
                return None
            found.append((pair, answer.payload))
        return tuple(found)

    def keep_seated(self, seated: set[str]) -> None:
        """Drops offers and divergence records of volumes that no longer have a seat."""
        self.differing = {v: part for v, part in self.differing.items() if v in seated}
        for offering in self.offers.values():
            for volume in [v for v in offering if v not in seated]:
                del offering[volume]

    def forget(self, delivered: int) -> None:
        """Drops offers, requests and answers of delivered epochs [12]."""
        for known in (self.offers, self.asked, self.taken):
            for part in [part for part in known if part[1] <= delivered]:
                del known[part]

    def clear(self) -> None:
        """Drops everything except the record of diverged volumes."""
        self.offers = {}
        self.asked = {}
        self.taken = {}
