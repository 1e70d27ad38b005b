"""What is said when the header log is rebuilt, rule (i)."""

from __future__ import annotations

from tandem_core.contract.intent import Generation
from tandem_core.contract.records import Tagged
from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.types import Dealing, Header, Slot


class Muster(Tagged):
    """A split that starts the header log anew: what do you hold? Refuse lower terms from now."""

    term: int


class Present(Tagged):
    """A replica or merge, to a muster."""

    term: int
    kind: MemberKind
    pair: str
    committed: int
    verified: bool
    slot: int
    delivered: int
    digest: str
    """Of the header of its committed epoch, or of the delivered one; empty if it knows none."""
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
    version: tuple[int, int] = (0, 0)
    """Of the view that a merge has its slots from."""
    slots: tuple[Slot, ...] = ()
    next_slot: int = 0
    dealings: tuple[Dealing, ...] = ()
    furthest: int = 0
    """The last epoch that some sink of a merge has, of whichever slot."""
    format: int = 1
    """The newest format of the lost log that it was told of."""
