"""Wrong manifests are refused with words that help; a running pipeline is not harmed by one."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.steps import StepFailed
from cluster.trial.pipeline import TrialPipeline
from cluster.trial.pods import Object
from cluster.trial.space import Space
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import counting, fed, flowing
from tests.crds.definition import refusals
from tests.crds.test_manifests import (
    ANOTHER_RESOURCE,
    CHANGES,
    LEFT_TO_THE_OPERATOR,
    UNREADABLE,
    WRONG,
)
from tests.model.test_wrong_manifests import expectations

from tandem_core.model.states import ConditionType

UNNAMED = {"name-missing", "unknown-top-field"}
"""kubectl itself refuses them, in its own words."""
REFUSED = sorted(set(WRONG) - UNREADABLE - ANOTHER_RESOURCE - UNNAMED - LEFT_TO_THE_OPERATOR)
OWN_WORDS = re.compile(
    "must be|should be|should have|should match|must have|must consist|supported values"
    "|Required value|unknown field"
)
"""How the API server says what would be right where no rule of ours does."""


def document_in(file: Path) -> Object:
    document: Object = yaml.safe_load(file.read_text())
    return document


@pytest.mark.timeout(300, func_only=True)
def test_api_server_refuses_wrong_manifests_by_field_and_reason(space: Space) -> None:
    assert len(REFUSED) >= 20
    for name in REFUSED:
        document = document_in(WRONG[name])
        said, foreseen = refusal(space, document), refusals(document)
        # A rule about the whole resource is one about its name.
        fields = [each.path.removeprefix(".") or "metadata.name" for each in foreseen]
        assert any(field in said for field in fields), (name, said)
        in_our_words = any(each.message in said for each in foreseen)
        assert in_our_words or OWN_WORDS.search(said), (name, said)


def refusal(space: Space, document: Object) -> str:
    """What the API server says to a manifest that it does not take."""
    with pytest.raises(StepFailed) as refused:
        space.kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(document))
    return str(refused.value)


@pytest.mark.timeout(300, func_only=True)
def test_operator_refuses_remaining_wrong_manifests_by_condition(space: Space) -> None:
    applied = {name: applied_as(space, name) for name in sorted(LEFT_TO_THE_OPERATOR)}
    for name, pipeline in applied.items():
        said = until(partial(refused_because, pipeline), 60, f"{name} is refused")
        for _, path, _, words in expectations(WRONG[name].read_text()):
            assert f"{path}: " in said, (name, said)
            assert words in said, (name, said)
        assert not pipeline.pods()


def applied_as(space: Space, name: str) -> TrialPipeline:
    document = document_in(WRONG[name])
    document["metadata"]["name"] = name
    pipeline = TrialPipeline(space, document)
    pipeline.apply()
    return pipeline


def refused_because(pipeline: TrialPipeline) -> str | None:
    """Why a pipeline is not ready; None while nothing is said about it."""
    ready = pipeline.condition(ConditionType.READY)
    return str(ready.get("message")) if ready.get("status") == "False" else None


@pytest.mark.timeout(600, func_only=True)
def test_query_refused_by_spark_is_reported_and_runs_once_fixed(space: Space) -> None:
    right = counting()
    wrong = deepcopy(right)
    wrong["spec"]["query"]["sql"] = right["spec"]["query"]["sql"].replace("amount", "amuont")
    with fed(space, right) as flow:
        space.apply(wrong)
        refused = partial(ready_says, flow, "MissingColumn")
        until(refused, 240, "it is told that Spark refuses the query")
        assert "amuont" in str(refused_because(flow))
        flow.apply()
        flow.begin()
        flow.is_right()


# --- changes ------------------------------------------------------------------------------------

OTHERWISE: dict[str, Any] = {
    **CHANGES,
    ".spec.pairs.spares": 1,
    ".spec.spark.cores": 2,
    ".spec.spark.memory": "2g",
    ".spec.spark.conf": {"spark.sql.ansi.enabled": "false"},
}
"""Values that every field has which cannot change yet, and that the pipeline here has not."""


@pytest.mark.timeout(600, func_only=True)
def test_wrong_updates_do_not_harm_running_pipeline(space: Space) -> None:
    with flowing(space) as flow:
        pods = {pod.uid for pod in flow.pods()}
        for path, value in OTHERWISE.items():
            said = refusal(space, changed(flow.document, path, value))
            assert f"{path[1:]} cannot change yet: " in said
        with_a_missing_claim = deepcopy(flow.document)
        volumes = with_a_missing_claim["spec"]["merges"]["template"]["volumes"]
        volumes[0]["persistentVolumeClaim"]["claimName"] = "nowhere"
        space.apply(with_a_missing_claim)
        until(
            lambda: "nowhere" in flow.condition(ConditionType.READY)["message"],
            60,
            "the condition tells what is missing",
        )
        flow.goes_on()
        assert {pod.uid for pod in flow.pods()} >= pods
        flow.apply()
        flow.until_whole()
        assert {pod.uid for pod in flow.pods()} >= pods


@pytest.mark.timeout(900, func_only=True)
def test_wrong_template_costs_no_output_and_fixed_one_rolls_out(
    space: Space,
) -> None:
    with flowing(space) as flow:
        pods = {pod.uid for pod in flow.pods()}
        nowhere = {"nodeSelector": {"tandem.dev/no-such-node": "true"}}
        space.apply(changed(flow.document, ".spec.pairs.template", nowhere))
        until(partial(ready_says, flow, "NoNodeFits"), 60, "it is told that no node fits")
        flow.goes_on()
        assert {pod.uid for pod in flow.pods()} == pods
        # The kubelet waits for a volume only if a container mounts it.
        missing = {
            "volumes": [{"name": "extra", "secret": {"secretName": "nowhere"}}],
            "volumeMounts": [{"name": "extra", "mountPath": "/extra"}],
        }
        space.apply(changed(flow.document, ".spec.pairs.template", missing))
        until(lambda: len({pod.uid for pod in flow.pods()} - pods) == 1, 120, "one is made anew")
        flow.goes_on()
        assert len({pod.uid for pod in flow.pods()} - pods) == 1, "both twins were given up"
        flow.apply()
        flow.until_whole()


def ready_says(pipeline: TrialPipeline, reason: str) -> bool:
    return pipeline.condition(ConditionType.READY).get("reason") == reason


def changed(document: Object, path: str, value: Any) -> Object:
    """A manifest with another value at a path."""
    copy = deepcopy(document)
    *parents, last = path.split(".")[1:]
    part = copy
    for name in parents:
        part = part.setdefault(name, {})
    part[last] = value
    return copy
