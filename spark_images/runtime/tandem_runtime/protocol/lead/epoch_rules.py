"""What the lead decides about epochs: when to cut, what goes in, where time stands, the end."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_core.contract.intent import Stream
from tandem_runtime.protocol.lead.peer_reports import Hearsay, delivered_through, faster
from tandem_runtime.protocol.lead.slot_rules import dealing_in_force
from tandem_runtime.protocol.lead_generations import generation_to_name
from tandem_runtime.protocol.log.entries import Completed, Entry
from tandem_runtime.protocol.log.history import with_digest
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.states import LaneState, PartitionState
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    END_OF_TIME,
    UNDIVIDED,
    Header,
    LaneId,
    Mark,
    Note,
    Settings,
    Span,
)

_CLOSED = LaneState.CLOSED
_IDLE, _ENDED = PartitionState.IDLE, PartitionState.ENDED
"""Members at hand: looking one up on its class takes long in hot loops."""


def cut(
    book: Book, hear: Hearsay, settings: Settings, since_cut: int, term: int
) -> Iterator[Entry]:
    """The next header, if one is due and the pairs keep up."""
    if hear.intent is None or book.final:
        return
    generation = generation_to_name(book, hear, settings)
    if generation == 0 or not keeping_up(book, hear, settings, generation):
        return
    spans, marks, urgent, full = _take_in(book, hear, settings)
    changed = generation != book.generation and book.epoch > 0
    ended = _all_ended(hear.intent.streams, marks)
    over = ended and _at_the_end(book)
    due = since_cut >= settings.interval
    if not (urgent or full or changed or ended or (due and (spans or book.raised))):
        return
    dealing = dealing_in_force(book)
    divided = dealing != UNDIVIDED or book.dealing != UNDIVIDED
    header = Header(
        epoch=book.epoch + 1,
        generation=generation,
        spans=spans,
        marks=tuple(sorted(marks.items())),
        watermarks=_watermarks(book, hear.intent.streams, marks),
        delivered=delivered_through(book, hear),
        final=over and not spans,
        term=term,
        previous=book.digest,
        dealing=dealing,
        barrier=divided and (changed or dealing != book.dealing),
    )
    yield with_digest(header)


def keeping_up(book: Book, hear: Hearsay, settings: Settings, generation: int) -> bool:
    """Has the faster replica of every pair committed all but K epochs?"""
    return all(
        book.epoch - faster(book, hear, pair) < settings.max_uncommitted
        for pair in book.pairs(generation)
    )


def _take_in(
    book: Book, hear: Hearsay, settings: Settings
) -> tuple[tuple[Span, ...], dict[str, Mark], bool, bool]:
    """The chunks of the next epoch in lane order, where they leave the partitions, and urgency.

    Urgent is what others wait for: the rest of a closed lane, a partition let go or ended. An epoch
    is full when more waits than it has room for. Every bound admits one chunk when it is empty.
    """
    marks = dict(book.marks)
    room = settings.max_epoch_bytes
    spans: list[Span] = []
    urgent = full = False
    for lane, state in book.lanes.items():
        number = state.reach
        while (note := _note(book, hear, lane, number + 1)) is not None:
            empty = not spans and number == state.reach
            if (note.size > room or room <= 0) and not empty:
                full = True
                break
            number += 1
            room -= note.size
            for partition, mark in note.marks:
                urgent = urgent or not mark.state.is_read
                marks[partition] = mark
        if number > state.reach:
            spans.append(Span(lane, state.reach + 1, number))
            urgent = urgent or state.state is _CLOSED
    return tuple(spans), marks, urgent, full


def _note(book: Book, hear: Hearsay, lane: LaneId, number: int) -> Note | None:
    """The note of a chunk that may go into an epoch: sealed on both volumes."""
    state = book.lanes[lane]
    if state.state is not _CLOSED:
        return hear.notes.get(lane, {}).get(number)
    if number > state.last:
        return None
    return next((note for known, note in state.notes if known == number), None) or hear.notes.get(
        lane, {}
    ).get(number)


def _watermarks(
    book: Book, streams: tuple[Stream, ...], marks: dict[str, Mark]
) -> tuple[tuple[str, int], ...]:
    """Each stream's watermark: the minimum over its partitions, never falling.

    Only what an owner said takes a partition out of the minimum: idle or ended.
    """
    result = []
    for stream in streams:
        states = [marks.get(partition) for partition in stream.partitions]
        speaking = [m for m in states if m is None or m.state not in (_IDLE, _ENDED)]
        before = book.watermarks.get(stream.name, BEGINNING_OF_TIME)
        if speaking:
            lowest = min(
                BEGINNING_OF_TIME if mark is None else mark.event_time - stream.delay
                for mark in speaking
            )
            result.append((stream.name, max(before, lowest)))
        elif all(mark is not None and mark.state is _ENDED for mark in states):
            result.append((stream.name, END_OF_TIME))
        else:
            result.append((stream.name, before))
    return tuple(result)


def _all_ended(streams: tuple[Stream, ...], marks: dict[str, Mark]) -> bool:
    """Has every source partition ended?"""
    return all(
        partition in marks and marks[partition].state is _ENDED
        for stream in streams
        for partition in stream.partitions
    )


def _at_the_end(book: Book) -> bool:
    """Does the last header's watermark stand at the end of time for every stream?"""
    return bool(book.watermarks) and all(m == END_OF_TIME for m in book.watermarks.values())


def completion(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Once the final epoch is delivered, and ended slots are sealed, everybody may stop."""
    if not book.final or book.completed or delivered_through(book, hear) < book.epoch:
        return
    if all(slot.is_open for slot in book.slots.values()):
        yield Completed()
