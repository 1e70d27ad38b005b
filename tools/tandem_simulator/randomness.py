"""Where chance comes from: one stream for each purpose, all made from seed and schedule number.

Separate streams keep the rest of a schedule as it was when one fault is left out of it.
"""

from random import Random


def stream(seed: int, number: int, purpose: str) -> Random:
    """The random numbers of one schedule for one purpose; equal on every machine."""
    return Random(f"{seed}/{number}/{purpose}")  # noqa: S311 (reproducible, not secret)
