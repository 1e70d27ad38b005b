"""An intent in which pair-0 is split, at any stage of the change, and what its lead reports."""

from typing import Any

from tests.policy.builders import lead, replica, seat

from tandem.policy.snapshot import MemberSnapshot
from tandem_core.contract.intent import ChangeGoal, Generation, GenerationChange, Intent, Pair
from tandem_core.contract.reports import LeadReport, PairReport, SeatReport
from tandem_core.model.states import ChangeStage, SeatState

OLD, NEW = "pair-0", ("pair-1", "pair-2")
FIRST = Generation(1, "f1", (Pair(OLD, OLD),))
SECOND = Generation(2, "f2", tuple(Pair(name, name, (OLD,)) for name in NEW))

BEGAN_MS, BUILT_MS = 1_714_564_800_000, 1_714_564_810_000


def splitting(
    stage: ChangeStage | None, *generations: Generation, target: int = 1, **change: Any
) -> Intent:
    """The intent while pair-0 is split into pair-1 and pair-2."""
    under_way = GenerationChange(
        ChangeGoal(2), stage or ChangeStage.PLANNED, BEGAN_MS, BUILT_MS, generation=2
    )
    return Intent(
        1,
        generations or (FIRST, SECOND),
        target,
        (),
        splits=1,
        change=under_way.replace(pairs_before=1, **change) if stage is not None else None,
    )


PLANNED = splitting(ChangeStage.PLANNED, FIRST)
BUILDING = splitting(ChangeStage.BUILDING)
CUTTING = splitting(ChangeStage.CUTTING, target=2)
RETIRING = splitting(ChangeStage.RETIRING, target=2)
DONE = splitting(None, SECOND, target=2)
ABANDONED = splitting(ChangeStage.ABANDONED, FIRST, reason="pair-1: too large")


def pair(name: str, **fields: Any) -> tuple[MemberSnapshot, MemberSnapshot]:
    """Both replicas of a pair, alike."""
    return replica(f"{name}-a", name, **fields), replica(f"{name}-b", name, **fields)


def seats(name: str, /, **fields: Any) -> tuple[SeatReport, SeatReport]:
    """Both seats of a pair, alike."""
    return seat(f"{name}-a", **fields), seat(f"{name}-b", **fields)


def leading(*names: str, generation: int = 1, **late: Any) -> LeadReport:
    """A lead that lists these pairs, all of them paired; new ones with these fields instead."""
    pairs = (PairReport(name, seats(name, **(late if name in NEW else {}))) for name in names)
    return lead(generation=generation).replace(pairs=tuple(pairs))


LATE: dict[str, Any] = {"state": SeatState.VERIFIED, "committed": 3, "synced": False}
