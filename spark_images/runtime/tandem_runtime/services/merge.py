"""`python -m tandem_runtime.services.merge`: delivers each epoch once, or stands by."""

from __future__ import annotations

import argparse
import logging
import queue
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from tandem_core.contract.reports import MergeState, SinkReport, Trouble
from tandem_core.model.spec import ConsoleSink, FilesSink, SinkSpec
from tandem_core.model.states import EventReason, SinkClass
from tandem_runtime.environment.interface import Environment
from tandem_runtime.protocol.effects import Deliver, ReadPosition, SealSlot, SurveySink
from tandem_runtime.protocol.merge.merge_machine import MergeMachine
from tandem_runtime.protocol.messages.peers import SinkPosition, SinkSurveyed
from tandem_runtime.services.event_loop import EventLoop, Failure, milliseconds
from tandem_runtime.services.health import HealthCheck
from tandem_runtime.services.metrics import EPOCH_DELIVERED, ROWS_OUT, SINK_FAILURES
from tandem_runtime.services.process import Process, main
from tandem_runtime.sinks.base import ForeignSink, Sink, SinkFailed, SinkUnsupported, SlotPosition
from tandem_runtime.sinks.factory import furthest_epoch, open_sink
from tandem_runtime.sinks.pod_log import PrintedSink

_log = logging.getLogger(__name__)

Question = ReadPosition | Deliver | SealSlot | SurveySink


class Outlet:
    """One sink, with a thread of its own that handles one request at a time."""

    def __init__(
        self, name: str, opened: Callable[[int], Sink], furthest: Callable[[], int], loop: EventLoop
    ) -> None:
        """`opened` opens the sink for a slot that begins with the given epoch.

        `furthest` returns the last epoch that it has of any slot.
        """
        self.position = 0
        self.rows_out = 0
        self.delivery: SinkClass | None = None
        """The delivery guarantee of the sink, once it is open."""
        self.spot = HealthCheck(loop.tell_event)
        self._name = name
        self._opened = opened
        self._furthest = furthest
        self._loop = loop
        self._sink: Sink | None = None
        self._first = 1
        self._work: queue.SimpleQueue[Question] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"sink {name}", daemon=True).start()

    def ask(self, effect: Question) -> None:
        """Queue a request; requests are handled in order."""
        self._work.put(effect)

    def _run(self) -> None:
        while True:
            effect = self._work.get()
            try:
                answer = self._answer(effect)
            except (ForeignSink, SinkUnsupported) as problem:
                self._loop.fail(Failure(type(problem).__name__, str(problem), ""))
                return
            except SinkFailed as failure:
                # No answer: the machine asks for the position again, then delivers again.
                SINK_FAILURES.labels(self._name).inc()
                self.spot.failed(
                    Trouble(EventReason.SINK_FAILED, self._name, str(failure), failure.hint)
                )
            except Exception as problem:  # noqa: BLE001 - logged, and ends the process
                _log.exception("sink %s failed", self._name)
                self._loop.fail(Failure(type(problem).__name__, str(problem), "", final=False))
                return
            else:
                self.spot.worked()
                self._loop.tell(answer)

    def _answer(self, effect: Question) -> SinkPosition | SinkSurveyed:
        if isinstance(effect, SurveySink):
            return SinkSurveyed(self._name, effect.term, self._furthest())
        standing = self._done(effect)
        return SinkPosition(
            sink=self._name,
            position=standing.position,
            op=effect.op,
            slot=effect.slot,
            sealed=standing.sealed,
        )

    def _done(self, effect: ReadPosition | Deliver | SealSlot) -> SlotPosition:
        """Carry out a request. `ReadPosition`, which comes first, names the slot's first epoch."""
        if isinstance(effect, ReadPosition):
            self._first = effect.first
        sink = self._sink = self._sink or self._opened(self._first)
        if isinstance(effect, SealSlot):
            return sink.seal(effect.slot, effect.first, effect.last)
        if isinstance(effect, ReadPosition):
            self.position = sink.position()
        else:
            tables = [(pair, _table(payload)) for pair, payload in effect.answers]
            before = sink.rows_out
            self.position = sink.deliver(effect.epoch, tables, shared=effect.shared)
            ROWS_OUT.labels(self._name).inc(max(sink.rows_out - before, 0))
        self.rows_out = sink.rows_out
        self.delivery = sink.delivery
        return SlotPosition(position=self.position, sealed=sink.sealed)


def _table(payload: object) -> Any:
    return pa.ipc.open_stream(cast("Any", payload)).read_all()


class Delivery:
    """The sinks of a merge; carries out `ReadPosition`, `Deliver`, `SealSlot`, `SurveySink`."""

    def __init__(self, environment: Environment, machine: MergeMachine, loop: EventLoop) -> None:
        self._loop = loop
        self._machine = machine
        self._places = {sink.name: _place(sink) for sink in environment.pipeline.spec.sinks}
        self.outlets = {
            sink.name: Outlet(
                sink.name,
                partial(_opened, sink, environment, machine),
                partial(_furthest, sink, environment, machine),
                loop,
            )
            for sink in environment.pipeline.spec.sinks
        }

    def ask(self, effect: Question) -> None:
        """Pass a request on to its sink."""
        self.outlets[effect.sink].ask(effect)

    def troubles(self) -> list[Trouble]:
        """The troubles of the sinks; none while another merge of the slot delivers."""
        if not self._machine.active:
            return []
        failing = [outlet.spot.trouble for outlet in self.outlets.values()]
        rewound = [
            Trouble(
                EventReason.SINK_REWOUND,
                tracker.name,
                f"{self._places[tracker.name]} is at epoch "
                f"{self.outlets[tracker.name].position}, expected at least {tracker.floor}",
                f"restore content that reaches epoch {tracker.floor} or later, then delete the pod "
                "of the active merge, which `tandem status` shows (with `tandem run`: kill it)",
            )
            for tracker in self._machine.sinks.values()
            if tracker.rewound
        ]
        return [trouble for trouble in failing if trouble is not None] + rewound


def _place(sink: SinkSpec) -> str:
    return sink.target.path if isinstance(sink.target, FilesSink) else "it"


def _opened(sink: SinkSpec, environment: Environment, machine: MergeMachine, first: int) -> Sink:
    """Open a sink for the merge's slot; see `open_sink`."""
    shown = environment.shown()
    if shown is None and isinstance(sink.target, ConsoleSink):
        return PrintedSink(sys.stdout.buffer, lambda: machine.recorded, lambda: machine.everywhere)
    return open_sink(sink, environment.uid, shown or Path(), machine.slot, first)


def _furthest(sink: SinkSpec, environment: Environment, machine: MergeMachine) -> int:
    """The last epoch that a sink has; for the standard output, the last one recorded."""
    shown = environment.shown()
    if shown is None and isinstance(sink.target, ConsoleSink):
        return machine.recorded
    return furthest_epoch(sink, environment.uid, shown or Path())


class MergeMonitor:
    """Reports the state of a merge."""

    def __init__(self, machine: MergeMachine, delivery: Delivery) -> None:
        self._machine = machine
        self._delivery = delivery
        EPOCH_DELIVERED.set_function(lambda: machine.delivered)

    def report(self) -> MergeState:
        """The merge's part of `/state`."""
        machine, outlets = self._machine, self._delivery.outlets
        return MergeState(
            active=machine.active,
            delivered=machine.delivered,
            rows_out=sum(outlet.rows_out for outlet in outlets.values()),
            duplicates_dropped=machine.duplicates_dropped,
            sinks=tuple(
                SinkReport(name=name, delivery=outlet.delivery, position=outlet.position)
                for name, outlet in outlets.items()
                if outlet.delivery is not None
            ),
            troubles=tuple(self._delivery.troubles()),
            slot=machine.slot,
        )


def run(process: Process[Environment], arguments: argparse.Namespace) -> int:
    """Run a merge until it is done."""
    volume, settings, environment = process.volume, process.settings, process.environment
    sinks = tuple(sink.name for sink in environment.pipeline.spec.sinks)
    machine = MergeMachine(
        volume.id, volume.incarnation, arguments.slot, sinks, settings, milliseconds()
    )
    loop = EventLoop(machine, volume, environment, process.post, settings)
    delivery = Delivery(environment, machine, loop)
    loop.lend(
        {
            ReadPosition: delivery.ask,
            Deliver: delivery.ask,
            SealSlot: delivery.ask,
            SurveySink: delivery.ask,
        }
    )
    process.serve(MergeMonitor(machine, delivery).report, process.is_running)
    return process.run(loop)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slot", type=int, required=True, help="which part it delivers")


if __name__ == "__main__":
    main("merge", _arguments, run)
