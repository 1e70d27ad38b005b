"""Finds the keys that a share names, with the routing functions that this process knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tandem_core.contract.intent import Function, Share
from tandem_core.routing.function import OwnedKeys
from tandem_core.routing.function_codec import from_bytes


class UnknownFunction(Exception):
    """The routing function that a share names is not known here, or not yet."""

    def __init__(self, share: Share) -> None:
        super().__init__(f"routing function {share.function} of {share.label} is not known here")


class KeyResolver:
    """Resolves shares to keys."""

    def __init__(self, functions: Callable[[], tuple[Function, ...]]) -> None:
        """`functions` gives the routing functions that are known now."""
        self._functions = functions

    def keys_of(self, share: Share) -> OwnedKeys:
        """Returns the keys of a share.

        Raises:
            UnknownFunction: its routing function is not known.
        """
        for function in self._functions():
            if function.digest == share.function:
                return _keys_in(function.form, share.label)
        raise UnknownFunction(share)


@lru_cache(maxsize=16)
def _keys_in(function: bytes, label: str) -> OwnedKeys:
    return from_bytes(function).share_of(label)
