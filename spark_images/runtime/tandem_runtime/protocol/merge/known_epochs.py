"""Holds the epochs that a merge has headers of, without a gap, and its slot's pairs of each.

The generations and dealings that the headers name are kept with them.
"""

from __future__ import annotations

from tandem_core.contract.intent import Generation
from tandem_runtime.protocol.log.history import BEGINNING
from tandem_runtime.protocol.merge.slots import pairs_of_slot
from tandem_runtime.protocol.messages.peers import MergeView
from tandem_runtime.protocol.types import UNDIVIDED, Dealing, Header


class KnownEpochs:
    """Epochs after the delivered one, from the lead's views."""

    __slots__ = ("dealings", "dealt", "generations", "headers", "last", "_slot")

    def __init__(self, slot: int) -> None:
        self._slot = slot
        self.headers: dict[int, Header] = {}
        self.dealt: dict[int, tuple[str, ...]] = {}
        """Pairs that this slot delivers of each epoch in `headers`."""
        self.dealings: dict[int, Dealing] = {}
        self.generations: dict[int, Generation] = {}
        self.last: Header | None = None
        """Header of the last delivered epoch, if it was known here."""

    def last_epoch(self, delivered: int) -> int:
        """Returns the epoch of the last header; there is no gap between it and `delivered`."""
        return max(self.headers, default=delivered)

    def digest_of(self, epoch: int) -> str:
        """Returns the last delivered header's digest; `BEGINNING` if that is of another epoch."""
        known = self.last is not None and self.last.epoch == epoch
        return self.last.digest if self.last is not None and known else BEGINNING

    def all_headers(self) -> tuple[Header, ...]:
        """Returns all known headers, the last delivered one first."""
        known = (self.last, *self.headers.values())
        return tuple({header.digest: header for header in known if header}.values())

    def learn(self, view: MergeView, delivered: int) -> None:
        """Adds the next headers of a view, with the generations and dealings that they name."""
        self.dealings.update({dealing.number: dealing for dealing in view.dealings})
        self.generations.update({g.number: g for g in view.generations})
        for header in view.headers:
            known = self._knows(header.dealing) and self._continues(header)
            if header.epoch == self.last_epoch(delivered) + 1 and known:
                self.headers[header.epoch] = header
                self.dealt[header.epoch] = self._pairs(header)

    def _knows(self, dealing: int) -> bool:
        """Whether a dealing is known; a rebuilt header log may have lost it (i)."""
        return dealing == UNDIVIDED or dealing in self.dealings

    def _continues(self, header: Header) -> bool:
        """Whether a header continues the history that is known here."""
        before = self.headers.get(header.epoch - 1, self.last)
        if before is None or before.epoch != header.epoch - 1:
            return True
        return before.digest == header.previous

    def _pairs(self, header: Header) -> tuple[str, ...]:
        """Returns the pairs of an epoch that this slot delivers."""
        names = self.generations[header.generation].names()
        return pairs_of_slot(self.dealings, header.dealing, self._slot, names)

    def forget(self, delivered: int) -> None:
        """Drops delivered epochs, except the header of the last one [12]."""
        self.last = self.headers.get(delivered, self.last)
        for epoch in [e for e in self.headers if e <= delivered]:
            del self.headers[epoch]
            del self.dealt[epoch]
        dealings = {header.dealing for header in self.headers.values()}
        latest = max(self.dealings, default=UNDIVIDED)
        for number in [n for n in self.dealings if n < latest and n not in dealings]:
            del self.dealings[number]
        named = {header.generation for header in self.headers.values()}
        newest = max(self.generations, default=0)
        for number in [n for n in self.generations if n < newest and n not in named]:
            del self.generations[number]

    def clear(self) -> None:
        """Drops the headers of all epochs that are not delivered."""
        self.headers = {}
        self.dealt = {}
