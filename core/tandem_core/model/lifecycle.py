"""State machines as tables: their states and legal transitions.

Every change is checked against the machine's table; a transition that is not listed raises
`IllegalMove`. The documents draw the tables.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=StrEnum)


class IllegalMove(Exception):
    """Raised for a transition that is not in its machine's table."""

    def __init__(self, machine: str, before: object, wanted: object, subject: object) -> None:
        super().__init__(f"{machine} {subject}: {wanted}, while {before or 'not there'}")
        self.machine = machine
        self.before = before
        self.wanted = wanted
        """Requested state, or the event that was applied."""
        self.subject = subject


class Transition(NamedTuple, Generic[S]):
    """Legal transition. A state is None before the subject exists and after it is gone."""

    before: S | None
    after: S | None
    cause: str
    """Event that causes it; the type name of the entry if the header log records it."""
    note: str = ""


class Lifecycle(Generic[S]):
    """Table of a machine's legal transitions; an event has one outcome in each state."""

    __slots__ = ("_by_cause", "_legal", "machine", "moves")

    def __init__(self, machine: str, *moves: Transition[S]) -> None:
        self.machine = machine
        self.moves = moves
        self._legal = frozenset((move.before, move.after) for move in moves)
        self._by_cause: dict[tuple[str, S | None], S | None] = {}
        for before, after, cause, _ in moves:
            if (cause, before) in self._by_cause:
                raise ValueError(f"{machine}: two transitions for {cause!r}, while {before}")
            self._by_cause[cause, before] = after

    def check(self, before: S | None, after: S | None, subject: object) -> None:
        """Check that a transition is in the table.

        Raises:
            IllegalMove: it is not.
        """
        if (before, after) not in self._legal:
            raise IllegalMove(self.machine, before, after, subject)

    def after(self, cause: str, before: S | None, subject: object) -> S | None:
        """Return the state that an event leads to.

        Raises:
            IllegalMove: the event is not legal in this state.
        """
        key = (cause, before)
        if key not in self._by_cause:
            raise IllegalMove(self.machine, before, cause, subject)
        return self._by_cause[key]
