"""Timeouts and back-off delays of the policy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """All times are in seconds."""

    unheard: float = 2.0
    """A replica that has been silent for this long does not count as live: its twin is promoted."""
    hung: float = 10.0
    """A member that has been silent for this long is killed and restarted."""
    boot: float = 60.0
    """A new process that has not answered after this long is killed."""
    leaving: float = 3.0
    """A member that stopped cleanly, unasked, is restarted after this long: all members may be in
    the course of being stopped one by one."""
    first_delay: float = 1.0
    """The least time between two starts after the second crash in a row; the first crash has no
    delay. A process that ran for longer is restarted at once."""
    most_delay: float = 30.0
    """The delay doubles with each crash up to this. Restarts never stop: no member is abandoned."""
    healthy: float = 60.0
    """A run of this length resets the crash counter."""
    between_moves: float = 60.0
    """The pause between the first eviction and the next one."""
    most_between_moves: float = 960.0
    """The pause doubles up to this while evictions do not spread pods over nodes."""

    def delay_after(self, crashes: int) -> float:
        """The least time between two starts after this many crashes in a row."""
        return _doubled(self.first_delay, crashes - 2, self.most_delay) if crashes > 1 else 0.0

    def pause_after(self, moves: int) -> float:
        """The pause before the next eviction after this many in a row."""
        return _doubled(self.between_moves, moves - 1, self.most_between_moves)


def _doubled(first: float, times: int, most: float) -> float:
    # The exponent is bounded so that many failures in a row do not overflow.
    return min(most, first * 2.0 ** min(times, 30))
