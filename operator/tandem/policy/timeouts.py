"""Timeouts and back-off delays of the policy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """All times are in seconds."""

    unheard: float = 2.0
    """A replica that has been silent for this long does not count as live: its twin is promoted.

    Longer than a poll without an answer and the next one (1.5 s), so that one late answer costs
    nothing, and than the data plane's heartbeat timeout. Rows do not wait for it. 5 s on a cluster.
    """
    hung: float = 10.0
    """A member that has been silent for this long is killed and restarted.

    Several times `unheard`: its twin is primary by then, and a needless kill costs a restart. On a
    cluster it costs a copy of the state, so 30 s; still before the kubelet's minute.
    """
    boot: float = 60.0
    """A new process that has not answered after this long is killed.

    Six times what a driver needs to boot (ADR 11), for slow machines; so it is above `hung`.
    """
    leaving: float = 3.0
    """A member that stopped cleanly, unasked, is restarted after this long: all members may be in
    the course of being stopped one by one.

    Below `hung`: a primary keeps its role meanwhile.
    """
    first_delay: float = 1.0
    """The least time between two starts after the second crash in a row; the first crash has no
    delay. A process that ran for longer is restarted at once.

    Shorter than Spark's start: only a process that fails at once is held back.
    """
    most_delay: float = 30.0
    """The delay doubles with each crash up to this. Restarts never stop: no member is abandoned.

    Reached after seven crashes in a row; short enough that a repaired cause is noticed soon.
    """
    healthy: float = 60.0
    """A run of this length resets the crash counter.

    Above `most_delay`, so that a delay cannot outlast a run that counts as healthy.
    """
    between_moves: float = 60.0
    """The pause between the first eviction and the next one.

    Above `hung`, on a cluster too: a moved pod that hangs is replaced before another one moves.
    Raise it if copies of the state take longer.
    """
    most_between_moves: float = 960.0
    """The pause doubles up to this while evictions do not spread pods over nodes.

    Four doublings of `between_moves`: an eviction in vain costs a copy of the state.
    """

    def delay_after(self, crashes: int) -> float:
        """The least time between two starts after this many crashes in a row."""
        return _doubled(self.first_delay, crashes - 2, self.most_delay) if crashes > 1 else 0.0

    def pause_after(self, moves: int) -> float:
        """The pause before the next eviction after this many in a row."""
        return _doubled(self.between_moves, moves - 1, self.most_between_moves)


def _doubled(first: float, times: int, most: float) -> float:
    # The exponent is bounded so that many failures in a row do not overflow.
    return min(most, first * 2.0 ** min(times, 30))
