"""Seeds a bug by temporarily replacing functions of the protocol."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

from tandem_runtime import protocol
from tandem_runtime.protocol.lead import lead

Swap = tuple[object, str, object]
"""An owner (module or class), the name of one of its functions, and the replacement."""


class SeededBug(NamedTuple):
    """A seeded bug: its name, its description, and a context manager that applies it."""

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
    """Swaps for every module of the protocol that imports a function by name."""
    found = pkgutil.walk_packages(protocol.__path__, f"{protocol.__name__}.")
    return tuple(
        (module, name, replacement)
        for module in map(importlib.import_module, sorted(each.name for each in found))
        for name, value in vars(module).items()
        if value is original
    )


def decision(original: Callable[..., object], replacement: object) -> Swap:
    """Swap one of the decisions of the lead."""
    changed = tuple(replacement if d is original else d for d in vars(lead)["_RECORDS"])
    return lead, "_RECORDS", changed


def seeded_bug(name: str, what: str, *swaps: Swap) -> SeededBug:
    """Make a bug of several swaps."""
    return SeededBug(name, what, _substituted(*swaps))
