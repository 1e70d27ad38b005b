"""Epoch decisions of the lead: when to cut, which chunks, watermarks, completion."""

from __future__ import annotations

from collections.abc import Iterator

from tandem_core.contract.intent import IntentStream
from tandem_runtime.protocol.lead.generation_rules import next_generation
from tandem_runtime.protocol.lead.peer_reports import (
    PeerReports,
    committed_by_faster,
    delivered_through,
)
from tandem_runtime.protocol.lead.slot_rules import dealing_in_force
from tandem_runtime.protocol.log.entries import Completed, Entry
from tandem_runtime.protocol.log.history import with_digest
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.states import LaneState, PartitionState
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    END_OF_TIME,
    UNDIVIDED,
    Header,
    LaneId,
    Mark,
    Note,
    ProtocolSettings,
    Span,
)

_CLOSED = LaneState.CLOSED
_IDLE, _ENDED = PartitionState.IDLE, PartitionState.ENDED
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


def cut_epoch(
    log_state: LogState, reports: PeerReports, settings: ProtocolSettings, since_cut: int, term: int
) -> Iterator[Entry]:
    """Cuts the next header, if one is due and the pairs keep up."""
    if reports.intent is None or log_state.final:
        return
    generation = next_generation(log_state, reports, settings)
    if generation == 0 or not is_keeping_up(log_state, reports, settings, generation):
        return
    spans, marks, urgent, full = _take_in(log_state, reports, settings)
    changed = generation != log_state.generation and log_state.epoch > 0
    ended = _all_ended(reports.intent.streams, marks)
    over = ended and _at_the_end(log_state)
    due = since_cut >= settings.interval
    if not (urgent or full or changed or ended or (due and (spans or log_state.raised))):
        return
    dealing = dealing_in_force(log_state)
    divided = dealing != UNDIVIDED or log_state.dealing != UNDIVIDED
    header = Header(
        epoch=log_state.epoch + 1,
        generation=generation,
        spans=spans,
        marks=tuple(sorted(marks.items())),
        watermarks=_watermarks(log_state, reports.intent.streams, marks),
        delivered=delivered_through(log_state, reports),
        final=over and not spans,
        term=term,
        previous=log_state.digest,
        dealing=dealing,
        barrier=divided and (changed or dealing != log_state.dealing),
    )
    yield with_digest(header)


def is_keeping_up(
    log_state: LogState, reports: PeerReports, settings: ProtocolSettings, generation: int
) -> bool:
    """Whether the faster replica of every pair is fewer than K epochs behind the last header."""
    return all(
        log_state.epoch - committed_by_faster(log_state, reports, pair) < settings.max_uncommitted
        for pair in log_state.pairs(generation)
    )


def _take_in(
    log_state: LogState, reports: PeerReports, settings: ProtocolSettings
) -> tuple[tuple[Span, ...], dict[str, Mark], bool, bool]:
    """Returns the next epoch's chunks in lane order, its marks, and whether it is urgent or full.

    Urgent: other members wait for the rest of a closed lane, or for a partition released or ended.
    Full: more chunks wait than there is room for. Every bound admits one chunk when it is empty.
    """
    marks = dict(log_state.marks)
    room = settings.max_epoch_bytes
    spans: list[Span] = []
    urgent = full = False
    for lane, state in log_state.lanes.items():
        number = state.reach
        while (note := _note(log_state, reports, lane, number + 1)) is not None:
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


def _note(log_state: LogState, reports: PeerReports, lane: LaneId, number: int) -> Note | None:
    """Returns the note of a chunk that may go into an epoch: sealed on both volumes."""
    state = log_state.lanes[lane]
    if state.state is not _CLOSED:
        return reports.notes.get(lane, {}).get(number)
    if number > state.last:
        return None
    return next(
        (note for known, note in state.notes if known == number), None
    ) or reports.notes.get(lane, {}).get(number)


def _watermarks(
    log_state: LogState, streams: tuple[IntentStream, ...], marks: dict[str, Mark]
) -> tuple[tuple[str, int], ...]:
    """Returns each stream's watermark: the minimum over its partitions, never falling.

    Only its owner can take a partition out of the minimum, by reporting it idle or ended.
    """
    result = []
    for stream in streams:
        states = [marks.get(partition) for partition in stream.partitions]
        speaking = [m for m in states if m is None or m.state not in (_IDLE, _ENDED)]
        before = log_state.watermarks.get(stream.name, BEGINNING_OF_TIME)
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


def _all_ended(streams: tuple[IntentStream, ...], marks: dict[str, Mark]) -> bool:
    """Whether every source partition has ended."""
    return all(
        partition in marks and marks[partition].state is _ENDED
        for stream in streams
        for partition in stream.partitions
    )


def _at_the_end(log_state: LogState) -> bool:
    """Whether the last header's watermark is at the end of time for every stream."""
    return bool(log_state.watermarks) and all(
        m == END_OF_TIME for m in log_state.watermarks.values()
    )


def complete_pipeline(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Completes the pipeline once the final epoch is delivered and ended slots are sealed."""
    if (
        not log_state.final
        or log_state.completed
        or delivered_through(log_state, reports) < log_state.epoch
    ):
        return
    if all(slot.is_open for slot in log_state.slots.values()):
        yield Completed()
