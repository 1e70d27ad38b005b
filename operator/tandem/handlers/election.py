"""Which of several operators acts: who holds the Lease, decided without I/O.

Clocks of machines are never compared. Whoever waits takes the Lease over when it has seen it
unchanged for as long as it was taken for; whoever holds it stops acting before that time is over,
counted from the last renewal that it began.
"""

from dataclasses import dataclass
from enum import Enum

DURATION = 15.0
"""Seconds for which the Lease is taken."""
DEADLINE = 10.0
"""A holder that could not renew for so long acts no more."""
EVERY = 2.0
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What stands in the Lease."""

    holder: str
    renewed: str
    """Changes with each renewal."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one operator knows."""

    me: str
    claim: Claim | None = None
    seen: float = 0.0
    """Since when the claim has been seen unchanged."""
    renewed: float | None = None
    """When the last renewal of its own began that succeeded; None while it only waits."""

    def saw(self, claim: Claim | None, now: float) -> "Candidate":
        """After a look at the Lease."""
        seen = now if claim != self.claim else self.seen
        return Candidate(self.me, claim, seen, self.renewed)

    def took(self, claim: Claim, began: float) -> "Candidate":
        """After it wrote its own claim, with a call that began then."""
        return Candidate(self.me, claim, began, began)

    def leads(self, now: float) -> bool:
        """Whether it may act now."""
        return self.renewed is not None and now - self.renewed < DEADLINE


class ElectionStep(Enum):
    """What is to be done about the Lease."""

    WAIT = "wait"
    TAKE = "take"
    """Write the own claim, if nobody else has written since: also to renew it."""
    LEAVE = "leave"
    """It is lost: act no more."""


def step(standing: Candidate, now: float) -> ElectionStep:
    """What an operator does after a look."""
    if standing.renewed is not None and not standing.leads(now):
        return ElectionStep.LEAVE
    claim = standing.claim
    if claim is None or claim.holder in {"", standing.me}:
        return ElectionStep.TAKE
    if standing.renewed is not None:
        return ElectionStep.LEAVE
    return ElectionStep.TAKE if now - standing.seen >= DURATION else ElectionStep.WAIT
