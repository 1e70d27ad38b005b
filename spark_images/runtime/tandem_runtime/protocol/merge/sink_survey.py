"""What sinks have, asked for when the header log is rebuilt, rule (i).

What was delivered last only the sinks know for certain: the merge that did it may be silent, and a
merge that stands by, or was never told of its slot, knows nothing of it.
"""

from __future__ import annotations

from tandem_runtime.protocol.effects import Effect, SurveySink
from tandem_runtime.protocol.messages.peers import SinkSurveyed


class Survey:
    """The answers of all sinks to the survey of one muster."""

    __slots__ = ("_asked_at", "_found", "_silence", "_sinks", "_term")

    def __init__(self, sinks: tuple[str, ...], silence: int) -> None:
        self._sinks = sinks
        self._silence = silence
        self._term = 0
        self._asked_at = 0
        self._found: dict[str, int] = {}

    def ask(self, term: int, now: int) -> list[Effect]:
        """Ask the sinks that have not answered since the muster of a term; not all the time."""
        if term <= self._term and now - self._asked_at < self._silence:
            return []
        if term > self._term:
            self._term, self._found = term, {}
        self._asked_at = now
        return [SurveySink(sink, self._term) for sink in self._sinks if sink not in self._found]

    def told(self, message: SinkSurveyed) -> None:
        """A sink answered; an answer to the survey of an earlier muster counts for nothing."""
        if message.term == self._term:
            self._found[message.sink] = message.furthest

    @property
    def complete(self) -> bool:
        """Has every sink answered?"""
        return len(self._found) == len(self._sinks)

    @property
    def furthest(self) -> int:
        """The last epoch of which some sink has something."""
        return max(self._found.values(), default=0)
