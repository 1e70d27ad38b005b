"""Surveys the positions of sinks for a rebuild of the header log, rule (i).

Only the sinks know for certain which epoch was delivered last: the merge that delivered it may be
silent, and a standby, or a merge without a view of its slot, does not know.
"""

from __future__ import annotations

from tandem_runtime.protocol.effects import Effect, SurveySink
from tandem_runtime.protocol.messages.peers import SinkSurveyed


class Survey:
    """Answers of all sinks to the survey of one rebuild."""

    __slots__ = ("_asked_at", "_found", "_silence", "_sinks", "_term")

    def __init__(self, sinks: tuple[str, ...], silence: int) -> None:
        self._sinks = sinks
        self._silence = silence
        self._term = 0
        self._asked_at = 0
        self._found: dict[str, int] = {}

    def ask(self, term: int, now: int) -> list[Effect]:
        """Surveys the sinks that have not answered in this term, once per heartbeat timeout."""
        if term <= self._term and now - self._asked_at < self._silence:
            return []
        if term > self._term:
            self._term, self._found = term, {}
        self._asked_at = now
        return [SurveySink(sink, self._term) for sink in self._sinks if sink not in self._found]

    def told(self, message: SinkSurveyed) -> None:
        """Stores a sink's answer; ignores answers to the survey of an earlier term."""
        if message.term == self._term:
            self._found[message.sink] = message.furthest

    @property
    def complete(self) -> bool:
        """Whether every sink has answered."""
        return len(self._found) == len(self._sinks)

    @property
    def furthest(self) -> int:
        """Last epoch that any sink has, of any slot."""
        return max(self._found.values(), default=0)
