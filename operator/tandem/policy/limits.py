"""How long the policy waits for what."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds."""

    unheard: float = 2.0
    """A replica that has been silent for so long no longer counts as live: its twin is primary."""
    hung: float = 10.0
    """A member that has been silent for so long is ended and started again."""
    boot: float = 60.0
    """So long may a new process take until its first answer."""
    leaving: float = 3.0
    """A member that ended in good order, unasked, is started again after this long: somebody may
    be stopping everything, one after the other."""
    first_delay: float = 1.0
    """Before the second start in a row; the first one is made at once."""
    most_delay: float = 30.0
    """Delays double with each crash up to this. They never end: nothing is given up silently."""
    healthy: float = 60.0
    """After running for so long earlier crashes are forgotten."""

    def delay_after(self, crashes: int) -> float:
        """How long to wait with the next start after so many crashes in a row."""
        if crashes <= 1:
            return 0.0
        # The exponent is bounded so that a long row of crashes is no large number.
        return min(self.most_delay, self.first_delay * 2.0 ** min(crashes - 2, 30))
