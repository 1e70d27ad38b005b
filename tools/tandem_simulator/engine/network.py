"""Simulates the network: messages are delayed, and some are lost, late or duplicated."""

from __future__ import annotations

from collections import Counter
from heapq import heappush
from random import Random
from typing import TYPE_CHECKING

from tandem_simulator.engine.configuration import QUIET, Noise

if TYPE_CHECKING:
    from tandem_simulator.engine.process import SimulatedProcess
    from tandem_simulator.engine.world import World

LATE = 3500
"""A late message arrives up to this many milliseconds after its time."""


class Network:
    """Links between volumes."""

    __slots__ = (
        "coverage",
        "cuts",
        "deaf",
        "lags",
        "mute",
        "noise",
        "odd",
        "random",
        "rng",
        "world",
    )

    def __init__(self, world: World, noise: Noise, rng: Random, coverage: Counter[str]) -> None:
        self.world = world
        self.rng = rng
        self.random = rng.random
        self.coverage = coverage
        self.noise = noise
        self.cuts: Counter[tuple[str, str]] = Counter()
        """Pairs of volumes (from, to) that are cut. Counted, since cuts may overlap."""
        self.mute: Counter[str] = Counter()
        """Volumes whose messages are all lost."""
        self.deaf: Counter[str] = Counter()
        """Volumes that no message reaches."""
        self.lags: dict[str, int] = {}
        """Extra delay of all messages to and from a volume."""
        self.odd = False
        """Whether any link is disturbed; if not, look-ups are skipped."""

    def refresh(self) -> None:
        """Update whether any link is disturbed."""
        self.cuts += Counter()
        self.mute += Counter()
        self.deaf += Counter()
        self.odd = bool(self.cuts or self.mute or self.deaf or self.lags)

    def heal(self) -> None:
        """Repair all links."""
        self.cuts.clear()
        self.mute.clear()
        self.deaf.clear()
        self.lags.clear()
        self.noise = QUIET
        self.odd = False

    def passes(self, sender: str, to: str) -> bool:
        """Whether messages pass on this link."""
        return not ((sender, to) in self.cuts or sender in self.mute or to in self.deaf)

    def transmit(self, process: SimulatedProcess, to: str, message: object) -> None:
        """Send a message."""
        world = self.world
        noise = self.noise
        chance = self.random()
        delay = 1 + int(chance * noise.spread)
        if self.odd:
            if not self.passes(process.volume, to):
                self.coverage["message cut off"] += 1
                return
            delay += self.lags.get(process.volume, 0) + self.lags.get(to, 0)
        if (trouble := self.random()) < noise.loss + noise.repeat + noise.late:
            delay = self._troubled(trouble, delay, process, to, message)
            if delay < 0:
                return
        world.sequence += 1
        heappush(
            world.heap,
            (world.now + delay, world.sequence, world.deliver, to, process.peer, message),
        )

    def _troubled(
        self, trouble: float, delay: int, process: SimulatedProcess, to: str, message: object
    ) -> int:
        """Lose, repeat or delay a message; return the delay, or -1 if it is lost."""
        noise = self.noise
        if trouble < noise.loss:
            self.coverage["message lost"] += 1
            return -1
        if trouble < noise.loss + noise.repeat:
            self.coverage["message repeated"] += 1
            again = delay + self.rng.randint(0, 800)
            self.world.after(again, self.world.deliver, to, process.peer, message)
            return delay
        self.coverage["message late, out of order"] += 1
        return delay + self.rng.randint(50, LATE)
