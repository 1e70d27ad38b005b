"""The epochs that a merge knows: their headers, without a gap, and what its slot delivers of each.

With the headers go the generations and dealings that they name.
"""

from __future__ import annotations

from tandem_core.contract.intent import Generation
from tandem_runtime.protocol.log.history import BEGINNING
from tandem_runtime.protocol.merge.slots import pairs_of_slot
from tandem_runtime.protocol.messages.peers import MergeView
from tandem_runtime.protocol.types import UNDIVIDED, Dealing, Header


class KnownEpochs:
    """The epochs after the delivered one, as views have told of them."""

    __slots__ = ("dealings", "dealt", "generations", "headers", "last", "_slot")

    def __init__(self, slot: int) -> None:
        self._slot = slot
        self.headers: dict[int, Header] = {}
        self.dealt: dict[int, tuple[str, ...]] = {}
        """The pairs that this slot delivers of each epoch whose header is known."""
        self.dealings: dict[int, Dealing] = {}
        self.generations: dict[int, Generation] = {}
        self.last: Header | None = None
        """The header of the last epoch that was delivered from here."""

    def last_epoch(self, delivered: int) -> int:
        """Headers are known without a gap through this epoch."""
        return max(self.headers, default=delivered)

    def digest_of(self, epoch: int) -> str:
        """The digest of the last delivered header; of the beginning if that is of another epoch."""
        known = self.last is not None and self.last.epoch == epoch
        return self.last.digest if self.last is not None and known else BEGINNING

    def all_headers(self) -> tuple[Header, ...]:
        """Every header that is known, the delivered one first."""
        known = (self.last, *self.headers.values())
        return tuple({header.digest: header for header in known if header}.values())

    def learn(self, view: MergeView, delivered: int) -> None:
        """Take in the next headers of a view, and what they name."""
        self.dealings.update({dealing.number: dealing for dealing in view.dealings})
        self.generations.update({g.number: g for g in view.generations})
        for header in view.headers:
            known = self._knows(header.dealing) and self._continues(header)
            if header.epoch == self.last_epoch(delivered) + 1 and known:
                self.headers[header.epoch] = header
                self.dealt[header.epoch] = self._pairs(header)

    def _knows(self, dealing: int) -> bool:
        """A rebuilt header log may have lost a dealing; nobody can deliver by it then (i)."""
        return dealing == UNDIVIDED or dealing in self.dealings

    def _continues(self, header: Header) -> bool:
        """Is a header of the history that is known here, and delivered?"""
        before = self.headers.get(header.epoch - 1, self.last)
        if before is None or before.epoch != header.epoch - 1:
            return True
        return before.digest == header.previous

    def _pairs(self, header: Header) -> tuple[str, ...]:
        """The pairs of an epoch that are dealt to this slot."""
        names = self.generations[header.generation].names()
        return pairs_of_slot(self.dealings, header.dealing, self._slot, names)

    def forget(self, delivered: int) -> None:
        """Drop what is delivered, but for its last header [12]."""
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
        """Forget the headers of epochs that are not delivered."""
        self.headers = {}
        self.dealt = {}
