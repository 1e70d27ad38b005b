"""What the policy remembers from one decision to the next.

All of it may be lost: then an event may be missing or come twice, a crashing member is started
again sooner, and a primary is chosen anew. No decision that gives something up rests on it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tandem.policy.snapshot import MemberSnapshot
from tandem.policy.status.totals import Totals, counters_of
from tandem_core.contract.reports import MemberEvent
from tandem_core.model.states import ConditionStatus, ConditionType, EventReason, PairState, Phase
from tandem_core.model.status import PairStatus, Status


class RecoveryStage(StrEnum):
    """How far a pair is in recovering; events are written at the steps, so they are in order."""

    WHOLE = "whole"
    BROKEN = "broken"
    CATCHING_UP = "catching up"


_LOST_PREFIX = "lost: "
_LOST_SEPARATOR = ", "

Standing = tuple[str, int]
"""A replica and its process: (name, run)."""


Failing = tuple[EventReason, str]
"""How it fails, and which stream or sink."""


@dataclass(frozen=True, slots=True)
class PairMemory:
    """What is remembered of a pair."""

    primary: str | None = None
    """The volume of its primary."""
    stood: frozenset[Standing] = frozenset()
    """Processes that held the state and answered when they were last looked at."""
    formed: bool = False
    """Whether a replica has ever held the state."""
    paired: bool = False
    untold: str | None = None
    """The name of the primary before this one, if perhaps nobody was told of the take-over."""
    stage: RecoveryStage = RecoveryStage.WHOLE


@dataclass(frozen=True, slots=True)
class Crashes:
    """How often a place has crashed in a row, and which process was counted last."""

    run: int
    count: int


@dataclass(frozen=True, slots=True)
class PodEvictions:
    """When a member was last given up to be placed elsewhere, and how often in a row."""

    last: float
    count: int


@dataclass(frozen=True, slots=True)
class ControllerState:
    """Never changed, only replaced."""

    pairs: Mapping[str, PairMemory] = field(default_factory=dict)
    crashes: Mapping[str, Crashes] = field(default_factory=dict)
    lead: str | None = None
    """The place of the split that led last."""
    waiting_since: float | None = None
    """When the epoch was cut that waited for delivery the longest when a lead last spoke."""
    lost: frozenset[str] = frozenset()
    """What a lead has ever said is lost."""
    failing: frozenset[Failing] = frozenset()
    """Sources and sinks that did not work when they were last looked at."""
    happened: Mapping[str, tuple[MemberEvent, ...]] = field(default_factory=dict)
    """The events that each volume reported when it last answered."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Members by volume, also some that are gone: events about those name them."""
    totals: Totals = field(default_factory=Totals)
    completed: bool = False
    moves: PodEvictions | None = None

    def pair(self, name: str) -> PairMemory:
        """What is remembered of a pair; nothing, of a new one."""
        return self.pairs.get(name, PairMemory())


def remembered(
    primaries: Mapping[str, str], status: Status, members: Collection[MemberSnapshot] = ()
) -> ControllerState:
    """What outlives whoever decides: roles, as volumes by pair, and the last status.

    A recovery that was under way goes on; its next event may come a second time. Replicas among
    `members` that the status does not know yet took the place of others meanwhile, and a primary
    that it does not show took over: that is to be told and counted. What their counters show now is
    in the status's already, and what it says is lost stays lost whether a lead speaks or not.
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
        lost=_lost(status),
        totals=Totals(status.counters, counters_of(members)),
        completed=status.phase is Phase.COMPLETED,
    )


def lost_message(lost: Collection[str]) -> str:
    """The message of the condition `DataLost`; the next controller reads it back."""
    return _LOST_PREFIX + _LOST_SEPARATOR.join(sorted(lost))


def _lost(status: Status) -> frozenset[str]:
    said = next((c for c in status.conditions if c.type is ConditionType.DATA_LOST), None)
    if said is None or said.status is not ConditionStatus.TRUE:
        return frozenset()
    return frozenset(said.message.removeprefix(_LOST_PREFIX).split(_LOST_SEPARATOR))


def _pair(primary: str, shown: PairStatus, there: set[str]) -> PairMemory:
    replaced = bool(there) and not {shown.primary, shown.secondary} <= {None, *there}
    broken = replaced or shown.state in {PairState.CATCHING_UP, PairState.ALONE}
    return PairMemory(
        primary=primary,
        formed=shown.state is not PairState.STARTING,
        stage=RecoveryStage.BROKEN if broken else RecoveryStage.WHOLE,
    )
