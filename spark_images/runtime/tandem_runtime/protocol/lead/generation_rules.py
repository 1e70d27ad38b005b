"""Generation lifecycle decisions of the lead: announce, cut over, give up, retire."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.peer_reports import (
    PeerReports,
    committed,
    committed_by_faster,
    delivered_through,
)
from tandem_runtime.protocol.log.entries import (
    Entry,
    GenerationGivenUp,
    GenerationKnown,
    PairsRetired,
    RetirementCalled,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.types import ProtocolSettings


def follow_intent(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Records generations that the intent adds or gives up.

    Ignores an intent older than one that was acted on: this lead may be new and its watch late.
    Ignores a generation with a retired pair, whose state is gone: the operator may go back to the
    pairs of an earlier generation without knowing yet that they were retired.
    """
    intent = reports.intent
    if intent is None or intent.version < log_state.intent_version:
        return
    wanted = {generation.number for generation in intent.generations}
    if wanted == log_state.generations.keys():
        return
    for number in log_state.generations:
        if number > log_state.generation and number not in wanted:
            yield GenerationGivenUp(number, intent.version)
    retired = set(log_state.retired)
    newest = max(log_state.generation, *log_state.generations, *log_state.given_up, 0)
    for generation in sorted(intent.generations, key=lambda generation: generation.number):
        if generation.number > newest and retired.isdisjoint(generation.names()):
            yield GenerationKnown(generation, intent.version)


def next_generation(log_state: LogState, reports: PeerReports, settings: ProtocolSettings) -> int:
    """Returns the generation of the next header: never lower than the last one's [7].

    The intent's target counts only while every new pair has a full member that keeps up; until
    then headers name the old generation.
    """
    target = reports.intent.target if reports.intent else 0
    if target <= log_state.generation or target not in log_state.generations:
        return log_state.generation
    ready = all(
        any(seat and seat.verified for seat in log_state.seats[pair])
        and log_state.epoch - committed_by_faster(log_state, reports, pair)
        < settings.max_uncommitted
        for pair in log_state.pairs(target)
    )
    return target if ready or log_state.generation == 0 else log_state.generation


def retire_pairs(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Retires pairs that only an older generation has, once all current replicas have committed.

    In two steps: the last report of a new pair may have made the old ones dispensable, and if that
    pair then died unnoticed, it must still find them.
    """
    if len(log_state.names) <= 1 or log_state.generation == 0:
        return
    if delivered_through(log_state, reports) < log_state.first_of_generation:
        return
    kept = {
        name
        for n in log_state.generations
        if n >= log_state.generation
        for name in log_state.pairs(n)
    }
    old = tuple(pair for pair in log_state.living_pairs() if pair not in kept)
    if not old or not all_replicas_committed(log_state, reports):
        return
    if not log_state.retiring:
        yield RetirementCalled()
    elif all(_lives_since(volume, log_state.retiring, reports) for volume in _current(log_state)):
        yield PairsRetired(old)


def all_replicas_committed(log_state: LogState, reports: PeerReports) -> bool:
    """Whether every replica of the current generation has committed one of its epochs."""
    replicas = reports.intent.replicas if reports.intent else 2
    return all(
        seat is not None
        and seat.verified
        and committed(seat, reports) >= log_state.first_of_generation
        for pair in log_state.pairs(log_state.generation)
        for seat in log_state.seats[pair][:replicas]
    )


def _current(log_state: LogState) -> list[str]:
    """Returns the volumes of the replicas of the current generation."""
    pairs = log_state.pairs(log_state.generation)
    return [seat.volume for pair in pairs for seat in log_state.seats[pair] if seat is not None]


def _lives_since(volume: str, call: int, reports: PeerReports) -> bool:
    """Whether a replica has reported since it received a call."""
    heard = reports.replicas.get(volume)
    return heard is not None and heard.report.calls >= call
