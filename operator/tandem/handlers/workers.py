"""Threads that take pipelines from the work queue, each pipeline in one thread at a time."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from tandem.control.types import Instant, Key
from tandem.handlers.metrics import Metrics
from tandem.handlers.workqueue import Turn, WorkQueue
from tandem.kube.port import Conflict, KubeError, NotFound, Unreachable
from tandem.output.json_logs import NOTHING, write_line
from tandem.policy.status.decision_line import DecisionLine
from tandem.policy.status.steps import Action, Step

AGAIN = 0.5
"""Seconds after which a turn that was dropped is taken again."""
STUCK = 120.0
"""Seconds after which a turn counts as stuck."""
LAST_TURNS = 30.0
"""Seconds to wait for turns under way when the operator stops. The chart's grace is longer."""
_SPREAD = 0.1
"""The fraction by which waiting times are varied."""
_LONGEST_WAIT = 3600.0


class Looping(Protocol):
    """The loop of a pipeline: see `tandem.control.reconcile.Reconciler`."""

    def turn(self, moment: Instant, news: bool) -> float | None:
        """Reconcile once; return the seconds until the next time, None if the pipeline is gone."""

    def failed(self) -> DecisionLine:
        """The steps that a failed turn had done until then."""


class Workers:
    """Reconciles queued pipelines while `may_act` is true; otherwise they wait."""

    def __init__(
        self, make: Callable[[Key], Looping], may_act: Callable[[], bool], metrics: Metrics
    ) -> None:
        self._make = make
        self._may_act = may_act
        self._metrics = metrics
        self._random = Random()  # noqa: S311 - it spreads load, it keeps no secret
        self._agenda = WorkQueue(self._spread)
        self._loops: dict[Key, Looping] = {}
        self._began: dict[Key, float] = {}
        self._changed = threading.Condition()
        self._stopped = False

    def start(self, count: int) -> None:
        """Start this many worker threads."""
        for number in range(count):
            threading.Thread(target=self._run, name=f"worker {number}", daemon=True).start()

    def ask(self, key: Key) -> None:
        """Queue a pipeline that has changed."""
        with self._changed:
            self._agenda.ask(key, time.monotonic())
            self._changed.notify()

    def stop(self) -> None:
        """Begin no more turns, and wait up to `LAST_TURNS` seconds for those under way."""
        deadline = time.monotonic() + LAST_TURNS
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            while self._began and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())

    def healthy(self) -> bool:
        """Whether no turn is stuck."""
        with self._changed:
            now = time.monotonic()
            return all(now - began < STUCK for began in self._began.values())

    def _spread(self, seconds: float) -> float:
        return seconds * self._random.uniform(1 - _SPREAD, 1 + _SPREAD)

    def _run(self) -> None:
        while True:
            turn = self._next()
            if turn is None:
                return
            self._work(turn)

    def _next(self) -> Turn | None:
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                turn = self._agenda.take(now)
                if turn is not None:
                    self._began[turn.key] = now
                    return turn
                self._changed.wait(min(_LONGEST_WAIT, self._agenda.wait(now)))
        return None

    def _work(self, turn: Turn) -> None:
        key = turn.key
        after: float | None = AGAIN
        problem: Exception | None = None
        began = time.monotonic()
        try:
            if self._may_act():
                after = self._turn(turn)
        except Exception as caught:  # noqa: BLE001 - one pipeline must not stop the others
            problem = caught
            self._metrics.failed(key, _cause(problem))
        self._metrics.turned(time.monotonic() - began)
        if problem is None:
            self._settle(key, after, failed=False)
            return
        # Ask the loop before settling: afterwards another worker may run it.
        line = self._failed(key)
        # On a conflict the cluster has changed since it was observed: the next turn lists it again.
        dropped = isinstance(problem, Conflict | NotFound)
        wait = self._settle(key, AGAIN, failed=not dropped)
        _log_failure(line, problem, wait)

    def _failed(self, key: Key) -> DecisionLine:
        try:
            return self._loops[key].failed()
        except Exception:  # noqa: BLE001 - only adds detail to an error
            # The loop could not be made, or its log failed: only the problem is logged.
            return DecisionLine(str(key), NOTHING)

    def _turn(self, turn: Turn) -> float | None:
        loop = self._loops.get(turn.key)
        if loop is None:
            loop = self._loops[turn.key] = self._make(turn.key)
        moment = Instant(time.monotonic(), datetime.now(UTC))  # noqa: TID251
        return loop.turn(moment, turn.news)

    def _settle(self, key: Key, after: float | None, failed: bool) -> float:
        """Put a pipeline back after its turn; return the seconds to wait after a failed one."""
        with self._changed:
            now = time.monotonic()
            wait = after or 0.0
            if failed:
                wait = self._agenda.failed(key, now)
            else:
                if after is None:
                    self._loops.pop(key, None)
                self._agenda.done(key, now, after)
            del self._began[key]
            self._changed.notify_all()
        return wait


def _cause(problem: Exception) -> str:
    """The cause of a failed turn, as the metric counts it."""
    match problem:
        case Conflict() | NotFound():
            return "dropped"
        case Unreachable():
            return "unreachable"
        case KubeError():
            return type(problem).__name__.lower()
    return "unexpected"


def _log_failure(line: DecisionLine, problem: Exception, wait: float) -> None:
    """Log what a turn did before it failed, why it failed, and when it is retried."""
    step = Step(Action.RETRY, f"in {wait:.1f} s", f"{_cause(problem)}: {problem}")
    levels = {"dropped": logging.INFO, "unexpected": logging.ERROR}
    level = levels.get(_cause(problem), logging.WARNING)
    write_line(line.and_then(step), level, None if isinstance(problem, KubeError) else problem)
