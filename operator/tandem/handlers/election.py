"""Leader election among operators by a Lease, decided without I/O.

Clocks of machines are never compared. A waiting operator takes the Lease when it has seen it
unchanged for its whole duration. The holder stops acting before that time is over, counted from
the start of its last successful renewal.
"""

from dataclasses import dataclass
from enum import Enum

DURATION = 15.0
"""Seconds for which the Lease is taken."""
DEADLINE = 10.0
"""Seconds without a renewal after which the holder stops acting."""
EVERY = 2.0
"""Seconds between two reads of the Lease."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of the Lease."""

    holder: str
    renewed: str
    """Changes with each renewal."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The view that one operator has of the election."""

    me: str
    claim: Claim | None = None
    seen: float = 0.0
    """Since when the claim has been seen unchanged."""
    renewed: float | None = None
    """When its own last successful renewal began; None while it waits."""

    def saw(self, claim: Claim | None, now: float) -> "Candidate":
        """The view after the Lease was read."""
        seen = now if claim != self.claim else self.seen
        return Candidate(self.me, claim, seen, self.renewed)

    def took(self, claim: Claim, began: float) -> "Candidate":
        """The view after it wrote its own claim, by a call that began at `began`."""
        return Candidate(self.me, claim, began, began)

    def leads(self, now: float) -> bool:
        """Whether it may act now."""
        return self.renewed is not None and now - self.renewed < DEADLINE


class ElectionStep(Enum):
    """An operator's next step about the Lease."""

    WAIT = "wait"
    TAKE = "take"
    """Write its own claim, also to renew it, unless the Lease was written since it was read."""
    LEAVE = "leave"
    """The Lease is lost: stop acting."""


def step(standing: Candidate, now: float) -> ElectionStep:
    """Decide the next step after the Lease was read."""
    if standing.renewed is not None and not standing.leads(now):
        return ElectionStep.LEAVE
    claim = standing.claim
    if claim is None or claim.holder in {"", standing.me}:
        return ElectionStep.TAKE
    if standing.renewed is not None:
        return ElectionStep.LEAVE
    return ElectionStep.TAKE if now - standing.seen >= DURATION else ElectionStep.WAIT
