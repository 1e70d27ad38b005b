"""Which faults a soak makes, drawn from a seed before it begins."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Act(StrEnum):
    """What is done to a process."""

    KILL = "kill"
    FREEZE = "freeze"


class Target(StrEnum):
    """Whom it is done to; who that is, is found out when it is done."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    LEAD = "lead split"
    FOLLOWER = "other split"
    ACTIVE = "active merge"
    STANDBY = "standby merge"
    SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault."""

    act: Act
    target: Target
    index: int
    """Whom it is done to if several are that: the one with this index, modulo their number then."""
    after: float
    """Seconds since the fault before it."""
    frozen: float
    """Seconds until a frozen process goes on."""

    @property
    def together(self) -> bool:
        """Whether it comes together with the one before it."""
        return self.after < PAUSE[0]

    @property
    def kind(self) -> str:
        """What the report counts it as."""
        return f"{self.act} {self.target}"


COVERED = (
    (Act.KILL, Target.PRIMARY),
    (Act.FREEZE, Target.SECONDARY),
    (Act.KILL, Target.LEAD),
    (Act.KILL, Target.ACTIVE),
    (Act.KILL, Target.FOLLOWER),
    (Act.KILL, Target.SUPERVISOR),
)
"""What every soak begins with, however short it is."""

WEIGHTS = {
    (Act.KILL, Target.PRIMARY): 14,
    (Act.KILL, Target.SECONDARY): 12,
    (Act.FREEZE, Target.PRIMARY): 12,
    (Act.FREEZE, Target.SECONDARY): 10,
    (Act.KILL, Target.LEAD): 8,
    (Act.KILL, Target.FOLLOWER): 5,
    (Act.FREEZE, Target.LEAD): 7,
    (Act.FREEZE, Target.FOLLOWER): 4,
    (Act.KILL, Target.ACTIVE): 7,
    (Act.KILL, Target.STANDBY): 3,
    (Act.FREEZE, Target.ACTIVE): 7,
    (Act.FREEZE, Target.STANDBY): 3,
    (Act.KILL, Target.SUPERVISOR): 4,
    (Act.FREEZE, Target.SUPERVISOR): 4,
}
"""How often which fault is drawn. A killed supervisor takes everybody with it, so it is rare."""

INDEXES = 2**16
"""Many more than members, so that all are equally likely, old and new, however many there are."""
PAUSE = (3.0, 6.0)
AT_ONCE = (1, 1, 1, 1, 1, 1, 1, 2, 2, 3)
"""How many faults come together, as often as it stands here."""
TOGETHER = (0.0, 0.3)
FREEZE = (1.0, 12.0)


def planned(count: int, seed: int) -> list[Fault]:
    """The faults of a soak."""
    draws = random.Random(seed)  # noqa: S311 - a seed is wanted, not secrecy
    what = [*COVERED[:count], *_drawn(draws, max(0, count - len(COVERED)))]
    pauses = _pauses(draws, alone=len(COVERED))
    return [
        Fault(
            act,
            target,
            index=draws.randrange(INDEXES),
            after=next(pauses),
            frozen=draws.uniform(*FREEZE),
        )
        for act, target in what
    ]


def _drawn(draws: random.Random, count: int) -> list[tuple[Act, Target]]:
    return draws.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)


def _pauses(draws: random.Random, alone: int) -> Iterator[float]:
    """A pause before each group of faults, next to nothing within it; the first come alone."""
    for _ in range(alone):
        yield draws.uniform(*PAUSE)
    while True:
        size = draws.choice(AT_ONCE)
        yield draws.uniform(*PAUSE)
        for _ in range(size - 1):
            yield draws.uniform(*TOGETHER)
