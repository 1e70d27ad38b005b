"""The headers that a replica knows: without a gap, and of one history."""

from __future__ import annotations

from tandem_runtime.protocol.effects import Effect, Erase
from tandem_runtime.protocol.log.history import BEGINNING
from tandem_runtime.protocol.types import Header


class KnownHeaders(dict[int, Header]):
    """Headers by epoch, from the last committed ones on."""

    def last(self, committed: int) -> int:
        """Headers are known without a gap through this epoch."""
        return max(committed, max(self, default=0))

    def digest_of(self, epoch: int) -> str:
        """The digest of an epoch's header; that of the beginning if it is not known."""
        header = self.get(epoch)
        return header.digest if header is not None else BEGINNING

    def next(self, committed: int) -> Header | None:
        """The header after the committed one. A copied state may be of another history than it."""
        header = self.get(committed + 1)
        return header if header and header.previous == self.digest_of(committed) else None

    def lacks(self, header: Header, committed: int) -> bool:
        """Does a header continue those known here, and is it not one of them?

        A rebuilt log (i) may have cut epochs anew that are known here and not committed.
        """
        before = header.epoch - 1
        if header.epoch <= committed or before > self.last(committed):
            return False
        return self.digest_of(before) == header.previous and header != self.get(header.epoch)

    def take(self, header: Header) -> None:
        """Keep a header in place of what was known of its epoch and of later ones."""
        for epoch in [e for e in self if e > header.epoch]:
            del self[epoch]
        self[header.epoch] = header

    def forget(self, trim: int, committed: int) -> list[Effect]:
        """Drop those before the trim point; the last committed one is needed for rule (i)."""
        old = [epoch for epoch in self if epoch < trim and epoch < committed]
        for epoch in old:
            del self[epoch]
        return [Erase(("header", epoch)) for epoch in old]
