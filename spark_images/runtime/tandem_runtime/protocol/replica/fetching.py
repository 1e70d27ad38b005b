"""How a replica comes by the rows of its next epoch: from either copy of each lane."""

from __future__ import annotations

from collections.abc import Iterable

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import Effect, Send
from tandem_runtime.protocol.messages.results import Fetch, FetchAnswer, Fetched
from tandem_runtime.protocol.types import Header, LaneId, Span

_LANES_KNOWN = 32
"""Where to find lanes is remembered for at most about so many."""


class Fetching:
    """The rows that have come, and where to ask for the others."""

    __slots__ = ("asked_at", "lanes", "rows", "_share", "_tries")

    def __init__(self, share: Share, now: int) -> None:
        self._share = share
        self.lanes: dict[LaneId, tuple[str, ...]] = {}
        """Who has copies of a lane."""
        self.rows: dict[Span, object] = {}
        self.asked_at = now
        self._tries: dict[Span, int] = {}
        """How often rows were asked for: each time the other copy is tried."""

    def missing(self, header: Header) -> list[Span]:
        """The chunks of an epoch that have not come."""
        return [span for span in header.spans if span not in self.rows]

    def ask(self, spans: Iterable[Span], now: int) -> list[Effect]:
        """Ask for chunks, each time the other copy."""
        self.asked_at = now
        return [self._ask_for(span) for span in spans]

    def _ask_for(self, span: Span) -> Effect:
        copies = self.lanes.get(span.lane, (span.lane.split,))
        turn = self._tries.get(span, 0)
        self._tries[span] = turn + 1
        return Send(copies[turn % len(copies)], Fetch(span, self._share))

    def came(self, message: Fetched) -> None:
        """A lane answered with rows, or that there are none for these keys."""
        if message.answer is FetchAnswer.ROWS:
            self.rows[message.span] = message.payload
        elif message.answer is FetchAnswer.NO_ROWS:
            self.rows[message.span] = ()

    def hand_over(self, header: Header) -> tuple[object, ...]:
        """The rows of an epoch that are all here; nothing of them is kept."""
        rows = tuple(self.rows[span] for span in header.spans)
        self.clear()
        return rows

    def clear(self) -> None:
        """Forget what has come and what was tried."""
        self.rows = {}
        self._tries = {}

    def forget_lanes(self, headers: Iterable[Header]) -> None:
        """Drop lanes that no known header names, once there are many [12]."""
        if len(self.lanes) <= _LANES_KNOWN:
            return
        named = {span.lane for header in headers for span in header.spans}
        self.lanes = {lane: copies for lane, copies in self.lanes.items() if lane in named}
