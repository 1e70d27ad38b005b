"""The world of a schedule: one event queue, the processes, and their environment.

The loop is optimised: events are plain tuples, effects are dispatched by type, and texts are
formatted only for a trace.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from tandem_core.model.lifecycle import IllegalMove
from tandem_runtime.protocol.types import NOBODY, Peer, RegisterState
from tandem_simulator.engine import effect_executor
from tandem_simulator.engine.configuration import Configuration, stream
from tandem_simulator.engine.network import Network
from tandem_simulator.engine.process import SimulatedProcess
from tandem_simulator.engine.trace import Trace
from tandem_simulator.externals.sinks import SimulatedSink
from tandem_simulator.externals.sources import Source
from tandem_simulator.faults.triggers import TriggerWatch, label_of
from tandem_simulator.oracle.ledger import Ledger
from tandem_simulator.oracle.violation import BrokenError, Violation

if TYPE_CHECKING:
    from tandem_runtime.protocol.effects import Effect
    from tandem_simulator.engine.cluster import Cluster

Event = tuple[int, int, Callable[..., None], object, object, object]

INBOX = 150
"""Messages that a frozen process's buffers hold; further ones are lost."""


class Disturbances:
    """What faults have done to a world; a base of `World`, since its loop reads these often."""

    def __init__(self) -> None:
        self.register_cut: set[str] = set()
        """Volumes that cannot reach the register."""
        self.trouble = 1.0
        """Probability factor for lost requests to register and sinks; 0 once faults are over."""
        self.corrupt: set[str] = set()
        """Volumes whose next result a fault corrupts."""
        self.slow_swaps: set[str] = set()
        """Volumes whose next swap takes long."""
        self.lost_replies: set[str] = set()
        """Volumes whose next answer from the register is lost."""
        self.went_beyond = False
        """Whether a fault has exceeded what the design survives."""


class World(Disturbances):
    """State of one schedule while it runs."""

    def __init__(self, configuration: Configuration, trace: Trace | None) -> None:
        super().__init__()
        seed, number = configuration.seed, configuration.number
        self.configuration = configuration
        self.settings = configuration.settings
        self.trace = trace
        self.now = 0
        self.sequence = 0
        self.heap: list[Event] = []
        self.messages = 0
        self.faults = 0
        self.coverage: Counter[str] = Counter()
        self.ledger = Ledger(configuration)
        self.rng = stream(seed, number, "world")
        self.network = Network(
            self, configuration.noise, stream(seed, number, "network"), self.coverage
        )
        self.watch = TriggerWatch()
        self.by_volume: dict[str, SimulatedProcess] = {}
        self.place: RegisterState = NOBODY
        self.swaps_under_way: list[tuple[str, int, RegisterState]] = []
        """Author, expected version and content of swaps that may still take effect."""
        self.sources = {p.name: Source(p) for p in configuration.partitions}
        self.sinks = {
            name: SimulatedSink(name, transactional=transactional, ledger=self.ledger)
            for name, transactional in configuration.sinks
        }
        self.stream_of = [p.stream for p in configuration.partitions]
        self.cluster: Cluster
        self.latecomers: set[str] = set()
        """Volumes that brought headers of an older history to a muster."""
        self.chosen: dict[int, str] = {}
        """Volume of the merge that was chosen last, by slot."""
        self.delivered_generation = 0
        """The newest generation of which a sink has anything."""
        self.ended_slot = -1
        """The merge slot that was ended last."""
        self.violation: Violation | None = None
        self.stop = False

    # --- events -------------------------------------------------------------------------------

    def after(
        self,
        delay: int,
        action: Callable[..., None],
        a: object = None,
        b: object = None,
        c: object = None,
    ) -> None:
        """Schedule an action after a delay."""
        self.sequence += 1
        heappush(self.heap, (self.now + delay, self.sequence, action, a, b, c))

    def run(self) -> None:
        """Run all events in order, until the schedule ends."""
        heap = self.heap
        try:
            while heap and not self.stop:
                event = heappop(heap)
                self.now = event[0]
                event[2](event[3], event[4], event[5])
        except BrokenError as error:
            self.violation = error.violation._replace(time=self.now)
        except IllegalMove as error:
            self.violation = Violation(
                0, "illegal-move", str(error), subject=str(error.subject), time=self.now
            )
        except Exception as error:  # noqa: BLE001 - any error of a machine is a finding
            last = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{last.filename.rpartition('/')[2]}:{last.lineno} in {last.name}"
            self.violation = Violation(
                0,
                f"error-{type(error).__name__}",
                f"{type(error).__name__}: {error} at {at}\n{traceback.format_exc()}",
                time=self.now,
            )

    # --- processes ----------------------------------------------------------------------------

    def deliver(self, volume: str, sender: Peer | None, message: object) -> None:
        """Deliver a message to the process that runs on a volume now."""
        process = self.by_volume.get(volume)
        if process is None:
            return
        if process.halted:
            self.tell(process, sender, message)
            return
        self.messages += 1
        now = self.now + process.offset if process.steady else process.local(self.now)
        effects = process.machine.handle(now, sender, message)
        if effects:
            self.apply(process, effects)

    def tell(self, process: SimulatedProcess, sender: Peer | None, message: object) -> None:
        """Deliver a message to a process."""
        if process.halted:
            if not process.dead:
                self._keep(process, sender, message)
            return
        self.messages += 1
        effects = process.machine.handle(process.local(self.now), sender, message)
        if effects:
            self.apply(process, effects)

    def _keep(self, process: SimulatedProcess, sender: Peer | None, message: object) -> None:
        if sender is None or len(process.inbox) < INBOX:
            process.inbox.append((self.tell, (process, sender, message)))
        else:
            self.coverage["message lost, buffers full"] += 1

    def tick(self, process: SimulatedProcess, _b: object = None, _c: object = None) -> None:
        """Let time pass for a process."""
        if process.dead:
            return
        if not process.frozen:
            effects = process.machine.tick(process.local(self.now))
            if effects:
                self.apply(process, effects)
        pause = self.settings.beat
        self.after(pause - 20 + int(self.rng.random() * 40), self.tick, process)

    def apply(self, process: SimulatedProcess, effects: list[Effect]) -> None:
        """Carry out effects in order; a fault may occur between any two."""
        if self.watch.armed:
            self._apply_watched(process, effects)
            return
        handlers = effect_executor.HANDLERS
        for effect in effects:
            handlers[type(effect)](self, process, effect)
            if process.halted:
                return

    def _apply_watched(self, process: SimulatedProcess, effects: list[Effect]) -> None:
        armed = self.watch.armed
        occur = self.watch.occur
        for index, effect in enumerate(effects):
            label = label_of(effect)
            if label in armed:
                occur(label, process, effect, before=True)
                if process.halted:
                    self._keep_rest(process, effects[index:])
                    return
            effect_executor.HANDLERS[type(effect)](self, process, effect)
            if label in armed:
                occur(label, process, effect, before=False)
            if process.halted:
                self._keep_rest(process, effects[index + 1 :])
                return

    def _keep_rest(self, process: SimulatedProcess, effects: list[Effect]) -> None:
        """Keep the remaining effects of a process that froze until it resumes."""
        if effects and not process.dead:
            process.inbox.insert(0, (self.apply, (process, effects)))

    def in_process(
        self, process: SimulatedProcess, action: Callable[..., None], argument: object
    ) -> None:
        """Finish an action inside a process: never if it died, later if it is frozen."""
        if process.dead:
            return
        if process.frozen:
            process.inbox.append((action, (self, process, argument)))
        else:
            action(self, process, argument)

    def freeze(self, process: SimulatedProcess) -> None:
        """Freeze a process (SIGSTOP)."""
        process.frozen = process.halted = True

    def thaw(self, process: SimulatedProcess) -> None:
        """Resume a process: first its pending effects, then the messages that came meanwhile."""
        if process.dead or not process.frozen:
            return
        process.frozen = process.halted = False
        process.thawed_at = self.now
        waiting, process.inbox = process.inbox, []
        for position, (action, arguments) in enumerate(waiting):
            if process.halted:
                process.inbox.extend(waiting[position:])
                return
            action(*arguments)

    def fault(self, kind: str) -> None:
        """Count an injected fault."""
        self.faults += 1
        self.coverage[f"fault: {kind}"] += 1

    def complete(self) -> None:
        """Note that the pipeline reports completion."""
        self.ledger.finish()
        self.stop = True

    def occur(self, label: str, process: SimulatedProcess | None, what: object = None) -> None:
        """Report a moment that faults may wait for."""
        if label in self.watch.armed:
            self.watch.occur(label, process, what, before=False)
