"""The format of the header log: which forms of entries may be written.

A later version may add kinds of entries, or fields that must not be lost. Readers of an earlier
format would stop at the former and drop the latter. So members report the newest format that they
read, the lead raises the log's format by a record once all of them read it, and no member writes a
newer form before that record. A later member that does not read it gets `Outdated` from the lead,
and stops. Fields whose loss does no harm need no new format.
"""

from __future__ import annotations

from collections.abc import Iterator

from tandem_runtime.protocol.effects import Effect
from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.log.entries import NEWEST_FORMAT, Entry, FormatRaised
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import Outdated
from tandem_runtime.protocol.types import Peer


class UnreadableFormat(Exception):
    """The header log is of a later format than this build reads."""


def check_format(found: int) -> None:
    """Refuse the format of a log of which parts could be dropped unnoticed.

    Raises:
        UnreadableFormat: it is newer than this build's.
    """
    if found > NEWEST_FORMAT:
        raise UnreadableFormat(
            f"the header log has format {found}, this build reads {NEWEST_FORMAT}"
        )


def check_entry(entry: Entry) -> None:
    """Refuse an entry after which the log has a format that cannot be read here.

    Raises:
        UnreadableFormat: it is newer than this build's.
    """
    if isinstance(entry, FormatRaised):
        check_format(entry.format)


def stop_if_outdated(_machine: object, _now: int, _sender: Peer, message: Outdated) -> list[Effect]:
    """Stop this build if it is too old for the lead's log; see `check_format`."""
    check_format(message.format)
    return []


def raise_format(log_state: LogState, reports: PeerReports, now: int) -> Iterator[Entry]:
    """Raise the format to the newest that all members read, once all are seated and have reported.

    Not every member has a place in the log: a standby, or a split without a lane, is known by its
    reports alone. So a new lead first waits for the time after which a member counts as silent.
    """
    if log_state.format >= NEWEST_FORMAT or now - reports.since < reports.silence:
        return
    if not _all_there(log_state, reports) or not _all_reported(log_state, reports):
        return
    reads = [
        heard.report.format
        for known in (reports.splits, reports.replicas, reports.merges)
        for volume, heard in known.items()
        if volume not in reports.gone
    ]
    common = min([NEWEST_FORMAT, *reads])
    if common > log_state.format:
        yield FormatRaised(common)


def _all_there(log_state: LogState, reports: PeerReports) -> bool:
    """Whether every seat and slot is taken: a member that is yet to come may be older."""
    if reports.intent is None or log_state.generation == 0:
        return False
    replicas = reports.intent.replicas
    seats = [
        seat
        for pair in log_state.pairs(log_state.generation)
        for seat in log_state.seats[pair][:replicas]
    ]
    slots = log_state.open_slots()
    merging = len(slots) >= reports.intent.slots and all(slot in log_state.merges for slot in slots)
    return None not in seats and merging


def _all_reported(log_state: LogState, reports: PeerReports) -> bool:
    """Whether every member that the log names, and that is not gone, reported in this term."""
    splits = {lane.split for lane in log_state.lanes}
    splits.update(lane.buddy for lane in log_state.lanes.values() if lane.buddy is not None)
    seats = {
        seat.volume for seats in log_state.seats.values() for seat in seats if seat is not None
    }
    return (
        splits.difference(reports.gone_among(splits)) <= reports.splits.keys()
        and seats.difference(reports.gone_among(seats)) <= reports.replicas.keys()
        and set(log_state.merges.values()) <= reports.merges.keys()
    )
