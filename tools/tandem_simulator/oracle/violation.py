"""What the ledger says when two accounts differ."""

from __future__ import annotations

from typing import NamedTuple, NoReturn


class Violation(NamedTuple):
    """A broken promise: which one, who was at it, and the two accounts."""

    invariant: int
    """Number of the invariant; 0 for progress and for a machine that raised an error."""
    kind: str
    """One word: two violations of the same kind are the same mistake to the shrinker."""
    accounts: str
    """What the ledger expected and what it saw, in words."""
    where: str = ""
    epoch: int = 0
    subject: str = ""
    """A pair, lane, partition or volume that it is about."""
    time: int = 0


class BrokenError(Exception):
    """Ends a schedule."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.accounts)
        self.violation = violation


def broken(
    invariant: int, kind: str, accounts: str, where: str = "", epoch: int = 0, subject: str = ""
) -> NoReturn:
    """Say what broke and end the schedule."""
    raise BrokenError(Violation(invariant, kind, accounts, where, epoch, subject))
