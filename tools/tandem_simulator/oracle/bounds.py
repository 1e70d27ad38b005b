"""Checks periodically that every volume keeps its bounds [12]."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.types import Chunk, LaneId
from tandem_simulator.oracle.violation import broken

if TYPE_CHECKING:
    from tandem_simulator.engine.process import Disk
    from tandem_simulator.engine.world import World

PERIOD = 1500
"""Milliseconds between two checks."""
CHECKPOINTS = 4
"""Most checkpoints that a replica may keep beyond those for undelivered epochs."""


class Bounds:
    """Counts what lies on volumes."""

    def __init__(self, world: World) -> None:
        self.world = world
        settings = world.settings
        self.most = {
            "outbox": settings.max_undelivered + 1,
            "checkpoint": settings.max_undelivered + CHECKPOINTS,
            "entry": 3 * settings.entries_before_snapshot + 24,
        }
        # A full lane stops reading; by then it has taken in at most one answer per partition
        # more than it has room for. A copy may be a trim point behind in forgetting.
        partitions = len(world.configuration.partitions)
        self.lane_bytes = settings.max_lane_bytes + settings.max_chunk_bytes + 50 * partitions

    def check(self, _a: object = None, _b: object = None, _c: object = None) -> None:
        """Check all volumes, and schedule the next check."""
        for pod in self.world.cluster.pods.values():
            if pod.process is not None:
                self._check_disk(pod.volume, pod.disk, _keeps_all(pod.process.machine))
        self.world.after(PERIOD, self.check)

    def _check_disk(self, volume: str, disk: Disk, keeps_all: bool) -> None:
        counts = Counter(key[0] for key in disk)
        for kind, most in self.most.items():
            if kind == "checkpoint" and keeps_all:
                continue
            if counts[kind] > most:
                broken(
                    12,
                    f"too-many-{kind}",
                    f"{volume} keeps {counts[kind]} of kind {kind}, the bound is {most}",
                    volume,
                    subject=volume,
                )
        if counts["chunk"]:
            self._check_lanes(volume, disk)

    def _check_lanes(self, volume: str, disk: Disk) -> None:
        sizes: Counter[LaneId] = Counter()
        for key, value in disk.items():
            if key[0] == "chunk":
                sizes[cast("LaneId", key[1])] += cast("Chunk", value).note.size
        lane, size = sizes.most_common(1)[0]
        most = self.lane_bytes if lane.split == volume else 2 * self.lane_bytes
        if size > most:
            broken(
                12,
                "lane-too-long",
                f"{volume} keeps {size} bytes of lane {lane}, the bound is {most}",
                volume,
                subject=volume,
            )


def _keeps_all(machine: object) -> bool:
    """Whether a replica keeps all its checkpoints for now.

    A new pair copies one, or it has started again and has yet to hear what it may forget.
    """
    if not isinstance(machine, ReplicaMachine):
        return False
    return bool(machine.pins) or machine.lead_discovery.version == (0, 0)
