"""Chooses the victims of faults: roles are resolved when a fault strikes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tandem_simulator.engine.process import MERGE, REPLICA, SPLIT, SimulatedPod, SimulatedProcess

if TYPE_CHECKING:
    from tandem_simulator.engine.world import World


class Victims:
    """The processes and pods involved in a script so far."""

    __slots__ = ("first", "it", "last", "lane_buddy")

    def __init__(self) -> None:
        self.it: SimulatedProcess | None = None
        """The process that triggered the present stage."""
        self.first: SimulatedPod | None = None
        """The pod that the first step struck."""
        self.last: SimulatedPod | None = None
        self.lane_buddy = ""

    def remember(self, process: SimulatedProcess) -> None:
        """Remember the victim of a step."""
        if self.first is None:
            self.first = process.pod
            self.lane_buddy = process.copies_to
        self.last = process.pod


def find(world: World, role: str, cast: Victims, pick: int) -> SimulatedProcess | None:
    """The running process that has a role."""
    found = _find(world, role, cast, pick)
    return found if found is not None and not found.dead else None


def _find(world: World, role: str, cast: Victims, pick: int) -> SimulatedProcess | None:
    if role in _VOLUMES:
        return world.by_volume.get(_VOLUMES[role](world, cast) or "")
    if role in _PROCESSES:
        return _PROCESSES[role](world, cast)
    kind = {"split": SPLIT, "replica": REPLICA, "merge": MERGE}.get(role, "")
    running = world.cluster.running(kind)
    return running[pick % len(running)] if running else None


def _twin(world: World, pod: SimulatedPod | None) -> SimulatedProcess | None:
    """The other replica of a pair."""
    if pod is None or pod.kind != REPLICA:
        return None
    return next((p.process for p in world.cluster.replicas(pod.group) if p is not pod), None)


def _merge_of(world: World, slot: int) -> SimulatedProcess | None:
    """The merge that delivers for a slot."""
    volume = world.chosen.get(slot, "")
    return world.by_volume.get(volume)


_VOLUMES: dict[str, Callable[[World, Victims], str | None]] = {
    "lead": lambda world, _: world.place.lead,
    "buddy": lambda world, _: world.place.buddy,
    "lane buddy": lambda _, cast: cast.it.copies_to if cast.it else None,
    "lane buddy of the first": lambda _, cast: cast.lane_buddy,
}
_PROCESSES: dict[str, Callable[[World, Victims], SimulatedProcess | None]] = {
    "it": lambda _, cast: cast.it,
    "merge of the ended slot": lambda world, _: _merge_of(world, world.ended_slot),
    "zombie": lambda world, _: world.cluster.zombies[-1] if world.cluster.zombies else None,
    "first": lambda _, cast: cast.first.process if cast.first else None,
    "twin": lambda world, cast: _twin(world, cast.it.pod if cast.it else None),
    "twin of the first": lambda world, cast: _twin(world, cast.first),
    "twin of that": lambda world, cast: _twin(world, cast.last),
}
