"""Metrics of pipelines, derived from their status."""

from dataclasses import replace

from prometheus_client import CollectorRegistry

from tandem.control.types import Key
from tandem.handlers.metrics import Metrics
from tandem_core.model.change import ChangeStatus
from tandem_core.model.states import ChangeStage
from tandem_core.model.status import Status

KEY = Key("shop", "spending")
LABELS = {"namespace": "shop", "pipeline": "spending"}
STAGE = "tandem_pipeline_change_stage"


def test_one_stage_of_a_change_is_set_at_a_time() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)

    def stages() -> dict[ChangeStage, float | None]:
        return {
            stage: registry.get_sample_value(STAGE, {**LABELS, "stage": stage.value})
            for stage in ChangeStage
        }

    status = Status(generation=3, replicas=2)
    metrics.status(KEY, status)
    assert set(stages().values()) == {0.0}
    for stage in ChangeStage:
        change = ChangeStatus(target=4, stage=stage, since="2024-05-01T12:00:00Z")
        metrics.status(KEY, replace(status, change=change))
        assert stages() == {each: float(each is stage) for each in ChangeStage}
    assert registry.get_sample_value("tandem_pipeline_generation", LABELS) == 3.0
    assert registry.get_sample_value("tandem_pipeline_pairs", LABELS) == 2.0
    metrics.gone(KEY)
    assert set(stages().values()) == {None}
