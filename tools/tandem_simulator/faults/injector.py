"""Executes scripts: waits for their moments, chooses the victims, and injects the faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tandem_simulator.engine.process import SimulatedProcess
from tandem_simulator.faults import destruction, disturbance, victims
from tandem_simulator.faults.fault_budget import FaultBudget
from tandem_simulator.faults.scripts import FaultStep, Script
from tandem_simulator.faults.triggers import Trigger
from tandem_simulator.faults.victims import Victims

if TYPE_CHECKING:
    from tandem_simulator.engine.world import World

RETRIES = 4
"""How often a fault that would exceed the budget is retried, a little later."""

STRIKES: dict[str, Callable[[Injector, FaultStep, Victims], bool]] = {
    **destruction.KINDS,
    **disturbance.KINDS,
}


class Injector:
    """All faults of a schedule."""

    def __init__(self, world: World, scripts: tuple[Script, ...], skip: frozenset[int]) -> None:
        self.world = world
        self.scripts = scripts
        self.skip = skip
        """Steps that are left out, to see whether they matter."""
        self.guard = FaultBudget(world)
        self.over = False

    def begin(self) -> None:
        """Wait for the first stage of every script."""
        for script in self.scripts:
            self._await(script, 0, Victims())

    def _await(self, script: Script, index: int, cast: Victims) -> None:
        stage = script.stages[index]
        moment = stage.moment
        if moment is None:
            self.world.after(stage.wait, self._timed, script, index, cast)
            return

        def fire(process: SimulatedProcess | None, _: object) -> None:
            self._strike(script, index, cast, process)

        def suits(process: SimulatedProcess | None, role: str) -> bool:
            return process is not None and self.find(role, cast, 0) is process

        self.world.watch.arm(Trigger(moment, suits, fire))

    def _timed(self, script: Script, index: int, cast: Victims) -> None:
        self._strike(script, index, cast, None)

    def _strike(
        self, script: Script, index: int, cast: Victims, process: SimulatedProcess | None
    ) -> None:
        if self.over:
            return
        cast.it = process or cast.it
        for step in script.stages[index].steps:
            if step.number in self.skip:
                continue
            if step.delay:
                self.world.after(step.delay, self._take, step, cast, RETRIES)
            else:
                self._take(step, cast, RETRIES)
        if index + 1 < len(script.stages):
            self._await(script, index + 1, cast)

    def _take(self, step: FaultStep, cast: Victims, tries: int) -> None:
        if self.over or self.world.stop:
            return
        if STRIKES[step.kind](self, step, cast):
            self.world.fault(step.kind)
        elif tries > 0 and step.kind in destruction.WORTH_WAITING:
            self.world.after(120, self._take, step, cast, tries - 1)

    def find(self, role: str, cast: Victims, pick: int) -> SimulatedProcess | None:
        """The process that has a role now."""
        return victims.find(self.world, role, cast, pick)

    def target(self, step: FaultStep, cast: Victims) -> SimulatedProcess | None:
        """The victim of a step; the script remembers it."""
        found = self.find(step.target, cast, step.amount)
        if found is not None:
            cast.remember(found)
        return found

    def note(self, process: SimulatedProcess, what: str) -> None:
        """Add a fault to the trace."""
        self.world.cluster.note_fault(what, process.volume)

    def end(self) -> None:
        """End all faults: processes resume, links are repaired, lost nodes return."""
        self.over = True
        self.world.watch.disarm_all()
        disturbance.end_all(self.world)
        destruction.end_all(self.world)
