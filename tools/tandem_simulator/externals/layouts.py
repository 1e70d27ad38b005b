"""Layouts as the simulator's labels: how the policy's plans become generations."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from tandem.policy.change.codec import ShareChanged
from tandem.policy.change.generations import target_generation
from tandem.policy.layout.layout import HotKey, Layout, LayoutChange, reassign
from tandem_core.contract.intent import Function, Generation, Intent, Pair
from tandem_simulator.externals.shares import FUNCTION, label_of, read_label

AT_RANDOM = 0.4
"""Share of changes that deal the buckets of their new pairs at random."""


class LabelCodec:
    """Writes layouts into labels, and reads them back.

    The policy divides buckets evenly. Some changes deal the buckets of the new pairs at random
    instead, which reaches layouts that it would never choose.
    """

    def __init__(self, buckets: int, rng: Random) -> None:
        self._buckets = buckets
        self._rng = rng

    def layout_of(self, intent: Intent) -> Layout:
        """Return the layout of the target generation."""
        return self._layout(target_generation(intent), intent.next_pair)

    def bucket_of(self, key: int) -> int:
        """Return the bucket of a key."""
        return key % self._buckets

    def generation_of(
        self, number: int, change: LayoutChange, before: Generation
    ) -> tuple[Generation, tuple[Function, ...]]:
        """Return the generation that a change makes of another one.

        Raises:
            ShareChanged: a pair that is carried over would own other keys.
        """
        if self._rng.random() < AT_RANDOM:
            change = self._dealt_at_random(change, before)
        known = {pair.name: pair for pair in before.pairs}
        pairs = []
        for name, buckets in change.after.pairs:
            label = self._label(change.after, name, buckets)
            carried = known.get(name)
            if carried is None:
                pairs.append(Pair(name, label, change.parents[name], label, number))
            elif carried.label != label:
                raise ShareChanged(f"{name} owned {carried.label}, and would own {label}")
            else:
                pairs.append(carried.replace(parents=()))
        return Generation(number, FUNCTION.digest, tuple(pairs)), (FUNCTION,)

    def _layout(self, generation: Generation, next_pair: int) -> Layout:
        content = {pair.name: read_label(pair.label) for pair in generation.pairs}
        hot = (
            HotKey(key, self.bucket_of(key), name)
            for name, each in content.items()
            for key in each.won
        )
        pairs = tuple((name, each.buckets) for name, each in content.items())
        return Layout(pairs, next_pair, tuple(sorted(hot)))

    def _label(self, layout: Layout, name: str, buckets: frozenset[int]) -> str:
        won = {hot.key for hot in layout.hot if hot.pair == name}
        lost = {hot.key for hot in layout.hot if hot.bucket in buckets and hot.pair != name}
        return label_of(buckets, won, lost)

    def _dealt_at_random(self, change: LayoutChange, before: Generation) -> LayoutChange:
        """Deal the buckets of all new pairs among them; those with hot keys keep theirs."""
        layout = self._layout(before, change.after.next_pair - len(change.parents))
        if layout.hot or change.after.hot or len(change.parents) == 1:
            return change
        given_up = [name for name in layout.names() if name not in change.after.names()]
        pool = sorted(frozenset[int]().union(*map(layout.buckets_of, given_up)))
        self._rng.shuffle(pool)
        cuts = sorted(self._rng.sample(range(1, len(pool)), len(change.parents) - 1))
        edges = [0, *cuts, len(pool)]
        parts = [frozenset(pool[a:b]) for a, b in pairwise(edges)]
        return reassign(layout, given_up, parts)
