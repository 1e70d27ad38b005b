"""Serves chunks to replicas: a fetch names a span of a lane, and the share of keys it is for.

The routing function that chooses the keys is named by its digest. A split that does not know it
asks the lead, and answers *not here*: the replica tries the other copy, or this one later.
"""

from __future__ import annotations

from tandem_core.contract.intent import Function
from tandem_runtime.protocol.bounded_map import BoundedMap
from tandem_runtime.protocol.effects import Effect, Select, Send, Ship
from tandem_runtime.protocol.election.register import RegisterClient
from tandem_runtime.protocol.messages.peers import (
    Fetch,
    FetchAnswer,
    Fetched,
    FunctionTold,
    WantFunction,
)
from tandem_runtime.protocol.split.lane_copies import Copies
from tandem_runtime.protocol.split.own_lane import OwnLane
from tandem_runtime.protocol.types import Peer


class ChunkServer:
    """Answers fetches from the lanes that are kept on a volume."""

    __slots__ = ("functions", "_copies", "_me", "_register")

    def __init__(self, me: str, copies: Copies, register: RegisterClient) -> None:
        self._me = me
        self._copies = copies
        self._register = register
        self.functions: BoundedMap[bytes] = BoundedMap()
        """Routing functions by their digest, from the intent or from the lead."""

    def learn(self, function: Function) -> None:
        """Keep a routing function."""
        self.functions[function.digest] = function.form

    def answer(self, sender: Peer, message: Fetch, own: OwnLane | None) -> list[Effect]:
        """Answer a replica's fetch, in one of five ways (`FetchAnswer`)."""
        lane, first, last = message.span.lane, message.span.first, message.span.last
        if own is not None and own.lane == lane:
            base, through, notes = own.log.base, own.log.published, own.notes
        elif lane in self._copies.lanes:
            kept = self._copies.lanes[lane]
            base, through, notes = kept.copy.base, kept.copy.through, kept.notes
        else:
            return [Send(sender.volume, Fetched(message.span, FetchAnswer.NOT_HERE))]
        if first <= base:
            return [Send(sender.volume, Fetched(message.span, FetchAnswer.GONE))]
        if last > through:
            return [Send(sender.volume, Fetched(message.span, FetchAnswer.NOT_YET))]
        if all(notes[number].size == 0 for number in range(first, last + 1)):
            return [Send(sender.volume, Fetched(message.span, FetchAnswer.NO_ROWS))]
        function = self.functions.get(message.share.function)
        if function is None:
            return [
                Send(sender.volume, Fetched(message.span, FetchAnswer.NOT_HERE)),
                *self._want(message.share.function),
            ]
        keys = tuple(("chunk", lane, number) for number in range(first, last + 1))
        select = Select(Function(message.share.function, function), message.share.label)
        return [Ship(sender.volume, Fetched(message.span, FetchAnswer.ROWS), keys, select)]

    def _want(self, digest: str) -> list[Effect]:
        """Ask the lead for a routing function that is not known here."""
        lead = self._register.known.lead
        if not lead or lead == self._me:
            return []
        return [Send(lead, WantFunction(digest))]

    def tell_function(self, sender: Peer, message: WantFunction) -> list[Effect]:
        """Send another split the routing function that it lacks, if it is known here."""
        form = self.functions.get(message.digest)
        if form is None:
            return []
        return [Send(sender.volume, FunctionTold(Function(message.digest, form)))]
