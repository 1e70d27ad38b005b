"""Seeded bugs of lanes: where they end, their second copy, who reads on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from tandem_runtime.protocol.effects import Effect
from tandem_runtime.protocol.lead import lane_rules, peer_reports
from tandem_runtime.protocol.log import log_state
from tandem_runtime.protocol.log.entries import Entry, LaneClosed, LaneResumed
from tandem_runtime.protocol.messages.peers import SealedCopy
from tandem_runtime.protocol.split import own_lane, split_machine
from tandem_runtime.protocol.states import LaneState
from tandem_runtime.protocol.types import Lane, LaneId
from tandem_simulator.campaign.bugs.substitution import decision, seeded_bug


def _last_report(reports: peer_reports.PeerReports, which: LaneId, state: Lane) -> SealedCopy:
    report = reports.lanes.get(which)
    if report is None:
        return SealedCopy(which, state.view, state.reach, ())
    notes = tuple(note for note in report.notes if note[0] > state.reach)
    return SealedCopy(which, state.view, max(report.through, state.reach), notes)


_tend_lane = split_machine.SplitMachine._tend_lane
_copy_chunk = own_lane.OwnLane._copy


def _change_buddy_at_once(
    self: split_machine.SplitMachine, own: own_lane.OwnLane, now: int
) -> list[Effect]:
    chunks = own.log
    if chunks.follower is not None and chunks.misses_follower(self.settings, now):
        candidate = self.neighbours.next_for_lane()
        if candidate is not None:
            chunks.follower = candidate
            chunks.fence = (chunks.fence[0], chunks.fence[1] + 1)
            chunks.acked = max(chunks.acked, chunks.end - 1)
            chunks.heard = now
    return _tend_lane(self, own, now)


def _copy_from_here_on(self: own_lane.OwnLane, number: int, version: Any) -> Effect:
    effect = cast("Any", _copy_chunk(self, number, version))
    changed: Effect = effect._replace(message=effect.message.replace(base=number - 1))
    return changed


def _own_when_closed(known: log_state.LogState, partition: str) -> bool:
    owner = known.owners.get(partition)
    closed = owner in known.lanes and known.lanes[owner].state is LaneState.CLOSED
    return lead_lanes_may_get_owner(known, partition) or closed


lead_lanes_may_get_owner = lane_rules.can_assign_partition


def _close_and_go_on(self: log_state.LogState, record: LaneClosed) -> None:
    log_state.LogState._lane_closed(self, record)
    for _, note in record.notes:
        self.marks.update(note.marks)


def _settle_by_owner(
    known: log_state.LogState, reports: peer_reports.PeerReports, now: int
) -> Iterator[Entry]:
    """An owner that claims to write its lane is believed even if the lane is closed."""
    yield from lane_rules.close_or_resume_lanes(known, reports, now)
    for which, state in known.lanes.items():
        report = reports.lanes.get(which)
        live = report is not None and report.live and not reports.silent(which.split, now)
        if live and state.state is LaneState.CLOSED:
            yield LaneResumed(which)


BUGS = (
    seeded_bug(
        "close-at-report",
        "a dead split's lane is closed at its last report, not at its buddy's last chunk",
        (lane_rules, "_buddy_answer", _last_report),
    ),
    seeded_bug(
        "buddy-by-operator",
        "a lane's buddy is changed without filling it and recording it",
        (split_machine.SplitMachine, "_tend_lane", _change_buddy_at_once),
        (own_lane.OwnLane, "_copy", _copy_from_here_on),
    ),
    seeded_bug(
        "early-successor",
        "a new owner's rows are cut before the old owner's last chunk",
        (lane_rules, "can_assign_partition", _own_when_closed),
        (log_state, "_APPLY", {**vars(log_state)["_APPLY"], LaneClosed: _close_and_go_on}),
    ),
    seeded_bug(
        "illegal-move",
        "a lane that was closed is resumed, because its owner still writes it",
        decision(lane_rules.close_or_resume_lanes, _settle_by_owner),
    ),
)
