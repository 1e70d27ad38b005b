import logging
import threading
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry
from tests.local.harness import wait_for

from tandem.control.types import Instant, Key
from tandem.handlers import workers as module
from tandem.handlers.metrics import Metrics
from tandem.handlers.workers import Workers
from tandem.kube.port import Conflict, Refused, Unreachable
from tandem.output.json_logs import LINE
from tandem.policy.status.decision_line import DecisionLine
from tandem.policy.status.steps import Action, Step

A, B = Key("shop", "a"), Key("shop", "b")
STEP = Step(Action.APPLY, "Service a-splits", "it is missing")


class Scripted:
    """A loop whose turns do what they are told."""

    def __init__(self, key: Key, script: Callable[[int], float | None]) -> None:
        self.key = key
        self.turns: list[bool] = []
        self._script = script

    def turn(self, moment: Instant, news: bool) -> float | None:
        self.turns.append(news)
        return self._script(len(self.turns))

    def failed(self) -> DecisionLine:
        return DecisionLine(str(self.key), "all is well", (STEP,))


class Crew:
    """Workers over scripted loops."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry)
        self.loops: list[Scripted] = []
        self.scripts: dict[Key, Callable[[int], float | None]] = {}
        self.acting = True
        self.workers = Workers(self.make, lambda: self.acting, self.metrics)
        self.workers.start(3)

    def make(self, key: Key) -> Scripted:
        self.loops.append(Scripted(key, self.scripts.get(key, lambda _: 60.0)))
        return self.loops[-1]

    def turns(self, key: Key) -> list[bool]:
        return [news for loop in self.loops if loop.key == key for news in loop.turns]

    def failures(self, key: Key, cause: str) -> float:
        labels = {"namespace": key.namespace, "pipeline": key.name, "cause": cause}
        name = "tandem_operator_turn_failures_total"
        return self.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew()
    yield made
    made.workers.stop()


def test_reconciler_is_kept_until_pipeline_is_gone(crew: Crew) -> None:
    crew.scripts[A] = lambda number: 0.0 if number < 3 else None
    crew.workers.ask(A)
    wait_for(lambda: crew.turns(A) == [True, False, False])
    crew.workers.ask(A)
    wait_for(lambda: len(crew.loops) == 2)
    assert crew.loops[1].key == A


def test_hung_reconcile_does_not_block_other_pipelines(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    crew.scripts[A] = lambda _: 60.0 if release.wait(30) else None
    crew.workers.ask(A)
    wait_for(lambda: crew.turns(A) == [True])
    crew.workers.ask(A)
    crew.workers.ask(B)
    wait_for(lambda: crew.turns(B) == [True])
    assert crew.turns(A) == [True]
    assert crew.workers.healthy()
    monkeypatch.setattr(module, "STUCK", 0.0)
    assert not crew.workers.healthy()
    release.set()
    wait_for(lambda: crew.turns(A) == [True, True])


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (Conflict("swap lost"), "dropped"),
        (Unreachable("no answer"), "unreachable"),
        (Refused("forbidden"), "refused"),
        (RuntimeError("bug"), "unexpected"),
    ],
)
def test_failed_reconcile_is_counted_logged_and_retried(
    crew: Crew, error: Exception, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def fail_once(number: int) -> float:
        if number == 1:
            raise error
        return 60.0

    crew.scripts[A] = fail_once
    crew.workers.ask(A)
    wait_for(lambda: len(crew.turns(A)) == 2)
    assert crew.failures(A, cause) == 1
    assert len(crew.loops) == 1
    (line,) = [getattr(record, LINE) for record in caplog.records if hasattr(record, LINE)]
    assert line.pipeline == str(A)
    done, retry = line.steps
    assert done == STEP
    assert (retry.action, retry.reason) == (Action.RETRY, f"{cause}: {error}")
    (record,) = [each for each in caplog.records if hasattr(each, LINE)]
    assert bool(record.exc_info) is (cause == "unexpected")


def test_standby_operator_does_not_reconcile(crew: Crew) -> None:
    crew.acting = False
    crew.workers.ask(A)
    crew.workers.ask(B)
    crew.acting = True
    wait_for(lambda: crew.turns(A) and crew.turns(B))


def test_stop_waits_for_reconcile_in_progress(crew: Crew) -> None:
    begun, release = threading.Event(), threading.Event()

    def slow(_: int) -> float:
        begun.set()
        release.wait(30)
        return 60.0

    crew.scripts[A] = slow
    crew.workers.ask(A)
    assert begun.wait(20)
    stopping = threading.Thread(target=crew.workers.stop)
    stopping.start()
    crew.workers.ask(B)
    assert stopping.is_alive()
    release.set()
    stopping.join(20)
    assert not stopping.is_alive()
    assert crew.turns(B) == []
