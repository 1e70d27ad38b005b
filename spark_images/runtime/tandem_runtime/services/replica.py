"""`python -m tandem_runtime.services.replica`: a Spark driver, half of a pair, or a warm spare."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import time

import pyspark

from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import DriverState, ReplicaState
from tandem_core.network.flight_calls import ASSIGN
from tandem_runtime.environment.interface import Environment
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.services.driver import Driver, checkpoints, is_begun
from tandem_runtime.services.event_loop import Ended, EventLoop, Failure, ended_by, milliseconds
from tandem_runtime.services.process import Process, main
from tandem_runtime.services.spare_assignment import Assignment
from tandem_runtime.services.state.birth import OtherDefinition, join_pair

_LOOK_SECONDS = 0.2
"""How often a spare looks for its Spark."""

_INTENT_SECONDS = 1.0
"""How long a replica waits for the intent, which shows whether it joins a twin, before it starts
Spark."""


_log = logging.getLogger(__name__)


class ReplicaMonitor:
    """Reports the state of a replica."""

    def __init__(self, machine: ReplicaMachine, driver: Driver) -> None:
        self._machine = machine
        self._driver = driver

    def report(self) -> ReplicaState:
        """The replica's part of `/state`."""
        machine, driver = self._machine, self._driver
        return ReplicaState(
            state=self._doing(),
            committed=machine.committed,
            verified=machine.verified,
            late_dropped=driver.late_dropped,
            pair=machine.pair,
            protocol_state=machine.life,
            batch_ms=round(driver.batch_ms, 1),
        )

    def _doing(self) -> DriverState:
        """The machine's state as it is reported."""
        if not self._machine.spark_up:
            return DriverState.BOOTING
        if self._machine.joins:
            return DriverState.JOINING
        known = max(self._machine.headers, default=0)
        behind = known - self._machine.committed
        return DriverState.RUNNING if behind <= 1 else DriverState.REPLAYING


def run(process: Process[Environment], arguments: argparse.Namespace) -> int:
    """Run a replica until it is done; a spare first waits for a pair."""
    for asked_to_stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked_to_stop, lambda *_: os._exit(0))
    # `tandem run` checks the query before it starts any process, and sets priorities.
    joins = _is_carried(process, arguments.pair)
    driver = Driver(
        process.environment.pipeline,
        process.volume,
        process.post,
        check=arguments.in_cluster and not joins,
        joins=joins,
        yields=arguments.in_cluster and joins,
    )
    try:
        pair = arguments.pair or _assigned(process, driver)
        machine = _joined(process, pair, driver)
    except Ended as end:
        _log.warning("exiting: %s", end)
        return end.code
    loop = EventLoop(machine, process.volume, process.environment, process.post, process.settings)
    driver.serve(loop, lambda: machine.share)
    process.serve(ReplicaMonitor(machine, driver).report, lambda: machine.verified, pair)
    return process.run(loop, driver.stop)


def _joined(process: Process[Environment], pair: str, driver: Driver) -> ReplicaMachine:
    """Create the machine of a replica from what its volume holds.

    Raises:
        Ended: the volume is of another definition of the pair.
    """
    booting = ReplicaState(state=DriverState.BOOTING, pair=pair)
    process.serve(lambda: booting, lambda: False, pair)
    found = process.volume.contents()
    if not is_begun(found):
        # A copy is a snapshot of when it is requested: requested now, every epoch cut while Spark
        # boots would have to be computed after it.
        driver.settled.wait()
    try:
        member = join_pair(pair, process.volume, process.environment, pyspark.__version__)
    except OtherDefinition as problem:
        refusal = Failure("OtherDefinition", str(problem), problem.hint)
        raise ended_by(refusal, process.volume) from problem
    epochs = checkpoints(process.volume) if is_begun(found) else ()
    return ReplicaMachine(
        process.volume.id,
        process.volume.incarnation,
        pair,
        member.share,
        StoredReplica(found, epochs, member.named_in, member.definition),
        process.settings,
        milliseconds(),
        booting=True,
    )


def _is_carried(process: Process[Environment], pair: str | None) -> bool:
    """Whether other replicas run the query for the same keys.

    They are of the pair, of its parents before the cut-over or, for a spare, of any pair. Where
    pods start together there is no intent to read yet, and Spark's start must not wait long.
    """
    deadline = time.monotonic() + _INTENT_SECONDS
    while (intent := process.environment.intent()) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_INTENT_SECONDS / 20)
    return _is_shadow(intent, pair) or any(
        primary != process.volume.id and pair in {None, name} for name, primary in intent.primaries
    )


def _is_shadow(intent: Intent, pair: str | None) -> bool:
    """Whether only generations to come name the pair."""
    naming = [each.number for each in intent.generations if pair in each.names()]
    return min(naming, default=intent.target) > intent.target


def _assigned(process: Process[Environment], driver: Driver) -> str:
    """Wait, with Spark started, until a pair is assigned.

    Raises:
        Ended: Spark failed.
    """
    assignment = Assignment(process.volume)

    def report() -> ReplicaState:
        warm = driver.booted.is_set()
        return ReplicaState(state=DriverState.SPARE if warm else DriverState.BOOTING)

    process.serve(report, driver.booted.is_set, actions={ASSIGN: assignment.assign})
    while not assignment.given.wait(_LOOK_SECONDS):
        if driver.failure is not None:
            raise ended_by(driver.failure, process.volume)
    _log.info("assigned to %s", assignment.pair)
    return assignment.pair


def _arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--pair", help="pair to belong to")
    what.add_argument("--spare", action="store_true", help="wait for a pair, warm")


if __name__ == "__main__":
    main("replica", _arguments, run)
