"""What the user asks for while a pipeline runs: sizes in the manifest, and keys moved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tandem.policy.change.steps import target_generation
from tandem.policy.change.wanted import Wanted
from tandem_core.contract.intent import ChangeRequest, Intent, KeyMove
from tandem_core.model.states import Word
from tandem_simulator.externals.shares import keys_of

if TYPE_CHECKING:
    from tandem_simulator.engine.configuration import Configuration

MOST_PAIRS = 5
BACK_TO_BUCKET = 5
"""One key in this many is moved back to the owner of its bucket."""


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
        asked = (*configuration.changes, *configuration.resizes, *configuration.scalings)
        self._left = sorted(asked)
        self._requests = 0
        self._buckets = configuration.buckets
        self.wanted = Wanted(
            pairs=len(configuration.pairs),
            splits=configuration.splits,
            slots=configuration.slots,
            max_surge=configuration.surge,
            timeout_ms=configuration.timeout,
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
        others = [
            pair.name
            for pair in target_generation(intent).pairs
            if demand.amount not in keys_of(pair.label, self._buckets)
        ]
        back = demand.choice % BACK_TO_BUCKET == 0 or not others
        return "" if back else others[demand.choice % len(others)]


def draw_changes(rng: Random, count: int, pairs: int, keys: int) -> tuple[Demand, ...]:
    """Draw changes of pairs and keys.

    Most have time to finish before the next one; some are soon replaced or taken back.
    """
    demands: list[Demand] = []
    at = rng.randint(400, rng.choice((900, 900, 3000)))
    for _ in range(count):
        if rng.random() < 0.3:  # noqa: PLR2004
            demands.append(Demand(at, DemandKind.KEY, rng.randrange(keys), rng.randrange(1000)))
        else:
            before, pairs = pairs, _other(rng, range(1, MOST_PAIRS + 1), pairs)
            demands.append(Demand(at, DemandKind.PAIRS, pairs))
            if rng.random() < 0.1:  # noqa: PLR2004
                pairs = before
                demands.append(Demand(at + rng.randint(200, 2500), DemandKind.PAIRS, pairs))
        soon = rng.random() < 0.15  # noqa: PLR2004
        at += rng.randint(100, 1500) if soon else rng.randint(2500, 5000)
    return tuple(sorted(demands))


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
