"""What the lead decides about merge slots: to open, to end, to forget, which pairs they deliver.

All of it comes before the next header, so a header names a dealing that deals each of its pairs
to one open slot, and an ended slot's last epoch is the last one that is cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.peer_reports import Hearsay
from tandem_runtime.protocol.lead.seat_rules import merge_stays
from tandem_runtime.protocol.log.entries import (
    DataLost,
    Entry,
    PairsDealt,
    SlotEnded,
    SlotOpened,
    SlotSealed,
)
from tandem_runtime.protocol.log.log_state import Book
from tandem_runtime.protocol.merge.slots import deal
from tandem_runtime.protocol.types import UNDIVIDED


def slot_changes(book: Book, hear: Hearsay, now: int) -> Iterator[Entry]:
    """Slots that the intent wants more or fewer of.

    The first ones open at once. A later one opens when a merge for it speaks: delivery would wait
    for it. The highest end first, so slot 0 stays.
    """
    intent = hear.intent
    if intent is None or intent.version < book.intent_version or book.final:
        return
    wanted = max(1, intent.slots)
    first = book.epoch + 1
    if not book.next_slot:
        for number in range(wanted):
            yield SlotOpened(slot=number, first=first, intent_version=intent.version)
        return
    there = book.open_slots()
    for number in there[wanted:]:
        yield SlotEnded(slot=number, last=book.epoch, intent_version=intent.version)
    if len(there) < wanted:
        for number in _ready(book, hear, now)[: wanted - len(there)]:
            yield SlotOpened(slot=number, first=first, intent_version=intent.version)


def _ready(book: Book, hear: Hearsay, now: int) -> list[int]:
    """Numbers never used before for which a merge is there."""
    speaking = {
        heard.report.slot for volume, heard in hear.merges.items() if merge_stays(volume, hear, now)
    }
    return sorted(number for number in speaking if number >= book.next_slot)


def dealings(book: Book, _hear: Hearsay, _now: int) -> Iterator[Entry]:
    """A new dealing, where pairs or slots have changed since the newest one."""
    slots = book.open_slots()
    if len(slots) <= 1 or not book.names:
        return
    generations = [n for n in book.names if n >= book.generation]
    pairs = {pair for number in generations for pair in book.pairs(number)}
    newest = book.newest_dealing()
    wanted = deal(newest.number + 1 if newest else 1, pairs, slots, newest)
    if newest is None or wanted.slots != newest.slots:
        yield PairsDealt(wanted)


def dealing_in_force(book: Book) -> int:
    """The dealing that the next header names."""
    newest = book.newest_dealing()
    return newest.number if newest is not None and len(book.open_slots()) > 1 else UNDIVIDED


def seals(book: Book, hear: Hearsay, _now: int) -> Iterator[Entry]:
    """Ended slots that every sink has sealed. An open one is sealed only where a log was lost."""
    sealed = {slot for heard in hear.merges.values() for slot in heard.report.sealed}
    for number in sorted(sealed & book.slots.keys()):
        subject = f"slot {number}"
        if not book.slots[number].is_open:
            yield SlotSealed(number)
        elif subject not in book.lost:
            yield DataLost(subject, "a sink has sealed it")
