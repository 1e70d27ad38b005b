"""Simulates Kubernetes, which works with or without an operator.

It restarts ended processes on their volumes, replaces lost pods by new ones with empty volumes, and
announces which splits exist and which volumes are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from tandem_runtime.protocol.merge.merge_machine import MergeMachine
from tandem_runtime.protocol.messages.peers import SparkUp, SplitsDiscovered, VolumeGone
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.protocol.split.split_machine import SplitMachine
from tandem_runtime.protocol.types import Definition, Member
from tandem_simulator.engine.process import (
    MERGE,
    REPLICA,
    SPLIT,
    Disk,
    SimulatedPod,
    SimulatedProcess,
)
from tandem_simulator.engine.trace import DETAIL, FAULT, TURN
from tandem_simulator.externals.shares import label_of, share_of

if TYPE_CHECKING:
    from tandem_simulator.engine.operator import SimulatedOperator
    from tandem_simulator.engine.world import World

ENDS_FOR_GOOD = frozenset({"retired", "completed", "left"})
"""Exit reasons after which a process is not restarted."""


def _checkpoints(disk: Disk) -> list[int]:
    """The epochs whose state the toy Spark has on a volume."""
    return [cast("int", key[1]) for key in disk if key[0] == "checkpoint"]


class Cluster:
    """All pods and their processes."""

    def __init__(self, world: World, operator: SimulatedOperator) -> None:
        self.world = world
        self.operator = operator
        self.pods: dict[str, SimulatedPod] = {}
        self.zombies: list[SimulatedProcess] = []
        self.kept: dict[str, Disk] = {}
        """Volumes of zombies: their pods are gone, but a process still writes to them."""
        self.gone: list[str] = []
        """Volumes that no longer exist, in the order they went."""
        self.nodes_down: set[str] = set()
        self.starts = 0
        self.next_split = 0
        self._taken_over: set[tuple[str, int]] = set()
        self._used_volumes: Counter[str] = Counter()
        """How many volumes removed pods had, by name: a volume's name is never used twice."""
        configuration = world.configuration
        for _ in range(configuration.splits):
            self.add_split()
        self.pairs: dict[str, str] = {}
        """Pairs that have workloads, with their labels; their pods may all have ended."""
        for pair, buckets in configuration.pairs:
            self.add_pair(pair, label_of(buckets))
        for slot in range(configuration.slots):
            self.add_slot(slot)

    # --- pods ---------------------------------------------------------------------------------

    def _add(self, name: str, kind: str, place: int) -> SimulatedPod:
        nodes = self.world.configuration.nodes
        pod = SimulatedPod(name, kind, nodes[place % len(nodes)])
        pod.volumes = self._used_volumes[name]
        pod.fresh_volume()
        self.pods[name] = pod
        return pod

    def add_split(self) -> None:
        """Add a split, under a name that no split has had."""
        pod = self._add(f"split-{self.next_split}", SPLIT, self.next_split)
        self.next_split += 1
        if self.world.now:
            self.start(pod)
            self.announce()

    def add_pair(self, pair: str, label: str) -> None:
        """Add the two replicas of a pair, on different nodes if there are several."""
        self.pairs[pair] = label
        first = len(self.pods)
        for number, letter in enumerate("ab"):
            pod = self._add(f"{pair}{letter}", REPLICA, first + number)
            pod.group = pair
            pod.label = label
            if self.world.now:
                self.world.after(self.world.rng.randint(20, 250), self.start, pod)

    def remove_pair(self, pair: str) -> None:
        """Remove the workload of a pair, with its pods."""
        del self.pairs[pair]
        for pod in self.replicas(pair):
            self.remove(pod)

    def add_slot(self, slot: int) -> None:
        """Add the two merges of a slot."""
        for number, letter in enumerate("ab"):
            pod = self._add(f"merge-{slot}{letter}", MERGE, number)
            pod.slot = slot
            if self.world.now:
                self.world.after(self.world.rng.randint(20, 250), self.start, pod)

    def remove_slot(self, slot: int) -> None:
        """Remove the merges of a slot."""
        for pod in self.merges(slot):
            self.remove(pod)

    def merges(self, slot: int) -> list[SimulatedPod]:
        """The existing pods of a merge slot."""
        return [p for p in self.pods.values() if p.kind == MERGE and p.slot == slot]

    def slots(self) -> set[int]:
        """Slots that have merges."""
        return {pod.slot for pod in self.pods.values() if pod.kind == MERGE}

    def replicas(self, pair: str) -> list[SimulatedPod]:
        """The existing pods of a pair."""
        return [p for p in self.pods.values() if p.kind == REPLICA and p.group == pair]

    def running(self, kind: str = "") -> list[SimulatedProcess]:
        """Running processes, without zombies."""
        return [
            pod.process
            for pod in self.pods.values()
            if pod.process is not None and (not kind or pod.kind == kind)
        ]

    def disks(self) -> Iterable[Disk]:
        """All existing volumes, including those of zombies."""
        for pod in self.pods.values():
            if not pod.removed:
                yield pod.disk
        yield from self.kept.values()

    # --- starting -----------------------------------------------------------------------------

    def start_all(self) -> None:
        """Start all processes, at slightly different times."""
        for pod in list(self.pods.values()):
            self.world.after(self.world.rng.randint(0, 300), self.start, pod)

    def start(self, pod: SimulatedPod, _b: object = None, _c: object = None) -> None:
        """Start a process on a pod's volume."""
        if pod.removed or pod.process is not None or pod.node in self.nodes_down:
            if pod.node in self.nodes_down and not pod.removed:
                self.world.after(300, self.start, pod)
            return
        if pod.born_as.difference(Definition(share=pod.label)):
            self._refuse_spare(pod)
            return
        world = self.world
        pod.incarnation += 1
        self.starts += 1
        skews = world.configuration.skews
        offset, rate = skews[self.starts % len(skews)]
        process = SimulatedProcess(pod, offset, rate)
        self._build(process, process.local(world.now))
        pod.process = process
        world.by_volume[pod.volume] = process
        if world.trace is not None:
            text = f"starts, incarnation {pod.incarnation}, on {pod.node}"
            world.trace.note(world.now, pod.volume, text, TURN)
        world.tick(process)
        self._welcome(process)

    def _refuse_spare(self, pod: SimulatedPod) -> None:
        """End a spare of another share, as its shell does before it touches any state."""
        self.world.coverage["spares of another share refused"] += 1
        self._renew(pod)
        self.world.after(self.world.rng.randint(100, 700), self.start, pod)

    def _build(self, process: SimulatedProcess, now: int) -> None:
        pod = process.pod
        settings = self.world.settings
        number = pod.incarnation
        if pod.kind == SPLIT:
            me = Member(pod.name, pod.volume, pod.node)
            process.machine = SplitMachine(me, number, pod.disk, settings, now)
        elif pod.kind == REPLICA:
            process.machine = ReplicaMachine(
                pod.volume,
                number,
                pod.group,
                share_of(pod.spare_of or pod.label),
                StoredReplica(
                    pod.disk,
                    _checkpoints(pod.disk),
                    self.operator.naming(pod.group),
                    pod.born_as,
                ),
                settings,
                now,
                booting=True,
            )
        else:
            sinks = tuple(name for name, _ in self.world.configuration.sinks)
            process.machine = MergeMachine(pod.volume, number, pod.slot, sinks, settings, now)

    def _welcome(self, process: SimulatedProcess) -> None:
        """Send a new process the current announcements, gone volumes first."""
        world = self.world
        if process.kind == SPLIT:
            for volume in self.gone:
                world.tell(process, None, VolumeGone(volume))
            self.operator.welcome(process)
        elif process.kind == REPLICA:
            world.after(self._boots(), world.tell, process, None, SparkUp())
        world.after(world.rng.randint(1, 150), self._tell_splits, process)

    def _boots(self) -> int:
        """How long Spark takes to start: zero, or several epochs."""
        rng = self.world.rng
        return rng.choice((0, rng.randint(1, 300), rng.randint(300, 3000)))

    # --- announcements ------------------------------------------------------------------------

    def members(self) -> tuple[Member, ...]:
        """The splits that exist now."""
        return tuple(
            Member(pod.name, pod.volume, pod.node)
            for pod in self.pods.values()
            if pod.kind == SPLIT and not pod.removed
        )

    def _tell_splits(self, process: SimulatedProcess, _b: object = None, _c: object = None) -> None:
        self.world.tell(process, None, SplitsDiscovered(self.members()))

    def announce(self) -> None:
        """Announce a changed set of splits to all processes, each after a delay."""
        world = self.world
        for process in self.running():
            world.after(world.rng.randint(5, 400), self._tell_splits, process)

    def repeat_announcements(self, _a: object = None, _b: object = None, _c: object = None) -> None:
        """Repeat all announcements periodically, so none stays lost."""
        world = self.world
        self.announce()
        for process in self.running(SPLIT):
            for volume in self.gone[-4:]:
                world.after(
                    world.rng.randint(5, 400), world.tell, process, None, VolumeGone(volume)
                )
        world.after(4000, self.repeat_announcements)

    def _volume_gone(self, volume: str) -> None:
        world = self.world
        self.gone.append(volume)
        for process in self.running(SPLIT):
            delay = world.rng.randint(20, 500)
            world.after(delay, world.tell, process, None, VolumeGone(volume))

    # --- ending -------------------------------------------------------------------------------

    def end(self, process: SimulatedProcess) -> None:
        """Remove a process; its memory is lost."""
        process.dead = process.halted = True
        process.inbox = []
        if process.pod.process is process:
            process.pod.process = None
        if self.world.by_volume.get(process.volume) is process:
            del self.world.by_volume[process.volume]

    def crash(self, process: SimulatedProcess, back_after: int) -> None:
        """Crash a process; its volume stays."""
        self.end(process)
        if process.zombie:
            self._bury(process)
        else:
            self.world.after(back_after, self.start, process.pod)

    def exited(self, process: SimulatedProcess, reason: str, *, wipe: bool) -> None:
        """Handle a process that has exited."""
        world = self.world
        if world.trace is not None:
            text = f"exits: {reason}{', its volume is of no use' if wipe else ''}"
            world.trace.note(world.now, process.volume, text, TURN)
        world.coverage[f"exit: {reason}"] += 1
        pod = process.pod
        self.end(process)
        if process.zombie:
            self._bury(process)
        elif reason in ENDS_FOR_GOOD:
            if reason != "completed":
                self.remove(pod)
            else:
                world.complete()
        else:
            if wipe or (reason == "stopped" and pod.kind != REPLICA):
                self._renew(pod)
            world.after(world.rng.randint(100, 700), self.start, pod)

    def _renew(self, pod: SimulatedPod) -> None:
        """Give a pod an empty volume; the old one is gone permanently."""
        old = pod.volume
        pod.fresh_volume()
        self._volume_gone(old)
        if pod.kind == SPLIT:
            self.announce()

    def destroy(self, pod: SimulatedPod, back_after: int, *, moves: bool = True) -> None:
        """Destroy a pod with its volume; a new one replaces it after a while."""
        if pod.process is not None:
            self.end(pod.process)
        if moves:
            pod.node = self._node_for(pod)
        self._renew(pod)
        self.world.after(back_after, self.start, pod)

    def abandon(self, pod: SimulatedPod, back_after: int) -> SimulatedProcess | None:
        """Replace a pod while its process keeps running: a zombie.

        The API server cannot reach its node, so the process cannot reach the register either.
        """
        process = pod.process
        if process is None:
            return None
        process.zombie = True
        self.zombies.append(process)
        self.kept[process.volume] = pod.disk
        self.world.register_cut.add(process.volume)
        pod.process = None
        pod.node = self._node_for(pod)
        self._renew(pod)
        self.world.after(back_after, self.start, pod)
        return process

    def _bury(self, zombie: SimulatedProcess) -> None:
        if zombie in self.zombies:
            self.zombies.remove(zombie)
        self.kept.pop(zombie.volume, None)

    def end_zombies(self) -> None:
        """End all zombies: their nodes are back, and the kubelet ends processes without a pod."""
        for zombie in list(self.zombies):
            if self.world.trace is not None:
                self.world.trace.note(self.world.now, zombie.volume, "the zombie ends", DETAIL)
            self.end(zombie)
            self._bury(zombie)

    def remove(self, pod: SimulatedPod) -> None:
        """Remove a pod that is no longer wanted, with its volume."""
        if pod.removed:
            return
        if pod.process is not None:
            self.end(pod.process)
        pod.removed = True
        self._used_volumes[pod.name] = pod.volumes
        del self.pods[pod.name]
        self._volume_gone(pod.volume)
        if pod.kind == SPLIT:
            self.announce()

    def _node_for(self, pod: SimulatedPod) -> str:
        """A node for a replacement: not its twin's if there is another."""
        nodes = [n for n in self.world.configuration.nodes if n not in self.nodes_down]
        others = {
            p.node
            for p in self.pods.values()
            if p is not pod and p.kind == pod.kind and p.group == pod.group and p.kind != SPLIT
        }
        free = [n for n in nodes if n not in others] or nodes or [pod.node]
        return self.world.rng.choice(free)

    def node_back(self, node: str, _b: object = None, _c: object = None) -> None:
        """Bring a node back, without pods."""
        self.nodes_down.discard(node)

    # --- coverage -----------------------------------------------------------------------------

    def answered(self, process: SimulatedProcess, pair: str, epoch: int) -> None:
        """Count a failover: a replica answers while its twin is down."""
        if (pair, epoch) in self._taken_over:
            return
        for pod in self.replicas(pair):
            if pod.process is not process and (pod.process is None or pod.process.frozen):
                self._taken_over.add((pair, epoch))
                self.world.coverage["take-overs"] += 1
                if self.world.trace is not None:
                    text = f"answers for {pair}, epoch {epoch}, alone"
                    self.world.trace.note(self.world.now, process.volume, text, DETAIL, epoch)

    def note_fault(self, what: str, who: str = "") -> None:
        """Add a fault to the trace."""
        if self.world.trace is not None:
            self.world.trace.note(self.world.now, who or "fault", what, FAULT)
