"""The places that a pipeline needs: of its splits, of the replicas of its pairs, of its merges.

They follow from the intent, and from what the lead still lists: a pair that an older generation
needs, a merge slot that has ended and is not sealed at every sink yet.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tandem.policy.change.roster import pairs_to_run, slots_to_run
from tandem.policy.snapshot import MemberPlace
from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import LeadReport
from tandem_core.model.states import MERGES_PER_SLOT, MemberKind

_TWINS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Roster:
    """What is to run."""

    splits: int
    pairs: tuple[str, ...]
    slots: tuple[int, ...]
    replicas: int
    spares: int

    def places(self) -> tuple[MemberPlace, ...]:
        """Return all places, in the order in which they are started."""
        splits = [MemberPlace(f"split-{n}", MemberKind.SPLIT) for n in range(self.splits)]
        replicas = [
            MemberPlace(f"{pair}-{twin}", MemberKind.REPLICA, pair=pair)
            for pair in self.pairs
            for twin in _TWINS[: self.replicas]
        ]
        merges = [
            MemberPlace(f"merge-{slot * MERGES_PER_SLOT + n}", MemberKind.MERGE, slot=slot)
            for slot in self.slots
            for n in range(MERGES_PER_SLOT)
        ]
        spares = [MemberPlace(f"spare-{n}", MemberKind.SPARE) for n in range(self.spares)]
        return (*splits, *replicas, *merges, *spares)


def roster_of(
    intent: Intent, lead: LeadReport | None, before: Iterable[MemberPlace], spares: int
) -> Roster:
    """Return what is to run, given the present places and, if it is known, the lead's report."""
    there = tuple(before)
    pairs = tuple(dict.fromkeys(place.pair for place in there if place.pair is not None))
    slots = tuple(dict.fromkeys(place.slot for place in there if place.slot is not None))
    return Roster(
        splits=max(1, intent.splits),
        pairs=pairs_to_run(intent, lead, pairs),
        slots=slots_to_run(intent, lead, slots),
        replicas=intent.replicas,
        spares=spares,
    )


def place_named(name: str) -> MemberPlace:
    """Return the place of a name that `Roster.places` gives.

    Raises:
        ValueError: no place has such a name.
    """
    group, dash, last = name.rpartition("-")
    if dash and last in _TWINS:
        return MemberPlace(name, MemberKind.REPLICA, pair=group)
    kinds = {"split": MemberKind.SPLIT, "merge": MemberKind.MERGE, "spare": MemberKind.SPARE}
    if group not in kinds or not last.isdecimal():
        raise ValueError(f"{name} is not the name of a member")
    slot = int(last) // MERGES_PER_SLOT if group == "merge" else None
    return MemberPlace(name, kinds[group], slot=slot)
