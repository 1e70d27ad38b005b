"""Assignments of buckets to pairs, and changes that leave all other pairs as they are."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

Buckets = frozenset[int]


class InvalidChange(ValueError):
    """A change that would lose a bucket, assign one twice, or name a pair that does not exist."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Assignment of every bucket to one pair.

    A pair's buckets never change: a change of owner makes new pairs. Names are never used twice,
    not even after a change that was abandoned.
    """

    pairs: tuple[tuple[str, Buckets], ...]
    next_pair: int
    """Number of the next new pair."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the pairs."""
        return tuple(name for name, _ in self.pairs)

    def buckets_of(self, name: str) -> Buckets:
        """Return the buckets of a pair.

        Raises:
            InvalidChange: no such pair.
        """
        for pair, buckets in self.pairs:
            if pair == name:
                return buckets
        raise InvalidChange(f"no pair {name!r}; there are {', '.join(self.names())}")


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """Step from one layout to the next."""

    after: Layout
    parents: Mapping[str, tuple[str, ...]]
    """New pairs with the pairs that own their buckets before; all others are carried over."""

    def carried(self) -> tuple[str, ...]:
        """Return the pairs that keep name, buckets and replicas."""
        return tuple(name for name in self.after.names() if name not in self.parents)


def reassign(layout: Layout, given_up: Collection[str], parts: Iterable[Buckets]) -> LayoutChange:
    """Deal the buckets of some pairs to new pairs, one for each part.

    Raises:
        InvalidChange: the parts are not exactly the buckets of these pairs, each once.
    """
    old = {name: layout.buckets_of(name) for name in given_up}
    new = tuple(parts)
    pool = frozenset[int]().union(*old.values())
    if not all(new) or sum(map(len, new)) != len(pool) or pool != frozenset[int]().union(*new):
        raise InvalidChange(
            f"{len(new)} parts with {sum(map(len, new))} buckets; expected the {len(pool)} of "
            f"{', '.join(sorted(old))}, each once and no part empty"
        )
    fresh = tuple((f"pair-{layout.next_pair + n}", buckets) for n, buckets in enumerate(new))
    carried = tuple(pair for pair in layout.pairs if pair[0] not in old)
    parents = {
        name: tuple(sorted(pair for pair, theirs in old.items() if theirs & buckets))
        for name, buckets in fresh
    }
    return LayoutChange(Layout(carried + fresh, layout.next_pair + len(fresh)), parents)


def unite_pairs(layout: Layout, names: Sequence[str]) -> LayoutChange:
    """Make one pair of several."""
    united = frozenset[int]().union(*(layout.buckets_of(name) for name in names))
    return reassign(layout, names, [united])


def move_buckets(layout: Layout, moved: Buckets, source: str, target: str) -> LayoutChange:
    """Move some buckets of one pair to another; both are built again under new names.

    Raises:
        InvalidChange: the source does not own all of them, or would keep none.
    """
    kept = layout.buckets_of(source) - moved
    if not moved <= layout.buckets_of(source) or source == target:
        raise InvalidChange(f"{source} does not own all of the buckets to move to {target}")
    return reassign(layout, (source, target), [kept, layout.buckets_of(target) | moved])
