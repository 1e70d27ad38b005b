"""Holds the headers that a replica has: without a gap, and of one history."""

from __future__ import annotations

from tandem_runtime.protocol.effects import Effect, Erase
from tandem_runtime.protocol.log.history import BEGINNING
from tandem_runtime.protocol.types import Header


class KnownHeaders(dict[int, Header]):
    """Headers by epoch, starting with the last committed ones."""

    def last(self, committed: int) -> int:
        """Returns the epoch of the last header, or the committed one if that is later."""
        return max(committed, max(self, default=0))

    def digest_of(self, epoch: int) -> str:
        """Returns the digest of an epoch's header; `BEGINNING` if it is not known."""
        header = self.get(epoch)
        return header.digest if header is not None else BEGINNING

    def next(self, committed: int) -> Header | None:
        """Returns the header to run next; None if it is missing or of another history."""
        header = self.get(committed + 1)
        return header if header and header.previous == self.digest_of(committed) else None

    def lacks(self, header: Header, committed: int) -> bool:
        """Whether a header is new and continues those known here.

        A rebuilt log (i) may have cut known, uncommitted epochs again.
        """
        before = header.epoch - 1
        if header.epoch <= committed or before > self.last(committed):
            return False
        return self.digest_of(before) == header.previous and header != self.get(header.epoch)

    def take(self, header: Header) -> None:
        """Stores a header in place of those of its epoch and of later ones."""
        for epoch in [e for e in self if e > header.epoch]:
            del self[epoch]
        self[header.epoch] = header

    def forget(self, trim: int, committed: int) -> list[Effect]:
        """Drops headers before the trim point, but keeps the last committed one for rule (i)."""
        old = [epoch for epoch in self if epoch < trim and epoch < committed]
        for epoch in old:
            del self[epoch]
        return [Erase(("header", epoch)) for epoch in old]
