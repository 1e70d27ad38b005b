"""The simulator's routing function: a label lists its buckets and hot keys.

`0.3.+12.-8` has the buckets 0 and 3 without key 8, and key 12 of another bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from tandem_core.contract.intent import Function, Generation, Pair, Share

FUNCTION = Function("buckets", b"")
"""All generations share it: labels contain everything."""

MOST_KEYS = 16
"""Keys are numbers below this; the bucket of one is its remainder."""

Pairs = tuple[tuple[str, frozenset[int]], ...]
"""Names of pairs, and the buckets that each one owns."""


class LabelContent(NamedTuple):
    """What a label lists."""

    buckets: frozenset[int]
    won: frozenset[int]
    """Keys of other pairs' buckets that it owns."""
    lost: frozenset[int]
    """Keys of its buckets that another pair owns."""


def label_of(buckets: Iterable[int], won: Iterable[int] = (), lost: Iterable[int] = ()) -> str:
    """The label under which some buckets and keys are owned."""
    return ".".join(
        [
            *(str(bucket) for bucket in sorted(buckets)),
            *(f"+{key}" for key in sorted(won)),
            *(f"-{key}" for key in sorted(lost)),
        ]
    )


@cache
def read_label(label: str) -> LabelContent:
    """What a label lists."""
    words = [word for word in label.split(".") if word]
    return LabelContent(
        frozenset(int(word) for word in words if word[0] not in "+-"),
        frozenset(int(word) for word in words if word[0] == "+"),
        frozenset(-int(word) for word in words if word[0] == "-"),
    )


@cache
def keys_of(label: str, buckets: int) -> frozenset[int]:
    """The keys that a label owns, where there are this many buckets."""
    content = read_label(label)
    mine = {key for key in range(MOST_KEYS) if key % buckets in content.buckets}
    return frozenset(mine - content.lost | content.won)


def share_of(label: str) -> Share:
    """What a pair with this label owns."""
    return Share(FUNCTION.digest, label)


def generation_of(
    number: int, pairs: Pairs, parents: Mapping[str, tuple[str, ...]] | None = None
) -> Generation:
    """Return a generation in which pairs own these buckets."""
    known = parents or {}
    labelled = ((name, label_of(buckets)) for name, buckets in pairs)
    return Generation(
        number,
        FUNCTION.digest,
        tuple(
            Pair(name, label, known.get(name, ()), share=label, birth=number)
            for name, label in labelled
        ),
    )
