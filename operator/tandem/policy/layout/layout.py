"""Assignments of keys to pairs, and changes that leave all other pairs as they are."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Buckets = frozenset[int]


class HotKey(NamedTuple):
    """A key that another pair owns than the one that owns its bucket."""

    key: int
    """Its hash."""
    bucket: int
    pair: str


class InvalidChange(ValueError):
    """A change that would lose a bucket, assign one twice, or name a pair that does not exist."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Assignment of every bucket, and of every hot key, to one pair.

    The keys of a pair never change: a change of owner makes new pairs. Names are never used twice,
    not even after a change that was abandoned.
    """

    pairs: tuple[tuple[str, Buckets], ...]
    next_pair: int
    """Number of the next new pair."""
    hot: tuple[HotKey, ...] = ()
    """Keys with an owner of their own, in the order of their hashes."""

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

    def owner_of_bucket(self, bucket: int) -> str:
        """Return the pair that owns a bucket.

        Raises:
            InvalidChange: nobody owns it.
        """
        for pair, buckets in self.pairs:
            if bucket in buckets:
                return pair
        raise InvalidChange(f"bucket {bucket} has no owner")

    def owner_of(self, key: int, bucket: int) -> str:
        """Return the pair that owns a key, given by its hash and bucket."""
        found = next((hot.pair for hot in self.hot if hot.key == key), None)
        return found or self.owner_of_bucket(bucket)


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """Step from one layout to the next."""

    after: Layout
    parents: Mapping[str, tuple[str, ...]]
    """New pairs with the pairs that own their keys before; all others are carried over."""

    def carried(self) -> tuple[str, ...]:
        """Return the pairs that keep name, keys and replicas."""
        return tuple(name for name in self.after.names() if name not in self.parents)


class MovedKey(NamedTuple):
    """A key, and the pair that is to own it; None for the owner of its bucket."""

    key: int
    bucket: int
    pair: str | None


def reassign(layout: Layout, given_up: Collection[str], parts: Iterable[Buckets]) -> LayoutChange:
    """Deal the keys of some pairs to new pairs, one for each part.

    A hot key of theirs goes to the owner of its bucket if that is new too, else to any new pair.

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
    hot = {}
    for each in layout.hot:
        if each.pair not in old:
            hot[each.key] = each
        elif each.bucket not in pool:
            hot[each.key] = each._replace(pair=_fresh_name(layout, each.key % len(new)))
    return _replaced(layout, old, new, hot)


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


def move_keys(layout: Layout, moves: Iterable[MovedKey]) -> LayoutChange:
    """Give single keys to other pairs; every pair that wins or loses a key is built again.

    Raises:
        InvalidChange: a pair does not exist, or no key changes its owner.
    """
    owners: dict[MovedKey, str] = {}
    for move in moves:
        wanted = move.pair or layout.owner_of_bucket(move.bucket)
        layout.buckets_of(wanted)
        if wanted != layout.owner_of(move.key, move.bucket):
            owners[move] = wanted
    if not owners:
        raise InvalidChange("every key is already where it is to go")
    losers = {layout.owner_of(move.key, move.bucket) for move in owners}
    touched = [name for name in layout.names() if name in losers | set(owners.values())]
    names = {name: _fresh_name(layout, n) for n, name in enumerate(touched)}
    hot = {each.key: each for each in layout.hot}
    for move, owner in owners.items():
        hot[move.key] = HotKey(move.key, move.bucket, owner)
    kept = {
        key: each._replace(pair=names.get(each.pair, each.pair))
        for key, each in hot.items()
        if each.pair != layout.owner_of_bucket(each.bucket)
    }
    old = {name: layout.buckets_of(name) for name in touched}
    return _replaced(layout, old, tuple(old.values()), kept)


def _replaced(
    layout: Layout,
    old: Mapping[str, Buckets],
    new: Sequence[Buckets],
    hot: Mapping[int, HotKey],
) -> LayoutChange:
    """Replace pairs by new ones with these buckets and the given hot keys."""
    fresh = tuple((_fresh_name(layout, n), buckets) for n, buckets in enumerate(new))
    carried = tuple(pair for pair in layout.pairs if pair[0] not in old)
    after = Layout(
        carried + fresh,
        layout.next_pair + len(fresh),
        tuple(hot[key] for key in sorted(hot)),
    )
    parents = {
        name: {pair for pair, theirs in old.items() if theirs & buckets} for name, buckets in fresh
    }
    # A bucket does not tell where the state of a hot key is.
    for each in (*layout.hot, *after.hot):
        owner = after.owner_of(each.key, each.bucket)
        if owner in parents:
            parents[owner].add(layout.owner_of(each.key, each.bucket))
    return LayoutChange(after, {name: tuple(sorted(pairs)) for name, pairs in parents.items()})


def _fresh_name(layout: Layout, number: int) -> str:
    return f"pair-{layout.next_pair + number}"
