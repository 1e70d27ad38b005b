"""A mapping that remembers only so much: what came last [12]."""

from __future__ import annotations

from typing import TypeVar

V = TypeVar("V")

REMEMBERED = 8192
"""Volumes come and go with pods; nobody is asked about one so many pods later. The largest pipeline
has far fewer members."""


class BoundedMap(dict[str, V]):
    """Keeps the newest entries; setting a key anew makes it the newest."""

    def __setitem__(self, key: str, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > REMEMBERED:
            del self[next(iter(self))]
