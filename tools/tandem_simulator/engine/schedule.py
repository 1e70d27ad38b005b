"""Runs one schedule; a seed and a number always give the same outcome."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from typing import NamedTuple

from tandem_simulator.campaign import seeded_bugs
from tandem_simulator.campaign.waiting import who_waits
from tandem_simulator.engine.cluster import Cluster
from tandem_simulator.engine.configuration import Configuration, configure, stream
from tandem_simulator.engine.operator import ROUND, SimulatedOperator
from tandem_simulator.engine.trace import Trace
from tandem_simulator.engine.watchdog import watchdog
from tandem_simulator.engine.world import World
from tandem_simulator.faults.fault_generator import draw
from tandem_simulator.faults.injector import Injector
from tandem_simulator.oracle.bounds import Bounds
from tandem_simulator.oracle.violation import Violation, broken

TIME_TO_FINISH = 30_000
"""Milliseconds after the last fault within which the pipeline has to complete."""
COPIES_TO_FINISH = 3
"""It may have to wait for this many copies, one after the other, if they take long."""


class ScheduleOutcome(NamedTuple):
    """The outcome of a schedule."""

    seed: int
    number: int
    violation: Violation | None
    messages: int
    faults: int
    coverage: Counter[str]
    duration: int
    """Simulated milliseconds."""
    after_faults: int
    """Simulated milliseconds from the last fault to completion."""


def run_schedule(
    seed: int, number: int, plant: str | None = None, trace: bool = False
) -> ScheduleOutcome:
    """Run one schedule, with a seeded bug if one is named."""
    return run_with(configure(seed, number), plant, Trace() if trace else None)


def run_with(
    configuration: Configuration,
    plant: str | None = None,
    trace: Trace | None = None,
    skip: frozenset[int] = frozenset(),
) -> ScheduleOutcome:
    """Run a configuration without some steps of its fault scripts."""
    with seeded_bugs.PLANTS[plant].apply() if plant else nullcontext(), watchdog():
        world = prepare(configuration, trace, skip)
        world.run()
    return ScheduleOutcome(
        configuration.seed,
        configuration.number,
        world.violation,
        world.messages,
        world.faults,
        world.coverage,
        world.now,
        max(0, world.now - configuration.faults_end),
    )


def prepare(
    configuration: Configuration, trace: Trace | None = None, skip: frozenset[int] = frozenset()
) -> World:
    """Build the world with all its faults scheduled."""
    world = World(configuration, trace)
    rng = stream(configuration.seed, configuration.number, "operator")
    operator = SimulatedOperator(world, rng)
    world.cluster = Cluster(world, operator)
    injector = Injector(world, draw(configuration), skip)
    world.cluster.start_all()
    world.after(ROUND, operator.round)
    world.after(4000, world.cluster.repeat_announcements)
    world.after(1000, Bounds(world).check)
    world.after(configuration.faults_end, _end_faults, injector)
    copies = COPIES_TO_FINISH * configuration.changing.copying[1]
    world.after(configuration.faults_end + TIME_TO_FINISH + copies, _give_up, world)
    injector.begin()
    return world


def _end_faults(injector: Injector, _b: object, _c: object) -> None:
    world = injector.world
    world.cluster.note_fault("no more faults: everything heals")
    injector.end()


def _give_up(world: World, _b: object, _c: object) -> None:
    broken(0, "no-progress", who_waits(world))
