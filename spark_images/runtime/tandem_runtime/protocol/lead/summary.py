"""The state of the pipeline in one value, for the operator and `tandem status`."""

from __future__ import annotations

from typing import NamedTuple

from tandem_core.contract.reports import ActiveMerge, LeadReport, PairReport, SeatReport
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.lead import Lead
from tandem_runtime.protocol.lead.peer_reports import committed, delivered_through
from tandem_runtime.protocol.log.log_state import LogState
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
        """Whether it is a full member."""
        return self.state.is_full

    @property
    def lapsed(self) -> bool:
        """Whether it has to join again."""
        return self.state is SeatState.LAPSED


class PairSummary(NamedTuple):
    """A pair and its replicas."""

    name: str
    seats: tuple[SeatSummary, ...]


class Summary(NamedTuple):
    """The pipeline as the lead knows it."""

    term: int
    epoch: int
    delivered: int
    trim: int
    generation: int
    rows_in: int
    """Rows of all epochs so far."""
    rejected: int
    """Rows and files rejected through the last epoch."""
    pairs: tuple[PairSummary, ...]
    lost: tuple[str, ...]
    vulnerable: tuple[str, ...]
    """Header log, lanes and current pairs that have only one copy now [8]."""
    merges: tuple[tuple[int, str], ...]
    """The active merge of each slot."""
    completed: bool
    slots: tuple[Slot, ...] = ()
    """Merge slots that are open, or ended and not sealed at every sink yet."""
    next_slot: int = 0
    """Lowest slot number that was never used."""


def summarise(lead: Lead, now: int) -> Summary:
    """Returns the state of the pipeline, from published entries and reports.

    Called from another thread than the lead's, so the lead may change its state meanwhile.
    """
    log_state, reports = lead.log_state.copy(), lead.reports
    pairs = []
    for name in log_state.living_pairs():
        seats = []
        for seat in log_state.seats.get(name, ()):
            if seat is not None:
                through = committed(seat, reports)
                silent = reports.silent(seat.volume, now)
                close = log_state.epoch - through <= lead.settings.synced_within
                seats.append(
                    SeatSummary(
                        volume=seat.volume,
                        state=seat.state,
                        committed=through,
                        synced=seat.verified and close and not silent,
                        silent=silent,
                    )
                )
        pairs.append(PairSummary(name, tuple(seats)))
    return Summary(
        term=lead.term,
        epoch=log_state.epoch,
        delivered=delivered_through(log_state, reports),
        trim=log_state.trim,
        generation=log_state.generation,
        rows_in=sum(mark.rows for mark in log_state.marks.values()),
        rejected=sum(mark.rejected for mark in log_state.marks.values()),
        pairs=tuple(pairs),
        lost=tuple(log_state.lost),
        vulnerable=tuple(_vulnerable(log_state, lead)),
        merges=tuple(sorted(log_state.merges.items())),
        completed=log_state.completed,
        slots=tuple(log_state.slots[number] for number in sorted(log_state.slots)),
        next_slot=log_state.next_slot,
    )


def lead_report(summary: Summary, lag_seconds: float = 0.0) -> LeadReport:
    """Returns a summary as the lead reports it to the operator."""
    return LeadReport(
        term=summary.term,
        epoch=summary.epoch,
        delivered=summary.delivered,
        generation=summary.generation,
        rows_in=summary.rows_in,
        rejected=summary.rejected,
        lag_seconds=lag_seconds,
        pairs=tuple(_pair_report(pair) for pair in summary.pairs),
        lost=summary.lost,
        vulnerable=summary.vulnerable,
        completed=summary.completed,
        merges=tuple(ActiveMerge(slot=slot, volume=volume) for slot, volume in summary.merges),
        open_slots=tuple(slot.number for slot in summary.slots if slot.is_open),
        next_slot=summary.next_slot,
        trim=summary.trim,
        ending_slots=tuple(slot.number for slot in summary.slots if not slot.is_open),
    )


def _pair_report(pair: PairSummary) -> PairReport:
    seats = tuple(
        SeatReport(
            volume=seat.volume,
            state=seat.state,
            committed=seat.committed,
            synced=seat.synced,
            silent=seat.silent,
        )
        for seat in pair.seats
    )
    return PairReport(name=pair.name, seats=seats)


def _vulnerable(log_state: LogState, lead: Lead) -> list[str]:
    single = [] if lead.log.bond is Bond.PAIRED else ["header log"]
    gone = lead.reports.gone
    single.extend(
        f"lane {lane.split}/{lane.number}"
        for lane, state in log_state.lanes.items()
        if state.buddy is None or state.buddy in gone or lane.split in gone
    )
    single.extend(
        pair for pair in _current_pairs(log_state) if _full_members(log_state, pair) < _SEATS
    )
    return single


def _current_pairs(log_state: LogState) -> list[str]:
    """Returns the pairs of the generation that headers name, or of the first one before any.

    Shadows are built from these, and muted pairs have handed their keys over to them: no other pair
    holds what exists nowhere else.
    """
    number = log_state.generation or min(log_state.names, default=0)
    names = log_state.names.get(number, ())
    return [name for name in names if name not in log_state.retired]


def _full_members(log_state: LogState, pair: str) -> int:
    seats = log_state.seats.get(pair, ())
    return sum(1 for s in seats if s and s.state is SeatState.VERIFIED)


_SEATS = 2
"""A pair with fewer full members has state of which there is one copy only."""
