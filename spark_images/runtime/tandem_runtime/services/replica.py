"""`python -m tandem_runtime.services.replica`: a Spark driver, half of a pair, or a warm spare."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import time

from tandem_runtime.protocol.replica import ReplicaMachine
from tandem_runtime.services.assignment import Assignment
from tandem_runtime.services.driver import Driver, contents, is_begun
from tandem_runtime.services.node import Ended, Node, ended_by, milliseconds
from tandem_runtime.services.process import Process, main
from tandem_runtime.surroundings.port import Surroundings
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.codec import decode, encode

_LOOK_SECONDS = 0.2
"""How often a replica looks for the intent that names its pair, a spare for its Spark."""

_INTENT_SECONDS = 1.0
"""How long a replica waits to know whether it joins somebody, before it starts Spark anyhow."""

_log = logging.getLogger(__name__)


class Watch:
    """What a replica tells of itself."""

    def __init__(self, machine: ReplicaMachine, driver: Driver) -> None:
        self._machine = machine
        self._driver = driver

    def state(self) -> dict[str, object]:
        """The answer to `/state`."""
        machine, driver = self._machine, self._driver
        return {
            "replica": {
                "pair": machine.pair,
                "committed": machine.committed,
                "verified": machine.verified,
                "state": self._doing(),
                "late_dropped": driver.late_dropped,
                "batch_ms": round(driver.batch_ms, 1),
            }
        }

    def _doing(self) -> str:
        if not self._driver.booted.is_set():
            return "booting"
        if self._machine.joins:
            return "joining"
        known = max(self._machine.headers, default=0)
        return "running" if known - self._machine.committed <= 1 else "replaying"


def keys_of(pair: str, volume: Volume, surroundings: Surroundings) -> object:
    """The keys of a replica: fixed at its birth, and kept on its volume."""
    birth = volume.directory / "birth"
    if birth.exists():
        return decode(birth.read_bytes())
    while True:
        intent = surroundings.intent()
        named = [g for g in intent.generations if pair in g.names()] if intent else []
        if named:
            keys = max(named).keys_of(pair)
            volume.write_beside("birth", encode(keys))
            return keys
        time.sleep(_LOOK_SECONDS)


def run(process: Process[Surroundings], arguments: argparse.Namespace) -> int:
    """Run a replica until it is done; a spare first waits for a pair."""
    for asked_to_stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked_to_stop, lambda *_: os._exit(0))
    # `tandem run` has checked the query before it started anything, and sees to priorities.
    joins = _is_carried(process, arguments.pair)
    driver = Driver(
        process.surroundings.pipeline,
        process.volume,
        process.post,
        check=arguments.in_cluster and not joins,
        joins=joins,
        yields=arguments.in_cluster and joins,
    )
    try:
        pair = arguments.pair or _assigned(process, driver)
    except Ended as end:
        _log.warning("ends: %s", end)
        return end.code
    process.serve(lambda: _before("booting", pair), lambda: False, pair)
    found = contents(process.volume)
    if not is_begun(found):
        # A copy is of the moment it is asked for. What comes while Spark boots would have to be
        # computed after it, epoch by epoch.
        driver.settled.wait()
    machine = ReplicaMachine(
        process.volume.id,
        process.volume.incarnation,
        pair,
        keys_of(pair, process.volume, process.surroundings),
        found,
        process.settings,
        milliseconds(),
        booting=True,
    )
    node = Node(machine, process.volume, process.surroundings, process.post, process.settings)
    driver.serve(node)
    process.serve(Watch(machine, driver).state, lambda: machine.verified, pair)
    try:
        return process.run(node)
    finally:
        driver.stop()


def _is_carried(process: Process[Surroundings], pair: str | None) -> bool:
    """Whether somebody else runs the query already: for a pair, or, if it is a spare, for any.

    Where pods begin together there is nobody to ask yet, and Spark's start is not to wait for long.
    """
    deadline = time.monotonic() + _INTENT_SECONDS
    while (intent := process.surroundings.intent()) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_INTENT_SECONDS / 20)
    return any(
        primary != process.volume.id and pair in {None, name} for name, primary in intent.primaries
    )


def _assigned(process: Process[Surroundings], driver: Driver) -> str:
    """Wait, warm, until somebody names the pair to belong to.

    Raises:
        Ended: Spark is of no use.
    """
    assignment = Assignment(process.volume)

    def state() -> dict[str, object]:
        return _before("spare" if driver.booted.is_set() else "booting", None)

    process.serve(state, driver.booted.is_set, actions={"assign": assignment.assign})
    while not assignment.given.wait(_LOOK_SECONDS):
        if driver.failure is not None:
            raise ended_by(driver.failure, process.volume)
    _log.info("a replica of %s from now on", assignment.pair)
    return assignment.pair


def _before(doing: str, pair: str | None) -> dict[str, object]:
    """The answer to `/state` of a replica that is none yet."""
    return {"replica": {"pair": pair, "state": doing}}


def _arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--pair", help="pair to belong to")
    what.add_argument("--spare", action="store_true", help="wait for a pair, warm")


if __name__ == "__main__":
    main("replica", _arguments, run)
