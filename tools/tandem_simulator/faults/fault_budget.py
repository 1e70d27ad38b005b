"""Keeps faults within what the design survives.

It goes by the protocol's *claims* (its published records), not by what volumes really hold. If a
record promises a second copy and there is none, a fault may strike, and the ledger detects it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.seat_rules import is_shadow
from tandem_runtime.protocol.log.entries import Entry
from tandem_runtime.protocol.log.header_log import StoredEntry, StoredLogState
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.states import LaneState
from tandem_runtime.protocol.types import Lane, LaneId, Seat
from tandem_simulator.engine.process import REPLICA, SPLIT, Disk, SimulatedPod

if TYPE_CHECKING:
    from tandem_runtime.protocol.split.split_machine import SplitMachine
    from tandem_simulator.engine.world import World

UNSETTLED = 4000
"""How long a pair is spared after its twins differed."""


class FaultBudget:
    """Answers whether volumes may be destroyed now."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.differed: dict[str, int] = {}
        """When a pair's twins were last made to differ."""

    def allows(self, pods: Iterable[SimulatedPod]) -> bool:
        """Whether these pods may be lost at once, with their volumes."""
        lost = {pod.volume for pod in pods}
        existing = {pod.volume for pod in self.world.cluster.pods.values()}
        left = existing - lost
        if all(pod.kind not in (SPLIT, REPLICA) for pod in pods):
            return True
        if not self._log_survives(lost, left):
            return False
        published, whole = self._log_states()
        if not all(self._lanes_survive(log_state, lost, left) for log_state in (published, whole)):
            return False
        return all(self._pairs_survive(log_state, lost, left) for log_state in (published, whole))

    # --- the header log -----------------------------------------------------------------------

    def _log_survives(self, lost: set[str], left: set[str]) -> bool:
        """Whether a member that the register names remains, and no victim has a swap in flight."""
        place = self.world.place
        if place.term == 0:
            return False
        for author, expected, _ in self.world.swaps_under_way:
            if author in lost and expected == place.version:
                return False
        return place.lead in left or place.buddy in left

    def _log_states(self) -> tuple[LogState, LogState]:
        """The state of the published header log, and including unpublished entries."""
        place = self.world.place
        disks = {pod.volume: pod.disk for pod in self.world.cluster.pods.values()}
        lead, buddy = disks.get(place.lead), disks.get(place.buddy or "")
        if lead is None:
            # If the budget is exceeded, both may be lost until the log is rebuilt.
            whole = _fold(buddy, None) if buddy is not None else LogState()
            return whole, whole
        return _fold(lead, buddy), _fold(lead, None)

    # --- lanes --------------------------------------------------------------------------------

    def _lanes_survive(self, log_state: LogState, lost: set[str], left: set[str]) -> bool:
        """Whether every lane with needed chunks keeps a recorded copy."""
        for lane, state in log_state.lanes.items():
            if lane.split not in lost and state.buddy not in lost:
                continue
            if state.state is LaneState.CLOSED and state.trimmed == state.last:
                continue
            if lane.split not in left and state.buddy not in left:
                return False
            if lane.split in lost and self._asks_to_go_alone(lane.split):
                return False
            if lane.split in lost and self._closes_alone(lane, state):
                return False
        return True

    def _asks_to_go_alone(self, volume: str) -> bool:
        """Whether the owner is about to be recorded as the only holder of its lane."""
        process = self.world.by_volume.get(volume)
        report = process.report if process is not None else None
        return report is not None and any(
            lane.ask is not None and lane.ask[1] is None for lane in report.lanes
        )

    def _closes_alone(self, lane: LaneId, state: Lane) -> bool:
        """Whether the lead may be about to record that only the owner holds a lane.

        The lane is closing, its owner has reported its end, and its buddy is silent.
        """
        process = self.world.by_volume.get(lane.split)
        report = process.report if process is not None else None
        lanes = report.lanes if report is not None else ()
        if state.state is not LaneState.CLOSING:
            return False
        if not any(each.lane == lane and not each.live for each in lanes):
            return False
        leading = self.world.by_volume.get(self.world.place.lead)
        lead = cast("SplitMachine", leading.machine).succession.lead if leading else None
        if leading is None or lead is None or state.buddy is None:
            return True
        return lead.reports.silent(state.buddy, leading.local(self.world.now))

    # --- pairs --------------------------------------------------------------------------------

    def _pairs_survive(self, log_state: LogState, lost: set[str], left: set[str]) -> bool:
        """Whether every required pair keeps a full member."""
        if log_state.epoch == 0:
            return True
        for pair, seats in log_state.seats.items():
            volumes = {seat.volume for seat in seats if seat is not None}
            if not volumes & lost or is_shadow(log_state, pair):
                continue
            if self.differed.get(pair, -UNSETTLED) + UNSETTLED > self.world.now:
                return False
            if not any(_full_member(seat) and seat.volume in left for seat in seats if seat):
                return False
        return True

    def new_pair_may_go(self, pair: str) -> bool:
        """Whether a pair that is new in the current generation may be lost entirely.

        True until the old pairs are retired: they keep running until then, as a fallback.
        """
        world = self.world
        published, whole = self._log_states()
        generation = published.generations.get(published.generation)
        if generation is None or not generation.parents_of(pair) or whole.retiring:
            return False
        parents = generation.parents_of(pair)
        if any(old in whole.retired for old in parents):
            return False
        return all(any(_epochs(p.disk) for p in world.cluster.replicas(old)) for old in parents)


def _full_member(seat: Seat) -> bool:
    """Whether a seat's holder counts as a second copy; one asked to lapse may soon be none."""
    return seat.state is SeatState.VERIFIED


def _epochs(disk: Disk) -> list[int]:
    return [cast("int", key[1]) for key in disk if key[0] == "checkpoint"]


def _fold(lead: Disk, buddy: Disk | None) -> LogState:
    """The log state on a volume; with a buddy, only the entries on both."""
    if ("book",) not in lead:
        return LogState()
    stored = cast("StoredLogState", lead["book",])
    log_state = stored.log_state.copy()
    number = stored.index + 1
    while ("entry", number) in lead:
        written = cast("StoredEntry", lead["entry", number])
        if written.fence != stored.fence:
            break
        if buddy is not None and not _has(buddy, number, written.entry):
            break
        log_state.apply(written.entry)
        number += 1
    return log_state


def _has(buddy: Disk, number: int, entry: Entry) -> bool:
    if ("entry", number) in buddy:
        return cast("StoredEntry", buddy["entry", number]).entry == entry
    return ("book",) in buddy and cast("StoredLogState", buddy["book",]).index >= number
