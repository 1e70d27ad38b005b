"""What is said when the header log is rebuilt, rule (i)."""

from __future__ import annotations

from typing import NamedTuple

from tandem_runtime.protocol.data import Generation, Header


class Muster(NamedTuple):
    """A split that starts the header log anew: what do you hold? Refuse lower terms from now."""

    term: int


class Present(NamedTuple):
    """A replica or merge, to a muster."""

    term: int
    kind: str
    pair: str
    committed: int
    verified: bool
    slot: int
    delivered: int
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
