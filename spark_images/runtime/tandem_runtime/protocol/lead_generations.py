"""What the lead decides about generations: to know, to name, to give up, to retire."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.peer_reports import Hearsay, committed, delivered_through, faster
from tandem_runtime.protocol.log.entries import (
    Entry,
    GenerationGivenUp,
    GenerationKnown,
    PairsRetired,
    RetirementCalled,
)
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.types import Settings


def intent_changes(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Generations that the intent brings or gives up.

    An intent older than one that was acted on says nothing: this lead may be new and its watch
    late.
    """
    intent = hear.intent
    if intent is None or intent.version < book.intent_version:
        return
    wanted = {generation.number for generation in intent.generations}
    if wanted == book.generations.keys():
        return
    for number in book.generations:
        if number > book.generation and number not in wanted:
            yield GenerationGivenUp(number, intent.version)
    newest = max(book.generation, *book.generations, *book.given_up, 0)
    for generation in sorted(intent.generations, key=lambda generation: generation.number):
        if generation.number > newest:
            yield GenerationKnown(generation, intent.version)


def generation_to_name(book: Book, hear: Hearsay, settings: Settings) -> int:
    """The generation of the next header: never lower than the last one's [7].

    The intent's target counts only while every new pair has a full member that keeps up; until
    then the old generation goes on.
    """
    target = hear.intent.target if hear.intent else 0
    if target <= book.generation or target not in book.generations:
        return book.generation
    ready = all(
        any(seat and seat.verified for seat in book.seats[pair])
        and book.epoch - faster(book, hear, pair) < settings.max_uncommitted
        for pair in book.pairs(target)
    )
    return target if ready or book.generation == 0 else book.generation


def retirements(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Pairs that only an older generation has, once the new ones stand on their own feet.

    In two steps: a new pair that died unnoticed, after its last word had made the old ones
    dispensable, must still find them.
    """
    if len(book.names) <= 1 or book.generation == 0:
        return
    if delivered_through(book, hear) < book.first_of_generation:
        return
    kept = {name for n in book.generations if n >= book.generation for name in book.pairs(n)}
    old = tuple(pair for pair in book.living_pairs() if pair not in kept)
    if not old or not settled(book, hear):
        return
    if not book.retiring:
        yield RetirementCalled()
    elif all(_lives_since(volume, book.retiring, hear) for volume in _current(book)):
        yield PairsRetired(old)


def settled(book: Book, hear: Hearsay) -> bool:
    """Has every replica of every current pair committed an epoch of the current generation?"""
    replicas = hear.intent.replicas if hear.intent else 2
    return all(
        seat is not None and seat.verified and committed(seat, hear) >= book.first_of_generation
        for pair in book.pairs(book.generation)
        for seat in book.seats[pair][:replicas]
    )


def _current(book: Book) -> list[str]:
    """Volumes of the replicas of the current generation."""
    pairs = book.pairs(book.generation)
    return [seat.volume for pair in pairs for seat in book.seats[pair] if seat is not None]


def _lives_since(volume: str, call: int, hear: Hearsay) -> bool:
    """Has a replica spoken since it was told of a call?"""
    heard = hear.replicas.get(volume)
    return heard is not None and heard.report.calls >= call
