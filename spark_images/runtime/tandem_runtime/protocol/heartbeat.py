"""What is said again and again, so that whoever hears it knows that the speaker lives."""

from __future__ import annotations

from tandem_runtime.protocol.types import ProtocolSettings


class Heartbeat:
    """News is said at once, the same again only as often as it has to be heard.

    At short epochs machines are told the time more often than that.
    """

    __slots__ = ("_at", "_rest", "_said")

    def __init__(self, settings: ProtocolSettings) -> None:
        beat, every = settings.beat, settings.heartbeat_every
        # Ticks are not quite regular: the one that is nearest to the time counts.
        self._rest = every - beat // 2 if beat < every else 0
        self._said: object = None
        self._at = 0

    def is_due(self, said: object, now: int) -> bool:
        """Whether to say this now; if so, it counts as said."""
        if said == self._said and now - self._at < self._rest:
            return False
        self._said, self._at = said, now
        return True
