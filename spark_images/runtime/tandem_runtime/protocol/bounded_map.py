"""A mapping of bounded size that keeps the newest entries [12]."""

from __future__ import annotations

from typing import TypeVar

V = TypeVar("V")

REMEMBERED = 8192
"""Maximum number of entries, far above the number of members of the largest pipeline. Pods come and
go with their volumes, and an old volume is of no interest after that many others."""


class BoundedMap(dict[str, V]):
    """Keeps the newest entries; writing a key again makes it the newest."""

    def __setitem__(self, key: str, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > REMEMBERED:
            del self[next(iter(self))]
