"""Merge slot decisions of the lead: open, end, seal, deal pairs to slots, choose merges.

The lead decides all of it before the next header, so a header names a dealing that deals each of
its pairs to one open slot, and an ended slot's last epoch is the last one that is cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.log.entries import (
    DataLost,
    Entry,
    MergeChosen,
    PairsDealt,
    SlotEnded,
    SlotOpened,
    SlotSealed,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.merge.slots import deal
from tandem_runtime.protocol.types import UNDIVIDED


def change_slots(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Opens or ends slots until there are as many as the intent wants.

    The first ones open at once. A later one opens once a merge reports for it: delivery would wait
    for that merge. The highest numbers end first, so slot 0 stays.
    """
    intent = reports.intent
    if intent is None or intent.version < log_state.intent_version or log_state.final:
        return
    wanted = max(1, intent.slots)
    first = log_state.epoch + 1
    if not log_state.next_slot:
        for number in range(wanted):
            yield SlotOpened(slot=number, first=first, intent_version=intent.version)
        return
    there = log_state.open_slots()
    for number in there[wanted:]:
        yield SlotEnded(slot=number, last=log_state.epoch, intent_version=intent.version)
    if len(there) < wanted:
        for number in _ready(log_state, reports, now)[: wanted - len(there)]:
            yield SlotOpened(slot=number, first=first, intent_version=intent.version)


def _ready(log_state: LogState, reports: PeerReports, now: int) -> list[int]:
    """Returns slot numbers never used before for which a merge is present."""
    speaking = {
        heard.report.slot
        for volume, heard in reports.merges.items()
        if is_merge_present(volume, reports, now)
    }
    return sorted(number for number in speaking if number >= log_state.next_slot)


def deal_pairs(log_state: LogState, _hear: PeerReports, _now: int) -> Iterator[Entry]:
    """Makes a new dealing where pairs or slots have changed since the newest one."""
    slots = log_state.open_slots()
    if len(slots) <= 1 or not log_state.names:
        return
    generations = [n for n in log_state.names if n >= log_state.generation]
    pairs = {pair for number in generations for pair in log_state.pairs(number)}
    newest = log_state.newest_dealing()
    wanted = deal(newest.number + 1 if newest else 1, pairs, slots, newest)
    if newest is None or wanted.slots != newest.slots:
        yield PairsDealt(wanted)


def dealing_in_force(log_state: LogState) -> int:
    """Returns the dealing that the next header names."""
    newest = log_state.newest_dealing()
    return newest.number if newest is not None and len(log_state.open_slots()) > 1 else UNDIVIDED


def seal_slots(log_state: LogState, reports: PeerReports, _now: int) -> Iterator[Entry]:
    """Records ended slots that every sink has sealed.

    A sealed slot that is open here means that a log was lost. A merge of the slot itself says only
    that some sink has sealed it, while it believes the slot to be open: by a lost log, or by an old
    view that has come late.
    """
    said = [heard.report for heard in reports.merges.values()]
    for number in sorted({n for each in said for n in each.sealed} & log_state.slots.keys()):
        subject = f"slot {number}"
        if not log_state.slots[number].is_open:
            if any(number in each.sealed and each.slot != number for each in said):
                yield SlotSealed(number)
        elif subject not in log_state.lost:
            yield DataLost(subject, "a sink has sealed it")


def choose_merges(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Replaces active merges that are missing, gone, silent or leaving by one that reports."""
    for slot in log_state.slots:
        active = log_state.merges.get(slot)
        if active and is_merge_present(active, reports, now):
            continue
        speaking = [
            (-heard.at, volume)
            for volume, heard in reports.merges.items()
            if heard.report.slot == slot
            and volume != active
            and is_merge_present(volume, reports, now)
        ]
        if speaking:
            yield MergeChosen(slot, min(speaking)[1])


def is_merge_present(volume: str, reports: PeerReports, now: int) -> bool:
    """Whether a merge is present, as far as is known; it may have yet to report in this term."""
    heard = reports.merges.get(volume)
    leaving = heard is not None and heard.report.leaving
    return not leaving and volume not in reports.gone and not reports.silent(volume, now)
