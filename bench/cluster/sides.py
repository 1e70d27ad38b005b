"""The sides that are compared, their faults and their load."""

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
    """A fault to inject."""

    KILL = "pod killed"
    FREEZE = "process frozen"
    DRAIN = "node drained"
    LEAD_DRAIN = "node drained with the lead"
    NODE = "node lost"
    LEAD_NODE = "node lost with the lead"

    @property
    def without_lead(self) -> "Fault":
        """The same fault, on a node without the lead and the active merge."""
        return {Fault.LEAD_DRAIN: Fault.DRAIN, Fault.LEAD_NODE: Fault.NODE}.get(self, self)

    @property
    def leaves_one_node(self) -> bool:
        """Whether all pods share a node afterwards, so that the next try needs a new pipeline."""
        return self not in {Fault.KILL, Fault.FREEZE}


@dataclass(frozen=True)
class Load:
    """The rate of rows, and the delivery interval."""

    keys: int
    rate: int
    interval_ms: int
    memory_mib: int
    """Memory of a whole driver."""

    @property
    def interval(self) -> float:
        """The interval of epochs or triggers, in seconds."""
        return self.interval_ms / 1000


class Ends:
    """Both ends of a run: the feeder of rows, and the outlet of results."""

    def __init__(self, space: Space, load: Load) -> None:
        place = space.shared / PLACE
        self.feeder = Feeder(place / "in", Rows(load.keys), load.rate, load.interval / 2)
        # Pods run as another user, so they create their directories themselves.
        place.chmod(0o777)
        self.output = place / "out"
        self.outlet = Outlet(self.output)


class Side(Protocol):
    """One way to run the query, in its own namespace."""

    ends: Ends

    def apply(self) -> None:
        """Start the query."""

    def await_whole(self) -> None:
        """Wait until all pods are ready.

        Raises:
            InVain: they are not within minutes.
        """

    def fail(self, fault: Fault) -> tuple[float, float]:
        """Inject a fault; return when it began and when all had recovered, in seconds since 1970.

        Raises:
            InVain: recovery takes too long.
        """
