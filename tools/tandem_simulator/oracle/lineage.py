"""The ledger's own account of histories: which header was shown as the successor of which.

A header log that was lost may be rebuilt, and cut epochs anew that somebody was already shown. Then
there are two histories with the same numbers. A rebuilt log may go on with either, as long as it is
one that was. Digests serve as names here; what follows what is what the ledger has seen.
"""

from __future__ import annotations

from tandem_runtime.protocol.types import Header


class Lineage:
    """Every header that was ever shown, and the one before it."""

    def __init__(self) -> None:
        self._headers: dict[str, Header] = {}
        self._before: dict[str, Header | None] = {}

    def seen(self, header: Header, before: Header | None) -> None:
        """A header was shown, while this one was the last before it."""
        self._headers.setdefault(header.digest, header)
        self._before.setdefault(header.digest, before)

    def history_of(self, digest: str) -> list[Header] | None:
        """All headers up to the one of this name, in order; None if nobody was ever shown it."""
        header = self._headers.get(digest)
        if header is None:
            return None
        history: list[Header] = []
        while header is not None:
            history.append(header)
            header = self._before[header.digest]
        return history[::-1]
