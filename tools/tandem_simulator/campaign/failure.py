"""Explains a failing schedule: shrinks it to the faults that matter and prints its story."""

from __future__ import annotations

from typing import NamedTuple

from tandem_simulator.campaign import report
from tandem_simulator.campaign.shrink import shrink
from tandem_simulator.engine.configuration import QUIET, Configuration, configure
from tandem_simulator.engine.schedule import ScheduleOutcome, run_with
from tandem_simulator.engine.trace import Trace
from tandem_simulator.faults.fault_generator import draw
from tandem_simulator.faults.scripts import steps_of
from tandem_simulator.oracle.violation import Violation

NOISE = 0
"""Stands for the network noise in the list of steps that can be left out."""


class FailedSchedule(NamedTuple):
    """The first failing schedule of a run, explained."""

    seed: int
    number: int
    violation: Violation
    story: str


def explain(seed: int, number: int, violation: Violation, plant: str | None) -> FailedSchedule:
    """Shrink a failing schedule and tell its story."""
    configuration = configure(seed, number)
    steps = [step.number for step in steps_of(draw(configuration))]

    def fails(kept: frozenset[int]) -> bool:
        found = _run(configuration, kept, steps, plant, None).violation
        return found is not None and _same(found, violation)

    kept = frozenset(shrink([*steps, NOISE], fails))
    trace = Trace()
    outcome = _run(configuration, kept, steps, plant, trace)
    if outcome.violation is None or not _same(outcome.violation, violation):
        # Bounded shrinking always ends on a failing set; this covers the set of all steps.
        kept = frozenset([*steps, NOISE])
        trace = Trace()
        outcome = _run(configuration, kept, steps, plant, trace)
    found = outcome.violation or violation
    head = [
        f"seed {seed}, schedule {number}"
        + (f", seeded bug {plant}" if plant else "")
        + f": {len(kept - {NOISE})} of {len(steps)} faults matter"
        + ("" if NOISE in kept else ", and no message need be lost, late or doubled"),
        f"again: tandem simulate --seed {seed} --only {number}"
        + (f" --plant {plant}" if plant else ""),
        "",
    ]
    return FailedSchedule(
        seed, number, found, "\n".join(head) + report.tell(configuration, found, trace)
    )


def _run(
    configuration: Configuration,
    kept: frozenset[int],
    steps: list[int],
    plant: str | None,
    trace: Trace | None,
) -> ScheduleOutcome:
    noise = configuration.noise if NOISE in kept else QUIET
    return run_with(configuration._replace(noise=noise), plant, trace, frozenset(steps) - kept)


def _same(one: Violation, other: Violation) -> bool:
    return (one.invariant, one.kind) == (other.invariant, other.kind)
