"""Layouts as routing functions: how a generation's assignment of keys is stored and read."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tandem.policy.layout.layout import HotKey, Layout, LayoutChange
from tandem_core.contract.intent import Function, Generation, Intent, Pair
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of_form, to_bytes
from tandem_core.routing.ring import bucket_of


class LayoutCodec(Protocol):
    """Writes layouts into generations, and reads them back."""

    def layout_of(self, intent: Intent) -> Layout:
        """Return the layout of the target generation."""

    def bucket_of(self, key: int) -> int:
        """Return the bucket of a key, given by its hash."""

    def generation_of(
        self, number: int, change: LayoutChange, before: Generation
    ) -> tuple[Generation, tuple[Function, ...]]:
        """Return the generation that a change makes of another one, with its documents."""


class ShareChanged(RuntimeError):
    """A pair that is carried over would own other keys: a defect, never written to an intent."""


class RoutingCodec:
    """Layouts as routing functions with an explicit map of buckets."""

    def __init__(self, functions: Callable[[str], RoutingFunction]) -> None:
        """`functions` returns the routing function of a digest."""
        self._functions = functions

    def layout_of(self, intent: Intent) -> Layout:
        """Return the layout of the target generation.

        Raises:
            RoutingError: its routing function lacks one of its pairs.
        """
        target = next(each for each in intent.generations if each.number == intent.target)
        function = self._functions(target.function)
        names = {pair.label: pair.name for pair in target.pairs}
        pairs = tuple(
            (pair.name, frozenset(np.flatnonzero(function.share_of(pair.label).buckets).tolist()))
            for pair in target.pairs
        )
        known = dict(pairs)
        hot = (
            HotKey(key, bucket, names[function.pairs[owner]])
            for key, bucket, owner in zip(
                function.hot_hashes.tolist(),
                bucket_of(function.hot_hashes).tolist(),
                function.hot_owners.tolist(),
                strict=True,
            )
        )
        elsewhere = tuple(each for each in hot if each.bucket not in known[each.pair])
        return Layout(pairs, intent.next_pair, elsewhere)

    def bucket_of(self, key: int) -> int:
        """Return the bucket of a key, given by its hash."""
        return int(bucket_of(np.array([key], dtype=np.uint64))[0])

    def generation_of(
        self, number: int, change: LayoutChange, before: Generation
    ) -> tuple[Generation, tuple[Function, ...]]:
        """Return the generation that a change makes of another one, with its routing function.

        Raises:
            FunctionTooLargeError: there are more pairs or hot keys than fit.
            ShareChanged: a pair that is carried over would own other keys.
        """
        after = change.after
        function = RoutingFunction.explicit(
            dict(after.pairs), {each.key: each.pair for each in after.hot}
        )
        form = to_bytes(function)
        digest = digest_of_form(form)
        known = {pair.name: pair for pair in before.pairs}
        pairs = tuple(
            self._pair(name, function, number, change.parents.get(name, ()), known.get(name))
            for name in after.names()
        )
        return Generation(number, digest, pairs, before.plan), (Function(digest, form),)

    def _pair(
        self,
        name: str,
        function: RoutingFunction,
        number: int,
        parents: tuple[str, ...],
        before: Pair | None,
    ) -> Pair:
        share = function.share_of(name).identity
        if before is None:
            return Pair(name, name, parents, share, number)
        if before.share not in {"", share}:
            raise ShareChanged(f"{name} is carried over and would own other keys")
        return Pair(name, name, (), share, before.birth)
