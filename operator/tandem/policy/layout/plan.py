"""Plans a resize to its end: all steps, what each builds and carries over, and the keys that move.

A plan is the sequence of `next_step`, and nothing of it is stored: planned again from the layout
after any of its steps, with the same load, it is the rest of itself. For that, loads are rounded to
whole numbers first: their sums are exact, so they do not depend on the order in which a set lists
its buckets, and no tie is broken differently after a restart.

Splitting. Parts are added one by one, each to the pair with the largest load/parts. That makes the
largest part as small as possible. Suppose a choice k' with as many parts in all has a smaller
largest part than the greedy choice k, whose largest is w_j/k_j. Then k'_j > k_j, so k'_i < k_i for
some i. When i got its last part, it was the largest: w_i/(k_i - 1) >= w_j/k_j. But k'_i <= k_i - 1,
so in k' a part of i has at least that load: contradiction. It holds for parts of equal load;
`divide` misses it by at most one bucket. A surge smaller than the parts of one pair splits it in
several steps, into halves of halves: 1 pair to 3 in steps of two gives 1/2, 1/4, 1/4.

Uniting. Of m + 1 groups, the sum of two is smallest for the two lightest, so no other union keeps
the heaviest smaller at that moment. Each of the two is on average at most the mean of all: with
total load W the union has at most 2W/(m + 1), m >= wanted. So no new pair has twice the mean load
of the wanted number. The best grouping would be bin packing, which is NP-hard.

Stickiness. A step reassigns the buckets of the pairs that it splits or unites, to new names, and
nothing else. All other pairs keep name, buckets, drivers and state, and their rows are not routed
anew: a step that is built, fails or is abandoned leaves them as they are.

Moved keys. At best a pair that is split stays as its largest part, and a united one as its
largest parent: each old pair can go on as one new pair and each new pair continue one old, so no
plan to the same layout moves less (`least`). All keys of these pairs move instead (`moved`), since
a pair's buckets never change: new pairs are built while the old ones compute, and take over at
once. For two parts or parents of equal size that is twice the bound. Keys count by buckets, over
which hashing spreads them evenly; a hot key counts with the bucket that it lies in.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tandem.policy.layout.layout import Buckets, Layout, LayoutChange
from tandem.policy.layout.resize import Load, next_step
from tandem_core.model.change import LEAST_SURGE
from tandem_core.routing.function import RoutingFunction

_HEAVIEST = 2**30
"""The rounded load of the heaviest bucket; the sum over all 2^16 buckets is an exact float."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step: some pairs are split or united into new ones, which replace them together."""

    given_up: tuple[str, ...]
    """Pairs that are split or united."""
    parents: tuple[tuple[str, tuple[str, ...]], ...]
    """New pairs with the pairs that their state is built from."""
    carried: tuple[str, ...]
    """Pairs that keep name, buckets and drivers."""
    moved: float
    """Share of all keys whose pair changes."""
    drivers_built: int
    drivers_at_most: int
    """Drivers while the new pairs are built beside all old ones."""
    after: Layout


class Room(NamedTuple):
    """Drivers that are built at a time, and those that run beside them."""

    built: int
    beside: int


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """All steps from a layout to a number of pairs, and their totals. Spares are not counted."""

    before: Layout
    wanted: int
    steps: tuple[PlannedStep, ...]
    moved: float
    """Share of all keys whose pair is another in the end."""
    moves: float
    """The sum of all steps, in which a key counts as often as it moves."""
    least: float
    """Share of all keys that every plan to the same layout moves."""
    max_surge: int
    """New pairs that a step builds at most."""
    drivers_now: int
    drivers_at_most: int
    drivers_after: int
    reasons: tuple[str, ...]

    @property
    def room(self) -> Room:
        """The room that the step with the most drivers at a time needs."""
        if not self.steps:
            return Room(0, self.drivers_now)
        most = max(self.steps, key=lambda step: step.drivers_at_most)
        return Room(most.drivers_built, most.drivers_at_most - most.drivers_built)

    @property
    def after(self) -> Layout:
        """The layout in the end."""
        return self.steps[-1].after if self.steps else self.before


def layout_of_first(names: Sequence[str]) -> Layout:
    """Return the layout of a pipeline that has not started: the plain hash of its first pairs."""
    function = RoutingFunction.plain(names)
    return Layout(tuple((name, _buckets(function, name)) for name in names), len(names))


def plan_resize(
    layout: Layout,
    wanted: int,
    load: Load | None = None,
    *,
    replicas: int = 2,
    max_surge: int = LEAST_SURGE,
) -> ResizePlan:
    """Plan all steps to a number of pairs, each with at most `max_surge` new ones.

    Without a load, all buckets count the same.
    """
    rounded = _whole_loads(layout, load)
    steps: list[PlannedStep] = []
    at = layout
    while (change := next_step(at, wanted, rounded, max_surge)) is not None:
        steps.append(_planned(at, change, replicas))
        at = change.after
    now = len(layout.pairs) * replicas
    moved, least = _moved_share(layout, at), _least_share(layout, at)
    return ResizePlan(
        before=layout,
        wanted=wanted,
        steps=tuple(steps),
        moved=moved,
        moves=sum(step.moved for step in steps),
        least=least,
        max_surge=max(max_surge, LEAST_SURGE),
        drivers_now=now,
        drivers_at_most=max((step.drivers_at_most for step in steps), default=now),
        drivers_after=len(at.pairs) * replicas,
        reasons=_reasons(layout, at, wanted, (least, moved), measured=load is not None),
    )


def _planned(before: Layout, change: LayoutChange, replicas: int) -> PlannedStep:
    built, carried = len(change.parents), change.carried()
    given_up = set(before.names()).difference(carried)
    replaced = [pair for pair in before.pairs if pair[0] in given_up]
    return PlannedStep(
        given_up=tuple(name for name, _ in replaced),
        parents=tuple(change.parents.items()),
        carried=carried,
        moved=sum(len(mine) for _, mine in replaced) / _bucket_count(before),
        drivers_built=built * replicas,
        drivers_at_most=(len(before.pairs) + built) * replicas,
        after=change.after,
    )


def _whole_loads(layout: Layout, load: Load | None) -> Load:
    """Round loads to whole numbers, relative to the heaviest bucket; even if there is none."""
    if load is None:
        return lambda _: 1.0
    loads = {bucket: load(bucket) for _, mine in layout.pairs for bucket in mine}
    heaviest = max(loads.values(), default=0.0)
    if not heaviest:
        return lambda _: 1.0
    return {
        bucket: float(round(w / heaviest * _HEAVIEST)) for bucket, w in loads.items()
    }.__getitem__


def _bucket_count(layout: Layout) -> int:
    return max(sum(len(mine) for _, mine in layout.pairs), 1)


def _overlaps(before: Layout, after: Layout) -> Counter[tuple[str, str]]:
    """Count the buckets that each old pair shares with each new one."""
    owners = {bucket: name for name, mine in after.pairs for bucket in mine}
    return Counter((name, owners[bucket]) for name, mine in before.pairs for bucket in mine)


def _moved_share(before: Layout, after: Layout) -> float:
    overlaps = _overlaps(before, after)
    return sum(n for (old, new), n in overlaps.items() if old != new) / _bucket_count(before)


def _least_share(before: Layout, after: Layout) -> float:
    """Return the share that moves if each pair goes on as the one with which it shares most.

    Splits alone leave one new pair to choose for each old one, unions one old for each new one;
    the smaller sum is the one in which no pair is chosen twice.
    """
    overlaps = _overlaps(before, after)
    total = _bucket_count(before)
    by_old = _sum_of_largest((old, n) for (old, _), n in overlaps.items())
    by_new = _sum_of_largest((new, n) for (_, new), n in overlaps.items())
    return (total - min(by_old, by_new)) / total


def _sum_of_largest(counts: Iterable[tuple[str, int]]) -> int:
    largest: dict[str, int] = {}
    for name, count in counts:
        largest[name] = max(count, largest.get(name, 0))
    return sum(largest.values())


def _reasons(
    before: Layout, after: Layout, wanted: int, bounds: tuple[float, float], *, measured: bool
) -> tuple[str, ...]:
    """Say why the plan is as it is, most important first."""
    now, reached = len(before.pairs), len(after.pairs)
    said = []
    if reached > now:
        said.append("The most loaded pairs are split first, each step within the surge.")
    elif reached < now:
        said.append("The least loaded pairs are united, so that the heaviest stays small.")
    if reached != wanted:
        said.append(f"It ends at {reached} pairs: a pair with one bucket cannot be split.")
    if reached != now:
        least, moved = bounds
        said.append("All other pairs keep their names, keys, drivers and state.")
        said.append(
            f"{moved:.1%} of keys move and not the {least:.1%} that must: pairs that are split or "
            "united are built again under new names while the old ones compute."
        )
        if not measured:
            said.append("No load is measured: all buckets count the same.")
    return tuple(said)


def _buckets(function: RoutingFunction, label: str) -> Buckets:
    return frozenset(np.flatnonzero(function.share_of(label).buckets).tolist())
