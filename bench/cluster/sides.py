"""What is measured, whoever runs the query, and what is done to it."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from bench.streaming.deliveries import Outlet
from bench.streaming.feeder import Feeder
from bench.streaming.rows import Rows

from cluster.trial.space import MOUNT, Space

PLACE = "run"
"""The directory of a run, in the storage that pods and this machine share."""
IN_PODS = Path(MOUNT, PLACE)
FROZEN_SECONDS = 20.0
START_SECONDS = 300.0
RECOVERY_SECONDS = 300.0


class Fault(Enum):
    """What goes wrong."""

    KILL = "pod killed"
    FREEZE = "process frozen"
    DRAIN = "node drained"
    LEAD_DRAIN = "node drained with the lead"
    NODE = "node lost"
    LEAD_NODE = "node lost with the lead"

    @property
    def without_lead(self) -> "Fault":
        """The same where the node has neither the lead nor the active merge."""
        return {Fault.LEAD_DRAIN: Fault.DRAIN, Fault.LEAD_NODE: Fault.NODE}.get(self, self)

    @property
    def leaves_one_node(self) -> bool:
        """Whether everybody is on one node afterwards, so that the next try begins anew."""
        return self not in {Fault.KILL, Fault.FREEZE}


@dataclass(frozen=True)
class Load:
    """How much comes, and how often it is delivered."""

    keys: int
    rate: int
    interval_ms: int
    memory_mib: int
    """Of a whole driver."""

    @property
    def interval(self) -> float:
        """Of an epoch or a trigger, in seconds."""
        return self.interval_ms / 1000


class Ends:
    """Both ends of a run: rows that are fed, and results that come out."""

    def __init__(self, space: Space, load: Load) -> None:
        place = space.shared / PLACE
        self.feeder = Feeder(place / "in", Rows(load.keys), load.rate, load.interval / 2)
        # Pods are not this user, and make their directories themselves.
        place.chmod(0o777)
        self.output = place / "out"
        self.outlet = Outlet(self.output)


class Side(Protocol):
    """One way to run the query in a namespace of its own."""

    ends: Ends

    def apply(self) -> None:
        """Have it started."""

    def await_whole(self) -> None:
        """Wait until everybody is there.

        Raises:
            InVain: they are not within minutes.
        """

    def fail(self, fault: Fault) -> tuple[float, float]:
        """Let it fail; when that began and when all was whole again, in seconds since 1970.

        Raises:
            InVain: it is not within minutes.
        """
