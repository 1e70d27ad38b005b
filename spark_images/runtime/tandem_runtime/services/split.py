"""`python -m tandem_runtime.services.split`: reads sources, seals chunks, may lead."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable
from functools import partial

from tandem_core.contract.partitions import partitions_of
from tandem_core.contract.reports import LeadReport, SplitState, Trouble
from tandem_core.model.spec import Stream
from tandem_runtime.environment.interface import SplitEnvironment
from tandem_runtime.protocol.effects import Acknowledge, Pull, ReadRegister, Swap
from tandem_runtime.protocol.lead.summary import Summary, lead_report
from tandem_runtime.protocol.messages.peers import NewIntent, SplitsDiscovered
from tandem_runtime.protocol.split.split_machine import SplitMachine
from tandem_runtime.protocol.types import Member
from tandem_runtime.services.event_loop import EventLoop, milliseconds
from tandem_runtime.services.metrics import EPOCH_CUT, GENERATION, LANE_BYTES, LEADS
from tandem_runtime.services.partition_reader import Reader
from tandem_runtime.services.process import Process, main
from tandem_runtime.services.register_client import RegisterWorker
from tandem_runtime.sources.dead_letters import DeadLetters
from tandem_runtime.sources.factory import open_partition


class Intake:
    """The sources of a split; carries out `Pull` and `Acknowledge`."""

    def __init__(self, environment: SplitEnvironment, loop: EventLoop) -> None:
        self._loop = loop
        self._streams = {
            partition: stream
            for stream in environment.pipeline.spec.streams
            for partition in partitions_of(stream)
        }
        self._readers: dict[str, Reader] = {}
        self._dead_letters = {
            stream.name: DeadLetters(environment.dead_letters(stream.name), stream.name)
            for stream in environment.pipeline.spec.streams
        }

    def pull(self, effect: Pull) -> None:
        """Ask a partition for rows; it is opened when it is first asked."""
        reader = self._readers.get(effect.partition)
        if reader is None:
            reader = self._reader(effect.partition, self._streams[effect.partition])
            self._readers[effect.partition] = reader
        reader.pull(effect.position)

    def acknowledge(self, effect: Acknowledge) -> None:
        """Do nothing: files and generators keep all rows and need no acknowledgement."""

    def troubles(self, owned: Callable[[str], bool]) -> list[Trouble]:
        """The troubles of partitions that this split reads now; other splits may read the rest."""
        spots = [reader.spot for name, reader in dict(self._readers).items() if owned(name)]
        return [spot.trouble for spot in spots if spot.trouble is not None]

    def _reader(self, partition: str, stream: Stream) -> Reader:
        letters = self._dead_letters[stream.name]
        opened = partial(open_partition, stream, partition)
        return Reader(stream, partition, opened, letters, self._loop)


class SplitMonitor:
    """Reports the state of a split and, if it leads, of the pipeline."""

    def __init__(self, machine: SplitMachine, intake: Intake) -> None:
        self._machine = machine
        self._intake = intake
        self._cut: deque[tuple[int, int]] = deque(maxlen=256)
        """Epochs, and when each was first seen as cut."""
        LANE_BYTES.set_function(self._lane_bytes)
        LEADS.set_function(lambda: machine.succession.lead is not None)
        EPOCH_CUT.set_function(self._epoch_cut)
        GENERATION.set_function(self._generation)

    def _lane_bytes(self) -> int:
        lane = self._machine.lane
        return lane.size if lane is not None else 0

    def _reads(self, partition: str) -> bool:
        lane = self._machine.lane
        return lane is not None and lane.reads(partition)

    def _epoch_cut(self) -> int:
        lead = self._machine.succession.lead
        return lead.log_state.epoch if lead is not None else 0

    def _generation(self) -> int:
        lead = self._machine.succession.lead
        return lead.log_state.generation if lead is not None else 0

    def report(self) -> SplitState:
        """The split's part of `/state`. Read from another thread: values may be a step apart."""
        now = milliseconds()
        summary = self._machine.summary(now)
        return SplitState(
            lead=None if summary is None else self._lead(summary, now),
            troubles=tuple(self._intake.troubles(self._reads)),
            lane_bytes=self._lane_bytes(),
        )

    def _lead(self, summary: Summary, now: int) -> LeadReport:
        return lead_report(summary, self._lag(summary, now))

    def _lag(self, summary: Summary, now: int) -> float:
        """Seconds since the oldest undelivered epoch was cut."""
        if not self._cut or self._cut[-1][0] < summary.epoch:
            self._cut.append((summary.epoch, now))
        waiting = [at for epoch, at in tuple(self._cut) if epoch > summary.delivered]
        return round((now - waiting[0]) / 1000, 3) if waiting else 0.0


def run(process: Process[SplitEnvironment], _: argparse.Namespace) -> int:
    """Run a split until it is done."""
    volume, settings, environment = process.volume, process.settings, process.environment
    me = Member(process.name, volume.id, environment.node)
    machine = SplitMachine(me, volume.incarnation, volume.contents(), settings, milliseconds())
    listens_to = frozenset({SplitsDiscovered, NewIntent})
    loop = EventLoop(
        machine, volume, environment, process.post, settings, listens_to, machine.concerns
    )
    intake = Intake(environment, loop)
    register_worker = RegisterWorker(environment, loop)
    loop.lend(
        {
            Pull: intake.pull,
            Acknowledge: intake.acknowledge,
            Swap: register_worker.ask,
            ReadRegister: register_worker.ask,
        }
    )
    # Roll-outs and drains continue with the next split once this one is ready.
    process.serve(
        SplitMonitor(machine, intake).report, lambda: process.is_running() and not machine.at_risk
    )
    return process.run(loop)


if __name__ == "__main__":
    main("split", lambda _: None, run)
