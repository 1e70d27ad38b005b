"""Runs a pipeline of one or more pairs, and injects faults."""

import time
from typing import Any

from bench.cluster.sides import FROZEN_SECONDS, IN_PODS, RECOVERY_SECONDS, Ends, Fault, Load
from bench.streaming.feeder import now
from bench.streaming.pipelines import Shape, manifest

from cluster.trial.pipeline import TrialPipeline
from cluster.trial.space import Space
from cluster.trial.stage import Stage, with_shared_directory
from tandem_core.model.states import Role

_PAIR = "pair-0"


def document(load: Load, pairs: int) -> dict[str, Any]:
    """The manifest."""
    shape = Shape(interval_ms=load.interval_ms, memory=f"{load.memory_mib}Mi")
    made = manifest(shape, IN_PODS / "in", IN_PODS / "out")
    made["spec"]["pairs"]["count"] = pairs
    return with_shared_directory(made)


class TandemPods:
    """A pipeline; see `bench.cluster.sides.Side`."""

    def __init__(self, stage: Stage, space: Space, load: Load, pairs: int) -> None:
        self.ends = Ends(space, load)
        self._stage = stage
        self._pipeline = TrialPipeline(space, document(load, pairs))

    def apply(self) -> None:
        """Apply the manifest."""
        self._pipeline.apply()

    def await_whole(self) -> None:
        """Wait until every pair is paired and the status says so."""
        self._pipeline.until_whole(RECOVERY_SECONDS)

    def fail(self, fault: Fault) -> tuple[float, float]:
        """Fail the primary of a pair, or a worker without the operator."""
        match fault:
            case Fault.KILL:
                return self._kill()
            case Fault.FREEZE:
                return self._freeze()
            case Fault.DRAIN | Fault.LEAD_DRAIN:
                return self._drain(self._node(fault))
            case Fault.NODE | Fault.LEAD_NODE:
                return self._lose(self._node(fault))

    def _node(self, fault: Fault) -> str:
        """The worker to fail, with lead and active merge placed as the fault requires."""
        node = self._stage.replaceable_node()
        self._pipeline.place_lead_and_merge(node, there=fault is not fault.without_lead)
        return node

    def _kill(self) -> tuple[float, float]:
        victim = self._pipeline.replica(_PAIR, Role.PRIMARY)
        began = now()
        self._pipeline.delete_now(victim)
        self.await_whole()
        return began, now()

    def _freeze(self) -> tuple[float, float]:
        victim = self._pipeline.replica(_PAIR, Role.PRIMARY)
        began = now()
        with self._stage.nodes.frozen(victim):
            time.sleep(FROZEN_SECONDS)
        self.await_whole()
        return began, now()

    def _drain(self, node: str) -> tuple[float, float]:
        with self._stage.nodes.cordoned(node):
            began = now()
            self._stage.nodes.drain(node)
            self.await_whole()
            return began, now()

    def _lose(self, node: str) -> tuple[float, float]:
        began = now()
        with self._stage.nodes.stopped(node):
            self.await_whole()
            return began, now()
