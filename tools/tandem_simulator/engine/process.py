"""Simulated pods, their volumes, and the processes that run on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tandem_runtime.protocol.types import Definition, Peer

if TYPE_CHECKING:
    from tandem_runtime.protocol.effects import Effect, Key
    from tandem_runtime.protocol.messages.peers import SplitReport
    from tandem_simulator.externals.spark import ToyState

SPLIT, REPLICA, MERGE = "split", "replica", "merge"


class SimulatedMachine(Protocol):
    """The interface of a simulated state machine."""

    def handle(self, now: int, sender: Peer | None, message: object) -> list[Effect]:
        """Handle a message."""

    def tick(self, now: int) -> list[Effect]:
        """Handle the passage of time."""


Disk = dict["Key", object]

Deferred = tuple[Callable[..., None], tuple[object, ...]]
"""An action that a frozen process performs when it resumes."""


class SimulatedPod:
    """A pod, whose processes run one after the other, mostly on the same volume."""

    __slots__ = (
        "disk",
        "group",
        "incarnation",
        "kind",
        "label",
        "leaving",
        "name",
        "node",
        "process",
        "removed",
        "slot",
        "spare_of",
        "volume",
        "volumes",
    )

    def __init__(self, name: str, kind: str, node: str) -> None:
        self.name = name
        self.kind = kind
        self.node = node
        self.group = ""
        """The pair, for a replica."""
        self.label = ""
        """The share of its pair."""
        self.slot = 0
        self.volumes = 0
        self.volume = ""
        self.disk: Disk = {}
        self.incarnation = 0
        self.process: SimulatedProcess | None = None
        self.removed = False
        """Whether it is no longer restarted."""
        self.leaving = False
        self.spare_of = ""
        """The share that a spare in its place was started for."""

    @property
    def born_as(self) -> Definition:
        """What a replica on its volume is, for good."""
        return Definition(share=self.spare_of or self.label)

    def fresh_volume(self) -> None:
        """Replace the volume by an empty one with a new name."""
        self.spare_of = ""
        self.volumes += 1
        self.volume = f"{self.name}.{self.volumes}"
        self.disk = {}
        self.incarnation = 0


class SimulatedProcess:
    """One process on a volume. The fast path checks `halted`."""

    __slots__ = (
        "batch",
        "clock",
        "copies_to",
        "dead",
        "disk",
        "frozen",
        "halted",
        "inbox",
        "kind",
        "lost",
        "machine",
        "offset",
        "peer",
        "pod",
        "rate",
        "reducing",
        "report",
        "slowness",
        "steady",
        "thawed_at",
        "volume",
        "zombie",
    )

    def __init__(self, pod: SimulatedPod, offset: int, rate: int) -> None:
        self.pod = pod
        self.kind = pod.kind
        self.volume = pod.volume
        self.disk = pod.disk
        self.peer = Peer(pod.volume, pod.incarnation)
        self.machine: SimulatedMachine
        self.halted = False
        self.dead = False
        self.frozen = False
        self.thawed_at = -1
        self.zombie = False
        """Whether its pod has been replaced while it still runs."""
        self.inbox: list[Deferred] = []
        self.lost = 0
        """Messages that were lost while it was frozen and its buffers were full."""
        self.offset = offset
        self.rate = rate
        """How much faster its clock runs, per mille."""
        self.steady = rate == 0
        """Whether its clock has an offset only; the fast path checks this."""
        self.clock: tuple[int, int] | None = None
        """True and local time when the rate last changed."""
        self.batch: tuple[int, ToyState | None] | None = None
        """The epoch that Spark is processing, and the state it will commit."""
        self.slowness = 1
        self.report: SplitReport | None = None
        """The last report of a split to the lead."""
        self.reducing: set[str] = set()
        """The joiners whose share of its state is being reduced."""
        self.copies_to = ""
        """The volume that its chunks were last copied to."""

    def local(self, now: int) -> int:
        """The time on the process's own clock."""
        if self.clock is None:
            return now + self.offset + now * self.rate // 1000
        true, local = self.clock
        return local + (now - true) * (1000 + self.rate) // 1000

    def skew(self, now: int, rate: int, jump: int) -> None:
        """Change the clock's rate from now on, after a jump forward."""
        self.clock = (now, self.local(now) + jump)
        self.rate = rate
        self.steady = False
