"""Prometheus metrics of the operator, and the HTTP endpoints that serve them."""

from collections.abc import Callable
from http.server import ThreadingHTTPServer

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from tandem.control.types import Key
from tandem_core.model.states import ChangeStage, ConditionStatus, Word
from tandem_core.model.status import Status
from tandem_core.network import http_server
from tandem_core.network.http_server import TEXT, Page, metrics, verdict

_PIPELINE = ("namespace", "pipeline")

_FIGURES: tuple[tuple[str, str, Callable[[Status], float]], ...] = (
    (
        "tandem_pipeline_epoch_delivered",
        "Last epoch that every sink has.",
        lambda status: status.epoch.delivered,
    ),
    (
        "tandem_pipeline_lag_seconds",
        "Age of the oldest epoch that is not delivered.",
        lambda status: status.lag.seconds,
    ),
    (
        "tandem_pipeline_take_overs",
        "Failovers since the pipeline started.",
        lambda status: status.counters.take_overs,
    ),
    (
        "tandem_pipeline_generation",
        "Generation of the last header.",
        lambda status: status.generation,
    ),
    (
        "tandem_pipeline_pairs",
        "Pairs of that generation.",
        lambda status: status.replicas,
    ),
)
"""Gauges of a pipeline's status: name, text and value."""


class Metrics:
    """Implements `tandem.control.types.Meter`, and counts and times turns."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._events = Counter(
            "tandem_operator_events",
            "Events written for a pipeline.",
            (*_PIPELINE, "reason"),
            registry=registry,
        )
        self._turns = Histogram(
            "tandem_operator_turn_seconds",
            "Duration of a reconcile.",
            buckets=(0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self._failures = Counter(
            "tandem_operator_turn_failures",
            "Failed reconciles, by cause.",
            (*_PIPELINE, "cause"),
            registry=registry,
        )
        self._leads = Gauge(
            "tandem_operator_leads",
            "1 if this operator won leader election.",
            registry=registry,
        )
        self._conditions = Gauge(
            "tandem_pipeline_condition",
            "1 if a condition of a pipeline is true, 0 if it is false or unknown.",
            (*_PIPELINE, "condition"),
            registry=registry,
        )
        self._stages = Gauge(
            "tandem_pipeline_change_stage",
            "1 for the stage of the last change of pairs, 0 for all others.",
            (*_PIPELINE, "stage"),
            registry=registry,
        )
        self._figures = tuple(
            (Gauge(name, text, _PIPELINE, registry=registry), value)
            for name, text, value in _FIGURES
        )

    def event(self, key: Key, reason: Word) -> None:
        """An event was written."""
        self._events.labels(*key, str(reason)).inc()

    def status(self, key: Key, status: Status) -> None:
        """The status of a pipeline is now this."""
        for condition in status.conditions:
            holds = condition.status is ConditionStatus.TRUE
            self._conditions.labels(*key, str(condition.type)).set(holds)
        for stage in ChangeStage:
            now = status.change is not None and status.change.stage is stage
            self._stages.labels(*key, str(stage)).set(now)
        for gauge, value in self._figures:
            gauge.labels(*key).set(value(status))

    def gone(self, key: Key) -> None:
        """A pipeline no longer exists."""
        figures = (gauge for gauge, _ in self._figures)
        for metric in (self._events, self._failures, self._conditions, self._stages, *figures):
            metric.remove_by_labels(dict(zip(_PIPELINE, key, strict=True)))

    def turned(self, seconds: float) -> None:
        """A turn took so long."""
        self._turns.observe(seconds)

    def failed(self, key: Key, cause: str) -> None:
        """A turn failed."""
        self._failures.labels(*key, cause).inc()

    def leading(self, leads: bool) -> None:
        """Whether this operator acts."""
        self._leads.set(leads)


def serve(port: int, healthy: Callable[[], bool]) -> ThreadingHTTPServer:
    """Serve in background threads, on all addresses; port 0 lets the system choose one."""

    def page(path: str, _: str) -> Page:
        if path == "/metrics":
            return metrics()
        if path == "/healthz":
            return verdict(healthy(), "a reconcile is stuck")
        return Page(404, TEXT, b"/metrics, /healthz\n")

    return http_server.serve(("", port), page)
