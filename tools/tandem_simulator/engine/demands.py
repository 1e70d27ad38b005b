"""What the user asks for while a pipeline runs: sizes in the manifest, and keys moved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tandem.policy.change.generations import target_generation
from tandem.policy.change.wanted import Wanted
from tandem_core.contract.intent import ChangeRequest, Intent, KeyMove
from tandem_core.model.states import Word
from tandem_simulator.externals.shares import keys_of, read_label

if TYPE_CHECKING:
    from tandem_simulator.engine.configuration import Configuration

MOST_PAIRS = 5
BACK_TO_BUCKET = 5
"""One moved key in this many is moved back to the owner of its bucket."""
COPIES = (*((2000, 2500),) * 10, *((2000, 4000),) * 5, *((2000, 10_000),) * 2, (10_000, 30_000))
"""How long a holder takes to reduce its state to the keys of a new pair, by schedule."""
BESIDES_COPYING = 5000
"""How long a change takes besides, in milliseconds."""
TO_SPARE = 1500
"""Time after the last change, for those that faults have delayed."""


class DemandKind(Word):
    """What a user changes."""

    PAIRS = "pairs", "the number of pairs"
    KEY = "key", "the owner of one key, by hand"
    SLOTS = "slots", "the number of merge slots"
    SPLITS = "splits", "the number of splits"


class Demand(NamedTuple):
    """A change that the user asks for."""

    at: int
    kind: DemandKind
    amount: int
    """How many; or the key to move."""
    choice: int = 0
    """Which pair gets the key."""


class SimulatedUser:
    """The sizes that the user asks for now, and the last request by hand."""

    def __init__(self, configuration: Configuration) -> None:
        asked = (*configuration.changing.demands, *configuration.resizes, *configuration.scalings)
        self._left = sorted(asked)
        self._requests = 0
        self._buckets = configuration.buckets
        self.wanted = Wanted(
            pairs=len(configuration.pairs),
            splits=configuration.splits,
            slots=configuration.slots,
            max_surge=configuration.changing.surge,
            timeout_ms=configuration.changing.timeout,
            manifest=1,
        )

    def follow(self, now: int, intent: Intent) -> None:
        """Take in what was asked for meanwhile. Keys are moved to pairs of the target."""
        while self._left and self._left[0].at <= now:
            self.wanted = self._asked(self._left.pop(0), intent)

    def _asked(self, demand: Demand, intent: Intent) -> Wanted:
        wanted = self.wanted
        if demand.kind is DemandKind.KEY:
            self._requests += 1
            move = KeyMove(demand.amount, self._new_owner(demand, intent))
            return replace(wanted, request=ChangeRequest(f"move-{self._requests}", (move,)))
        edited = replace(wanted, manifest=wanted.manifest + 1)
        if demand.kind is DemandKind.PAIRS:
            return replace(edited, pairs=demand.amount)
        if demand.kind is DemandKind.SLOTS:
            return replace(edited, slots=demand.amount)
        return replace(edited, splits=demand.amount)

    def _new_owner(self, demand: Demand, intent: Intent) -> str:
        """The pair that a key is moved to; "" for the owner of its bucket."""
        key, pairs = demand.amount, target_generation(intent).pairs
        others = [pair.name for pair in pairs if key not in keys_of(pair.label, self._buckets)]
        moved = any(key in read_label(pair.label).won for pair in pairs)
        back = (moved and demand.choice % BACK_TO_BUCKET == 0) or not others
        return "" if back else others[demand.choice % len(others)]


class ChangePlan(NamedTuple):
    """What the user asks of pairs and keys, and how long that takes."""

    demands: tuple[Demand, ...] = ()
    copying: tuple[int, int] = COPIES[0]
    """Shortest and longest time that a holder takes to reduce its state, in milliseconds."""
    surge: int = 2
    timeout: int = 60_000
    until: int = 0
    """When the last change should be done."""


def draw_plan(rng: Random, pairs: int, keys: int) -> ChangePlan:
    """Draw changes of pairs and keys, each with time to be built, cut and retired.

    Some are soon replaced or taken back, and in some schedules the timeout is shorter than a copy.
    """
    count = rng.choice((0, 0, 0, 0, 0, 0, 1, 2, 2, 3))
    copying = rng.choice(COPIES)
    if copying == COPIES[-1]:
        count = min(count, 1)
    step = sum(copying) // 2 + BESIDES_COPYING
    demands: list[Demand] = []
    at = rng.randint(400, rng.choice((900, 900, 3000)))
    for left in reversed(range(count)):
        before = pairs
        if pairs > 1 and rng.random() < 0.3:  # noqa: PLR2004
            demands.append(Demand(at, DemandKind.KEY, rng.randrange(keys), rng.randrange(1000)))
        else:
            pairs = _other_size(rng, pairs)
            demands.append(Demand(at, DemandKind.PAIRS, pairs))
            if rng.random() < 0.08:  # noqa: PLR2004
                demands.append(Demand(at + rng.randint(200, 2500), DemandKind.PAIRS, before))
                pairs = before
        soon = left > 0 and rng.random() < 0.1  # noqa: PLR2004
        at += rng.randint(100, 3000) if soon else step * min(2, max(1, pairs - before))
    slow = rng.random() < 0.9  # noqa: PLR2004
    return ChangePlan(
        tuple(sorted(demands)),
        copying,
        surge=rng.choice((2, 3)),
        timeout=rng.choice((copying[1] + 10_000, 60_000)) if slow else 3000,
        until=at + TO_SPARE if count else 0,
    )


def _other_size(rng: Random, now: int) -> int:
    """Mostly one pair more or less: that takes one step."""
    near = [size for size in (now - 1, now + 1) if 1 <= size <= MOST_PAIRS]
    return rng.choice(near) if rng.random() < 0.7 else _other(rng, range(1, MOST_PAIRS + 1), now)  # noqa: PLR2004


def _other(rng: Random, sizes: Sequence[int], now: int) -> int:
    return rng.choice([size for size in sizes if size != now])


def draw_sizes(
    rng: Random, kind: DemandKind, now: int, sizes: tuple[int, ...], times: list[int]
) -> tuple[Demand, ...]:
    """Draw a size for each of these times, always another one than before."""
    demands = []
    for at in sorted(times):
        now = _other(rng, sizes, now)
        demands.append(Demand(at, kind, now))
    return tuple(demands)
