"""Whose end matters: the volumes that a shell has to look for among those that are gone.

Nobody keeps a list of all that ever went. So a split says whom it has to do with, and its shell
finds out which of them are gone for good.
"""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.election.rebuild import Mustering
from tandem_runtime.protocol.lead.peer_reports import Hearsay
from tandem_runtime.protocol.log.log_state import Book

Found = Iterator[str | None]
"""Volumes, and None where a place is empty."""


def in_book(book: Book) -> Found:
    """Owners and buddies of lanes, holders of seats, active merges."""
    for lane, state in book.lanes.items():
        yield from (lane.split, state.buddy)
    for seats in book.seats.values():
        yield from (seat.volume for seat in seats if seat is not None)
    yield from book.merges.values()


def in_hearsay(hear: Hearsay) -> Found:
    """Whoever reported, and the buddies that splits ask for."""
    for known in (hear.splits, hear.replicas, hear.merges):
        yield from known
    for heard in hear.splits.values():
        opening = heard.report.opening
        yield opening[1] if opening is not None else None
        yield from (lane.ask[1] for lane in heard.report.lanes if lane.ask is not None)


def in_muster(mustering: Mustering) -> Found:
    """Whoever answered, and whoever holds chunks."""
    yield from mustering.present
    for holders in mustering.copies.values():
        yield from holders
