"""Seeded bugs of seats and generations: acknowledgements, trim point, cut-over."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead import (
    generation_rules,
    lapse_rules,
    peer_reports,
    trim_rules,
)
from tandem_runtime.protocol.log import log_state
from tandem_runtime.protocol.log.entries import Entry, PairsRetired, Trimmed
from tandem_runtime.protocol.types import Seat
from tandem_simulator.campaign.bugs.substitution import decision, everywhere, seeded_bug


def _committed_by_name(seat: Seat, reports: peer_reports.PeerReports) -> int:
    name = seat.volume.rpartition(".")[0]
    said = [
        heard.report.committed
        for volume, heard in reports.replicas.items()
        if volume.rpartition(".")[0] == name
    ]
    return max([seat.hold, *said])


def _trim_past_joiners(
    known: log_state.LogState, reports: peer_reports.PeerReports
) -> Iterator[Entry]:
    point = min(peer_reports.delivered_through(known, reports), known.epoch)
    for seats in known.seats.values():
        for seat in seats:
            if seat is not None and seat.verified and not seat.lapsed:
                point = min(point, peer_reports.committed(seat, reports))
    if point > known.trim:
        yield Trimmed(point)


def _lapse_anybody(known: log_state.LogState, _hear: object, pair: str, number: int) -> bool:
    return known.seats[pair][number] is not None


def _name_target(
    known: log_state.LogState, reports: peer_reports.PeerReports, _settings: object
) -> int:
    target = reports.intent.target if reports.intent else 0
    return target if target in known.generations else known.generation


def _retire_at_cut(known: log_state.LogState, _hear: object, _now: int) -> Iterator[Entry]:
    if known.generation:
        kept = {n for g in known.generations if g >= known.generation for n in known.pairs(g)}
        old = tuple(pair for pair in known.living_pairs() if pair not in kept)
        if old:
            yield PairsRetired(old)


BUGS = (
    seeded_bug(
        "shared-name",
        "a zombie's acknowledgement counts for its replacement",
        *everywhere(peer_reports.committed, _committed_by_name),
    ),
    seeded_bug(
        "trim-without-joiner",
        "the trim point ignores a holder recorded just before it",
        (trim_rules, "trim_point", _trim_past_joiners),
    ),
    seeded_bug(
        "lapse-both",
        "both replicas of a pair may lapse",
        (lapse_rules, "can_lapse", _lapse_anybody),
    ),
    seeded_bug(
        "generation-back",
        "a new lead with an older intent goes back a generation",
        *everywhere(generation_rules.next_generation, _name_target),
    ),
    seeded_bug(
        "early-retire",
        "the old pairs stop at the cut, the new ones die",
        decision(generation_rules.retire_pairs, _retire_at_cut),
    ),
)
