"""The simulator's routing function: a label lists its buckets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tandem_core.contract.intent import Function, Generation, Pair, Share

FUNCTION = Function("buckets", b"")
"""All generations share it: labels contain everything."""

Pairs = tuple[tuple[str, frozenset[int]], ...]
"""Names of pairs, and the buckets that each one owns."""


def label_of(buckets: frozenset[int]) -> str:
    """The label under which some buckets are owned."""
    return ".".join(map(str, sorted(buckets)))


@cache
def buckets_of(label: str) -> frozenset[int]:
    """The buckets that a label lists."""
    return frozenset(int(bucket) for bucket in label.split(".") if bucket)


def share_of(buckets: frozenset[int]) -> Share:
    """What a pair with these buckets owns."""
    return Share(FUNCTION.digest, label_of(buckets))


def generation_of(
    number: int, pairs: Pairs, parents: Mapping[str, tuple[str, ...]] | None = None
) -> Generation:
    """Return a generation in which pairs own these buckets."""
    known = parents or {}
    return Generation(
        number,
        FUNCTION.digest,
        tuple(Pair(name, label_of(buckets), known.get(name, ())) for name, buckets in pairs),
    )


def new_pairs(generation: Generation) -> tuple[str, ...]:
    """The pairs that a generation does not carry over."""
    return tuple(pair.name for pair in generation.pairs if pair.parents)
