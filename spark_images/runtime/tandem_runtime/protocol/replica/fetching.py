"""Fetches the rows of a replica's next epoch, from either copy of each lane."""

from __future__ import annotations

from collections.abc import Iterable

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import Effect, Send
from tandem_runtime.protocol.messages.results import Fetch, FetchAnswer, Fetched
from tandem_runtime.protocol.types import Header, LaneId, Span

_LANES_KNOWN = 32
"""Number of lanes beyond which those that no known header names are dropped."""


class Fetching:
    """Rows that have arrived, and the splits to ask for the others."""

    __slots__ = ("asked_at", "lanes", "rows", "_tries")

    def __init__(self, now: int) -> None:
        self.lanes: dict[LaneId, tuple[str, ...]] = {}
        """Splits that have a copy of a lane."""
        self.rows: dict[Span, object] = {}
        self.asked_at = now
        self._tries: dict[Span, int] = {}
        """Requests sent for each span; each one goes to the other copy."""

    def missing(self, header: Header) -> list[Span]:
        """Returns the spans of an epoch that have not arrived."""
        return [span for span in header.spans if span not in self.rows]

    def ask(self, spans: Iterable[Span], share: Share, now: int) -> list[Effect]:
        """Requests a share of spans, each time from the other copy."""
        self.asked_at = now
        return [self._ask_for(span, share) for span in spans]

    def _ask_for(self, span: Span, share: Share) -> Effect:
        copies = self.lanes.get(span.lane, (span.lane.split,))
        turn = self._tries.get(span, 0)
        self._tries[span] = turn + 1
        return Send(copies[turn % len(copies)], Fetch(span, share))

    def came(self, message: Fetched) -> None:
        """Stores the rows of an answer; none if the span has no rows."""
        if message.answer is FetchAnswer.ROWS:
            self.rows[message.span] = message.payload
        elif message.answer is FetchAnswer.NO_ROWS:
            self.rows[message.span] = ()

    def hand_over(self, header: Header) -> tuple[object, ...]:
        """Returns the rows of a complete epoch, and drops them here."""
        rows = tuple(self.rows[span] for span in header.spans)
        self.clear()
        return rows

    def clear(self) -> None:
        """Drops all rows and the record of requests."""
        self.rows = {}
        self._tries = {}

    def forget_lanes(self, headers: Iterable[Header]) -> None:
        """Drops lanes that no known header names, once there are many [12]."""
        if len(self.lanes) <= _LANES_KNOWN:
            return
        named = {span.lane for header in headers for span in header.spans}
        self.lanes = {lane: copies for lane, copies in self.lanes.items() if lane in named}
