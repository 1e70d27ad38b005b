"""What replicas offer and have answered: whom to ask, which answer counts, who differs.

One replica's answer of each (pair, epoch) is taken; the other's offer is compared with it by its
digest [4]. An offer counts only if it answers the very header that the merge knows.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from tandem_runtime.protocol.messages.peers import Answer, Offer
from tandem_runtime.protocol.types import Header

Part = tuple[str, int]
"""A pair and an epoch."""


class Taken(NamedTuple):
    """The answer that will be delivered for a (pair, epoch)."""

    volume: str
    digest: int
    payload: object


class Answers:
    """Offers, questions and answers of the epochs that are not delivered."""

    __slots__ = ("asked", "differing", "offers", "taken", "_ask_again_after")

    def __init__(self, ask_again_after: int) -> None:
        self._ask_again_after = ask_again_after
        self.offers: dict[Part, dict[str, Offer]] = {}
        """What each volume offers."""
        self.asked: dict[Part, tuple[str, int]] = {}
        """Whom an answer was asked of, and when."""
        self.taken: dict[Part, Taken] = {}
        self.differing: dict[str, Part] = {}
        """Volumes whose answer differed from their twin's; not asked until they are rebuilt."""

    def add_offer(self, part: Part, volume: str, offer: Offer) -> None:
        """Keep what a volume offers, in place of its earlier offer."""
        self.offers.setdefault(part, {})[volume] = offer

    def offering(self, part: Part, header: Header | None) -> list[str]:
        """The volumes whose result of an epoch counts: it answers the very header known here."""
        return [
            volume
            for volume, offer in self.offers.get(part, {}).items()
            if volume not in self.differing and header and offer.header == header.digest
        ]

    def choose_volume(self, part: Part, header: Header, now: int) -> str | None:
        """The replica to ask for an answer, or none if it came or is on its way.

        A replica that does not answer in time gives way to its twin.
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
        """Take the first answer of a pair and epoch; it is an offer, too."""
        part = (message.pair, message.epoch)
        (result,) = cast("tuple[object]", message.payload)
        self.taken[part] = Taken(volume, message.digest, result)
        offer = Offer(epoch=message.epoch, size=0, digest=message.digest, header=message.header)
        self.add_offer(part, volume, offer)

    def find_other(self, part: Part, header: Header | None) -> str | None:
        """A volume that offers another result than the one taken."""
        taken = self.taken.get(part)
        if taken is None:
            return None
        for volume in self.offering(part, header):
            if self.offers[part][volume].digest != taken.digest:
                return volume
        return None

    def give_up(self, part: Part) -> str:
        """Drop the answer that was taken, so that another one is fetched; the volume it is of."""
        return self.taken.pop(part).volume

    def whole(self, pairs: tuple[str, ...], epoch: int) -> tuple[tuple[str, object], ...] | None:
        """The results of an epoch, pair by pair; None while one is missing."""
        found = []
        for pair in pairs:
            answer = self.taken.get((pair, epoch))
            if answer is None:
                return None
            found.append((pair, answer.payload))
        return tuple(found)

    def keep_seated(self, seated: set[str]) -> None:
        """Forget volumes that have no seat any more."""
        self.differing = {v: part for v, part in self.differing.items() if v in seated}
        for offering in self.offers.values():
            for volume in [v for v in offering if v not in seated]:
                del offering[volume]

    def forget(self, delivered: int) -> None:
        """Drop what is delivered [12]."""
        for known in (self.offers, self.asked, self.taken):
            for part in [part for part in known if part[1] <= delivered]:
                del known[part]

    def clear(self) -> None:
        """Forget everything but who differs."""
        self.offers = {}
        self.asked = {}
        self.taken = {}
