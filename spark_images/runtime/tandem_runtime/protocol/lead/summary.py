"""The pipeline in one value, for whoever watches it: the operator, `tandem status`."""

from __future__ import annotations

from typing import NamedTuple

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.lead import Lead
from tandem_runtime.protocol.lead.peer_reports import committed, delivered_through
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.states import Bond
from tandem_runtime.protocol.types import Slot


class SeatSummary(NamedTuple):
    """A replica as the lead knows it."""

    volume: str
    state: SeatState
    committed: int
    synced: bool
    silent: bool

    @property
    def verified(self) -> bool:
        """Is it a full member?"""
        return self.state.is_full

    @property
    def lapsed(self) -> bool:
        """Has it to join again?"""
        return self.state is SeatState.LAPSED


class PairSummary(NamedTuple):
    """A pair and its replicas."""

    name: str
    generation_known: bool
    seats: tuple[SeatSummary, ...]


class Summary(NamedTuple):
    """What the lead knows."""

    term: int
    epoch: int
    delivered: int
    trim: int
    generation: int
    rows_in: int
    """Rows of all epochs so far."""
    rejected: int
    """Rows and files that were put aside on the way to the last epoch."""
    pairs: tuple[PairSummary, ...]
    lost: tuple[str, ...]
    vulnerable: tuple[str, ...]
    """What has only one copy now [8]."""
    merges: tuple[tuple[int, str], ...]
    """The active merge of each slot."""
    completed: bool
    slots: tuple[Slot, ...] = ()
    """Merge slots that are open, or ended and not sealed at every sink yet."""
    next_slot: int = 0
    """The lowest number that no slot ever had."""


def summarise(lead: Lead, now: int) -> Summary:
    """The state of the pipeline, from published entries and what was reported.

    The lead may go on meanwhile: whoever watches asks from another thread.
    """
    book, hear = lead.book.copy(), lead.hear
    pairs = []
    for name in book.living_pairs():
        seats = []
        for seat in book.seats.get(name, ()):
            if seat is not None:
                through = committed(seat, hear)
                silent = hear.silent(seat.volume, now)
                close = book.epoch - through <= lead.settings.synced_within
                seats.append(
                    SeatSummary(
                        volume=seat.volume,
                        state=seat.state,
                        committed=through,
                        synced=seat.verified and close and not silent,
                        silent=silent,
                    )
                )
        pairs.append(PairSummary(name, generation_known=True, seats=tuple(seats)))
    return Summary(
        term=lead.term,
        epoch=book.epoch,
        delivered=delivered_through(book, hear),
        trim=book.trim,
        generation=book.generation,
        rows_in=sum(mark.rows for mark in book.marks.values()),
        rejected=sum(mark.rejected for mark in book.marks.values()),
        pairs=tuple(pairs),
        lost=tuple(book.lost),
        vulnerable=tuple(_vulnerable(book, lead)),
        merges=tuple(sorted(book.merges.items())),
        completed=book.completed,
        slots=tuple(book.slots[number] for number in sorted(book.slots)),
        next_slot=book.next_slot,
    )


def _vulnerable(book: Book, lead: Lead) -> list[str]:
    single = [] if lead.log.bond is Bond.PAIRED else ["header log"]
    gone = lead.hear.gone
    single.extend(
        f"lane {lane.split}/{lane.number}"
        for lane, state in book.lanes.items()
        if state.buddy is None or state.buddy in gone or lane.split in gone
    )
    single.extend(pair for pair in book.living_pairs() if _full_members(book, pair) < _SEATS)
    return single


def _full_members(book: Book, pair: str) -> int:
    seats = book.seats.get(pair, ())
    return sum(1 for s in seats if s and s.state is SeatState.VERIFIED)


_SEATS = 2
"""A pair with fewer full members has state of which there is one copy only."""
