"""Describes a violation that the ledger has found."""

from __future__ import annotations

from typing import NamedTuple, NoReturn


class Violation(NamedTuple):
    """A violated invariant, its subject, and the two accounts that differ."""

    invariant: int
    """Number of the invariant; 0 for progress and for a machine that raised an error."""
    kind: str
    """One word; the shrinker treats violations of the same kind as the same mistake."""
    accounts: str
    """What the ledger expected and what it saw, as text."""
    where: str = ""
    epoch: int = 0
    subject: str = ""
    """The pair, lane, partition or volume concerned."""
    time: int = 0


class BrokenError(Exception):
    """Ends a schedule."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.accounts)
        self.violation = violation


def broken(
    invariant: int, kind: str, accounts: str, where: str = "", epoch: int = 0, subject: str = ""
) -> NoReturn:
    """End the schedule with a violation."""
    raise BrokenError(Violation(invariant, kind, accounts, where, epoch, subject))
