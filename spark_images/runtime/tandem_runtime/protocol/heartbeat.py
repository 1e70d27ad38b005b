"""Throttles messages that are repeated as heartbeats."""

from __future__ import annotations

from tandem_runtime.protocol.types import ProtocolSettings


class Heartbeat:
    """Lets a changed message pass at once, an unchanged one only at the heartbeat interval.

    With short epochs, ticks are more frequent than heartbeats.
    """

    __slots__ = ("_at", "_rest", "_said")

    def __init__(self, settings: ProtocolSettings) -> None:
        beat, every = settings.beat, settings.heartbeat_every
        # Ticks are not quite regular: the one nearest to the due time counts.
        self._rest = every - beat // 2 if beat < every else 0
        self._said: object = None
        self._at = 0

    def is_due(self, said: object, now: int) -> bool:
        """Whether to send this message now; if so, records it as sent."""
        if said == self._said and now - self._at < self._rest:
            return False
        self._said, self._at = said, now
        return True
