"""How long the policy waits for what."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
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
    """After a second crash in a row starts are so far apart; after the first one there is no
    waiting. What has run for longer is started again at once."""
    most_delay: float = 30.0
    """It doubles with each crash up to this. Starts never end: nothing is given up silently."""
    healthy: float = 60.0
    """After running for so long earlier crashes are forgotten."""
    between_moves: float = 60.0
    """So long after a pod was moved to another node the next one may be, for the first time."""
    most_between_moves: float = 960.0
    """The pause doubles up to this while moving pods does not part them."""

    def delay_after(self, crashes: int) -> float:
        """How far apart starts are after so many crashes in a row."""
        return _doubled(self.first_delay, crashes - 2, self.most_delay) if crashes > 1 else 0.0

    def pause_after(self, moves: int) -> float:
        """How long to wait with the next move after so many in a row."""
        return _doubled(self.between_moves, moves - 1, self.most_between_moves)


def _doubled(first: float, times: int, most: float) -> float:
    # The exponent is bounded so that a long row of failures is no large number.
    return min(most, first * 2.0 ** min(times, 30))
