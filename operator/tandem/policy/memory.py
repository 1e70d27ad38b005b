"""What the policy remembers from one decision to the next.

All of it may be lost: then an event may be missing or come twice, a crashing member is started
again sooner, and a primary is chosen anew. No decision that gives something up rests on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tandem.policy.reports import Happening
from tandem.policy.totals import Totals


class Stage(StrEnum):
    """How far a pair is in recovering; events are written at the steps, so they are in order."""

    WHOLE = "whole"
    BROKEN = "broken"
    CATCHING_UP = "catching up"


Standing = tuple[str, int]
"""A replica and its process: (name, run)."""


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
    stage: Stage = Stage.WHOLE


@dataclass(frozen=True, slots=True)
class Crashes:
    """How often a place has crashed in a row, and which process was counted last."""

    run: int
    count: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Never changed, only replaced."""

    pairs: Mapping[str, PairMemory] = field(default_factory=dict)
    crashes: Mapping[str, Crashes] = field(default_factory=dict)
    lead: str | None = None
    """The place of the split that led last."""
    lost: frozenset[str] = frozenset()
    happened: Mapping[str, tuple[Happening, ...]] = field(default_factory=dict)
    """What each volume said has happened when it was last heard."""
    totals: Totals = field(default_factory=Totals)
    completed: bool = False

    def pair(self, name: str) -> PairMemory:
        """What is remembered of a pair; nothing, of a new one."""
        return self.pairs.get(name, PairMemory())
