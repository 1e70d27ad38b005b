"""Resizing: the next step from a layout towards a number of pairs.

Level-triggered: each step follows from the layout and the load alone, so an operator that restarts
between two steps continues with the same one.
"""

import heapq
from collections.abc import Callable, Sequence

from tandem.policy.layout.layout import Buckets, Layout, LayoutChange, reassign
from tandem_core.model.change import LEAST_SURGE

Load = Callable[[int], float]
"""Load of a bucket; never negative."""


def next_step(
    layout: Layout, wanted: int, load: Load, max_surge: int = LEAST_SURGE
) -> LayoutChange | None:
    """Return the next step towards `wanted` pairs, which builds at most `max_surge` new ones.

    None if there are as many already, or if no pair has two buckets to split. More pairs come from
    splitting the most loaded, fewer from uniting the least loaded; the rest is carried over.
    """
    surge = max(max_surge, LEAST_SURGE)
    if wanted > len(layout.pairs):
        return _split(layout, wanted, load, surge)
    return _unite(layout, max(wanted, 1), load, surge)


def parts_of_pairs(loads: Sequence[float], sizes: Sequence[int], wanted: int) -> list[int]:
    """Return into how many parts to split each pair, so that the largest part is smallest.

    `sizes` bound the parts: a pair has at most as many as it has buckets.
    """
    parts = [1] * len(loads)
    queue = [(-load, n) for n, load in enumerate(loads) if sizes[n] > 1]
    heapq.heapify(queue)
    while queue and sum(parts) < wanted:
        _, n = heapq.heappop(queue)
        parts[n] += 1
        if parts[n] < sizes[n]:
            heapq.heappush(queue, (-loads[n] / parts[n], n))
    return parts


def divide(buckets: Buckets, parts: int, load: Load) -> list[Buckets]:
    """Divide buckets into parts of about equal load, none of them empty.

    The heaviest bucket goes first, each to the part with the least load.
    """
    heaps: list[tuple[float, int, list[int]]] = [(0.0, n, []) for n in range(parts)]
    for bucket in sorted(buckets, key=lambda bucket: (-load(bucket), bucket)):
        total, n, mine = heapq.heappop(heaps)
        mine.append(bucket)
        # A bucket without load counts a little, so that no part stays empty.
        heapq.heappush(heaps, (total + load(bucket) + 1e-9, n, mine))
    return [frozenset(mine) for _, _, mine in sorted(heaps, key=lambda heap: heap[1])]


def _split(layout: Layout, wanted: int, load: Load, surge: int) -> LayoutChange | None:
    loads = [sum(map(load, buckets)) for _, buckets in layout.pairs]
    sizes = [len(buckets) for _, buckets in layout.pairs]
    parts = parts_of_pairs(loads, sizes, wanted)
    chosen: dict[str, int] = {}
    for n in sorted(range(len(parts)), key=lambda n: (-loads[n], n)):
        room = surge - sum(chosen.values())
        if parts[n] > 1 and room >= LEAST_SURGE:
            chosen[layout.pairs[n][0]] = min(parts[n], room)
    if not chosen:
        return None
    pieces = [
        piece
        for name, count in chosen.items()
        for piece in divide(layout.buckets_of(name), count, load)
    ]
    return reassign(layout, chosen, pieces)


def _unite(layout: Layout, wanted: int, load: Load, surge: int) -> LayoutChange | None:
    groups: list[tuple[float, str, tuple[str, ...]]] = [
        (sum(map(load, buckets)), name, (name,)) for name, buckets in layout.pairs
    ]
    heapq.heapify(groups)
    while len(groups) > wanted:
        light, first = heapq.heappop(groups), heapq.heappop(groups)
        heapq.heappush(groups, (light[0] + first[0], first[1], (*light[2], *first[2])))
    united = sorted(group for group in groups if len(group[2]) > 1)[:surge]
    if not united:
        return None
    given_up = [name for _, _, names in united for name in names]
    parts = [
        frozenset[int]().union(*(layout.buckets_of(name) for name in names))
        for _, _, names in united
    ]
    return reassign(layout, given_up, parts)
