"""Defines the messages of a rebuild of the header log, rule (i)."""

from __future__ import annotations

from tandem_core.contract.intent import Generation
from tandem_core.contract.records import Tagged
from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.types import Dealing, Header, Slot


class Muster(Tagged):
    """Requests what a member holds, for a rebuild; the member then refuses lower terms."""

    term: int


class Present(Tagged):
    """Answer of a replica or merge to a `Muster`."""

    term: int
    kind: MemberKind
    pair: str
    committed: int
    verified: bool
    slot: int
    delivered: int
    digest: str
    """Digest of the header of its committed or delivered epoch; empty if it has none."""
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
    version: tuple[int, int] = (0, 0)
    """Version of the view that a merge's `slots` are from."""
    slots: tuple[Slot, ...] = ()
    next_slot: int = 0
    dealings: tuple[Dealing, ...] = ()
    furthest: int = 0
    """Last epoch that any sink of a merge has, of any slot."""
    format: int = 1
    """Newest format of the lost log that a view has named."""
