"""Runs a plan: starts a side, warms it up, injects faults, and recounts the output."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from bench.cluster.memory import Footprint, watch_memory
from bench.cluster.sides import START_SECONDS, Fault, Load, Side
from bench.streaming.failover import Case, Disturbance
from bench.streaming.feeder import now
from bench.streaming.oracle import Verdict, recount
from bench.streaming.report import say, seconds
from bench.streaming.waiting import RunFailed, wait_until

from cluster.steps import StepFailed
from cluster.trial.release import NAMESPACE
from cluster.trial.space import Space
from cluster.trial.stage import Stage
from cluster.trial.waiting import InVain
from tandem.kube.port import KubeError

MakeSide = Callable[[Stage, Space, Load], Side]

_WARM_SECONDS = 15.0
_LAST_SECONDS = 60.0


@dataclass(frozen=True)
class Memory:
    """Several samples of the memory of a pipeline and the operator while rows flow."""

    pipeline: tuple[Footprint, ...]
    operator: tuple[Footprint, ...]


@dataclass(frozen=True)
class Outcome:
    """The results of one fault, tried several times."""

    side: str
    fault: Fault
    case: Case
    first_deliveries: tuple[float, ...]
    """Seconds from applying the manifest to the first delivery, of each start."""
    memory: Memory | None = None


@dataclass(frozen=True)
class Plan:
    """One way to run the query, and one fault."""

    side: str
    make: MakeSide
    fault: Fault
    tries: int
    with_memory: bool = False

    @property
    def name(self) -> str:
        """The plan's name in tables."""
        return f"{self.side}, {self.fault.value}"


def carry_out(plan: Plan, stage: Stage, load: Load) -> Outcome:
    """Try a fault as often as planned, with a new pipeline if the fault leaves one node.

    Raises:
        RunFailed: a condition was not met in time.
    """
    runs, tries = (plan.tries, 1) if plan.fault.leaves_one_node else (1, plan.tries)
    try:
        return joined([_run(plan, stage, load, tries) for _ in range(runs)])
    except (InVain, StepFailed, KubeError) as problem:
        raise RunFailed(str(problem)) from problem


def _run(plan: Plan, stage: Stage, load: Load, tries: int) -> Outcome:
    with stage.space(f"bench-{plan.fault.name}") as space:
        side = plan.make(stage, space, load)
        feeder, outlet = side.ends.feeder, side.ends.outlet
        feeder.preload()
        applied = now()
        try:
            side.apply()
            wait_until(lambda: bool(outlet.look()), START_SECONDS, "first delivery")
            first = outlet.look()[0].at - applied
            say(f"  first delivery {seconds(first)} after it was applied")
            side.await_whole()
            feeder.start()
            time.sleep(_WARM_SECONDS)
            memory = _memory(stage, space) if plan.with_memory else None
            disturbance = Disturbance(outlet, tries, load.interval)
            disturbance.go_through(lambda: side.fail(plan.fault))
            feeder.stop()
            wait_until(
                lambda: outlet.reaches() == feeder.fed - 1, _LAST_SECONDS, "everything delivered"
            )
        finally:
            feeder.stop()
        verdict = recount(side.ends.output, feeder.rows, feeder.fed)
        say(f"  {verdict}")
        case = Case(plan.name, load.keys, disturbance.failures(), disturbance.cadence(), verdict)
    return Outcome(plan.side, plan.fault, case, (first,), memory)


def _memory(stage: Stage, space: Space) -> Memory:
    found = watch_memory(stage.cluster, (space.name, NAMESPACE))
    return Memory(tuple(found[space.name]), tuple(found[NAMESPACE]))


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Combine several runs of one plan; verdicts are added up."""
    first = outcomes[0]
    cases = [outcome.case for outcome in outcomes]
    case = Case(
        first.case.name,
        first.case.keys,
        tuple(failure for each in cases for failure in each.failures),
        tuple(gap for each in cases for gap in each.cadence),
        _sum([each.verdict for each in cases]),
    )
    starts = tuple(start for each in outcomes for start in each.first_deliveries)
    memory = next((each.memory for each in outcomes if each.memory is not None), None)
    return Outcome(first.side, first.fault, case, starts, memory)


def _sum(verdicts: Sequence[Verdict]) -> Verdict:
    added = {
        field.name: sum(getattr(each, field.name) for each in verdicts) for field in fields(Verdict)
    }
    return Verdict(**added)
