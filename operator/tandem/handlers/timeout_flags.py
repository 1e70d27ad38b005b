"""The operator's timeouts as flags: durations as in a manifest, within bounds, checked together."""

import argparse
from collections.abc import Callable
from dataclasses import replace

from tandem.control.reconcile import CLUSTER_LIMITS
from tandem.policy.timeouts import Timeouts
from tandem_core.model.fields.kinds import DurationKind, Reading, Unreadable
from tandem_core.model.fields.quantities import Duration

_SECOND, _HOUR = 1_000, 3_600_000

_FAILOVER = DurationKind(Duration(3 * _SECOND), Duration(60 * _SECOND))
"""Members are asked every half a second; one late answer must not cost the primary its role."""
_REPLACEMENT = DurationKind(Duration(5 * _SECOND), Duration(_HOUR))
_RELOCATION = DurationKind(Duration(10 * _SECOND), Duration(_HOUR))
_GROWTH = CLUSTER_LIMITS.most_between_moves / CLUSTER_LIMITS.between_moves


def add_timeouts(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    flags = (
        (
            "failover",
            _FAILOVER,
            CLUSTER_LIMITS.unheard,
            "time without an answer until the twin is promoted",
        ),
        (
            "replacement",
            _REPLACEMENT,
            CLUSTER_LIMITS.hung,
            "time without an answer until the pod is deleted",
        ),
        (
            "relocation",
            _RELOCATION,
            CLUSTER_LIMITS.between_moves,
            f"back-off after a pod is evicted to move it; doubles up to {_GROWTH:g} times that",
        ),
    )
    for name, kind, default, meaning in flags:
        parser.add_argument(
            f"--{name}-timeout",
            type=_reader(kind),
            default=default,
            metavar="DURATION",
            help=f"{meaning} ({Duration(int(default * _SECOND))})",
        )


def timeouts_of(asked: argparse.Namespace) -> Timeouts:
    """The timeouts that the flags ask for.

    Raises:
        ValueError: they contradict each other; the message names the remedy.
    """
    if asked.failover_timeout >= asked.replacement_timeout:
        raise ValueError("expected a --replacement-timeout that is longer than --failover-timeout")
    return replace(
        CLUSTER_LIMITS,
        unheard=asked.failover_timeout,
        hung=asked.replacement_timeout,
        between_moves=asked.relocation_timeout,
        most_between_moves=asked.relocation_timeout * _GROWTH,
    )


def _reader(kind: DurationKind) -> Callable[[str], float]:
    def read(text: str) -> float:
        reading = Reading()
        try:
            return kind.read(text, (), reading).seconds
        except Unreadable:
            wanted = reading.problems[0].expected
            raise argparse.ArgumentTypeError(f"{text!r}: expected {wanted}") from None

    return read
