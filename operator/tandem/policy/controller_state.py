"""The state that the policy keeps from one decision to the next.

All of it may be lost: then an event may be missing or written twice, a crashing member is restarted
sooner, and a primary is chosen again. No decision to discard something depends on it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tandem.policy.snapshot import MemberSnapshot
from tandem.policy.status.totals import Totals, counters_of
from tandem_core.contract.reports import MemberEvent
from tandem_core.model.states import EventReason, PairState, Phase
from tandem_core.model.status import PairStatus, Status


class RecoveryStage(StrEnum):
    """The stage of a pair's recovery; each stage writes its event, so events are in order."""

    WHOLE = "whole"
    BROKEN = "broken"
    CATCHING_UP = "catching up"


Standing = tuple[str, int]
"""A replica and its process: (name, run)."""


Failing = tuple[EventReason, str]
"""The kind of failure, and the stream or sink that fails."""


@dataclass(frozen=True, slots=True)
class PairMemory:
    """The memory of one pair."""

    primary: str | None = None
    """The volume of its primary."""
    stood: frozenset[Standing] = frozenset()
    """Processes that held the state and answered in the last snapshot."""
    formed: bool = False
    """Whether a replica has ever held the state."""
    paired: bool = False
    untold: str | None = None
    """The name of the former primary, if the event of the failover may not have been written."""
    stage: RecoveryStage = RecoveryStage.WHOLE


@dataclass(frozen=True, slots=True)
class Crashes:
    """Consecutive crashes of a place, and the process that was counted last."""

    run: int
    count: int


@dataclass(frozen=True, slots=True)
class PodEvictions:
    """When a pod was last evicted, and how many evictions there were in a row."""

    last: float
    count: int


@dataclass(frozen=True, slots=True)
class ControllerState:
    """The memory of a pipeline. Immutable."""

    pairs: Mapping[str, PairMemory] = field(default_factory=dict)
    crashes: Mapping[str, Crashes] = field(default_factory=dict)
    lead: str | None = None
    """The place of the split that led last."""
    waiting_since: float | None = None
    """When the oldest undelivered epoch was cut, by the last report of a lead."""
    lost: frozenset[str] = frozenset()
    """Everything that a lead has ever reported as lost."""
    failing: frozenset[Failing] = frozenset()
    """Sources and sinks that failed in the last snapshot."""
    happened: Mapping[str, tuple[MemberEvent, ...]] = field(default_factory=dict)
    """The events that each volume reported when it last answered."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Members by volume, also some that are gone: events about those name them."""
    totals: Totals = field(default_factory=Totals)
    completed: bool = False
    moves: PodEvictions | None = None

    def pair(self, name: str) -> PairMemory:
        """The memory of a pair; an empty one for a new pair."""
        return self.pairs.get(name, PairMemory())


def remembered(
    primaries: Mapping[str, str], status: Status, members: Collection[MemberSnapshot] = ()
) -> ControllerState:
    """Restores the memory after a restart, from primaries (volumes by pair) and the last status.

    A recovery in progress continues; its next event may be written twice. Replicas among `members`
    that the status does not list have replaced others since, and a primary that it does not show
    means a failover: its event is still to be written and counted. The status's counters already
    include the current counts of members; its lost data stays lost even if no lead reports.
    """
    shown = {pair.name: pair for pair in status.pairs}
    there = {member.volume: member for member in members if member.place.pair is not None}
    pairs = {}
    for name, primary in primaries.items():
        pair = shown.get(name, PairStatus(name=name, state=PairState.STARTING))
        known = {member.name for member in there.values() if member.place.pair == name}
        now_primary = there[primary].name if primary in there else pair.primary
        untold = pair.primary if pair.primary != now_primary else None
        pairs[name] = replace(_pair(primary, pair, known), untold=untold)
    return ControllerState(
        pairs=pairs,
        lost=frozenset(status.lost),
        totals=Totals(status.counters, counters_of(members)),
        completed=status.phase is Phase.COMPLETED,
    )


def _pair(primary: str, shown: PairStatus, there: set[str]) -> PairMemory:
    replaced = bool(there) and not {shown.primary, shown.secondary} <= {None, *there}
    broken = replaced or shown.state in {PairState.CATCHING_UP, PairState.ALONE}
    return PairMemory(
        primary=primary,
        formed=shown.state is not PairState.STARTING,
        stage=RecoveryStage.BROKEN if broken else RecoveryStage.WHOLE,
    )
