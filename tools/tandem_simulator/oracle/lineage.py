"""Records histories: which header was shown as the successor of which.

A lost header log may be rebuilt, and may cut again epochs that were already shown. Then there are
two histories with the same numbers, and a rebuilt log may continue either, as long as it existed.
Headers are named by digests, and successors are taken from what the ledger has seen.
"""

from __future__ import annotations

from tandem_runtime.protocol.types import Header


class Lineage:
    """Every header that was shown, and its predecessor."""

    def __init__(self) -> None:
        self._headers: dict[str, Header] = {}
        self._before: dict[str, Header | None] = {}

    def seen(self, header: Header, before: Header | None) -> None:
        """Record a header, and the last header before it."""
        self._headers.setdefault(header.digest, header)
        self._before.setdefault(header.digest, before)

    def history_of(self, digest: str) -> list[Header] | None:
        """All headers up to the one with this digest, in order; None if it was never shown."""
        header = self._headers.get(digest)
        if header is None:
            return None
        history: list[Header] = []
        while header is not None:
            history.append(header)
            header = self._before[header.digest]
        return history[::-1]
