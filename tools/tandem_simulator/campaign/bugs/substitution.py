"""How a bug is planted: functions of the protocol are replaced by wrong ones for a while."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

from tandem_runtime import protocol
from tandem_runtime.protocol.lead import lead

Swap = tuple[object, str, object]
"""An owner (module or class), the name of one of its functions, and what to put there."""


class SeededBug(NamedTuple):
    """A mistake: what it is called, what it does, and how to make it for a while."""

    name: str
    what: str
    apply: Callable[[], AbstractContextManager[None]]


def _substituted(*swaps: Swap) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def apply() -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, replacement in swaps:
                stack.callback(setattr, owner, name, vars(owner)[name])
                setattr(owner, name, replacement)
            yield

    return apply


def everywhere(original: Callable[..., object], replacement: object) -> tuple[Swap, ...]:
    """Swaps for every module of the protocol that has imported a function by name."""
    found = pkgutil.walk_packages(protocol.__path__, f"{protocol.__name__}.")
    return tuple(
        (module, name, replacement)
        for module in map(importlib.import_module, sorted(each.name for each in found))
        for name, value in vars(module).items()
        if value is original
    )


def decision(original: Callable[..., object], replacement: object) -> Swap:
    """Swap one of the decisions that the lead goes through."""
    changed = tuple(replacement if d is original else d for d in vars(lead)["_RECORDS"])
    return lead, "_RECORDS", changed


def seeded_bug(name: str, what: str, *swaps: Swap) -> SeededBug:
    """A bug that consists of some swaps."""
    return SeededBug(name, what, _substituted(*swaps))
