"""Fault scripts: stages, each with steps that are taken at a moment."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tandem_simulator.faults.triggers import TriggerPoint


class FaultStep(NamedTuple):
    """One fault. `target` and `other` are roles, resolved when it strikes."""

    kind: str
    target: str = ""
    delay: int = 0
    duration: int = 0
    amount: int = 0
    other: str = ""
    number: int = 0
    """Identifies the step when a schedule is shrunk."""


class ScriptStage(NamedTuple):
    """Steps that are taken at a moment, or a while after the stage before."""

    steps: tuple[FaultStep, ...]
    moment: TriggerPoint | None = None
    wait: int = 0


class Script(NamedTuple):
    """Stages that follow each other; most scripts have one."""

    name: str
    stages: tuple[ScriptStage, ...]


def steps_of(scripts: tuple[Script, ...]) -> list[FaultStep]:
    """All steps of a schedule."""
    return [step for script in scripts for stage in script.stages for step in stage.steps]


def long_time(rng: Random) -> int:
    """A duration long enough for others to continue without the victim."""
    return rng.randint(2600, 4500)


def way_to_vanish(rng: Random) -> str:
    """A way for a process to stop answering for long."""
    return rng.choice(("old volume", "old volume", "pod kill", "freeze", "isolate"))
