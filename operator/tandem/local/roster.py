"""The places of a pipeline on one machine."""

from tandem.policy.intent import pair_names
from tandem.policy.snapshot import Place
from tandem_core.model.spec import Spec
from tandem_core.model.states import MemberKind

_TWINS = ("a", "b")
_MERGES_PER_SLOT = 2
"""One delivers, one stands by."""


def roster_of(spec: Spec) -> tuple[Place, ...]:
    """All places, in the order in which they are started."""
    splits = [Place(f"split-{n}", MemberKind.SPLIT) for n in range(spec.splits.count)]
    replicas = [
        Place(f"{pair}-{twin}", MemberKind.REPLICA, pair=pair)
        for pair in pair_names(spec)
        for twin in _TWINS[: spec.pairs.replicas]
    ]
    merges = [
        Place(f"merge-{n}", MemberKind.MERGE, slot=n // _MERGES_PER_SLOT)
        for n in range(spec.merges.count * _MERGES_PER_SLOT)
    ]
    spares = [Place(f"spare-{n}", MemberKind.SPARE) for n in range(spec.pairs.spares)]
    return (*splits, *replicas, *merges, *spares)
