"""The chart is installed, upgraded, uninstalled; pipelines are applied, shown, deleted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from bench.streaming.feeder import now
from cluster.trial.pipeline import TrialPipeline
from cluster.trial.release import Release
from cluster.trial.space import MakeSpace, Space, with_storage
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import counting, flowing
from tests.cluster.e2e.recovering import primary, survives_deletion
from tests.examples.adapting import adapted
from tests.examples.recount import RECOUNTS, Books
from tests.laptop.output import Output

from tandem_core.model.states import ConditionType, Phase

COLUMNS = ["NAME", "PHASE", "PAIRS", "EPOCH", "LAG", "CHANGE", "AGE"]
LATER_COLUMN = "LAG"
"""One that an earlier version might not have had."""
GONE_WITHIN = 120.0
EXAMPLE = "counts-per-key"
ROWS_PER_SECOND = 1000
"""So slow that the example still takes rows in when all its drivers are up."""
QUIET_SECONDS = 3.0


@pytest.mark.smoke
@pytest.mark.timeout(600, func_only=True)
def test_pipeline_is_applied_shown_and_deleted(space: Space) -> None:
    before = space.inventory()
    with flowing(space) as flow:
        header, row = (line.split() for line in space.kubectl("get", "stp").splitlines())
        assert header == COLUMNS
        assert row[:3] == [flow.name, Phase.RUNNING, "1/1"]
        assert int(row[3]) > 0
        described = space.kubectl("describe", "stp", flow.name)
        told = [each["type"] for each in flow.status()["conditions"]]
        assert set(told) == set(ConditionType)
        for word in ("Pairs Ready", "pair-0", "Transactional", *told):
            assert word in described
    flow.delete()
    until(lambda: space.inventory() == before, GONE_WITHIN, "nothing of the pipeline is left")


@pytest.mark.timeout(600, func_only=True)
def test_example_pipeline_completes_with_correct_output(space: Space, tmp_path: Path) -> None:
    document, rows = adapted(EXAMPLE, 0.8, 2, tmp_path)
    spec = document["spec"]
    spec["pairs"] = {"count": 2}
    spec["streams"][0]["source"]["generator"]["rowsPerSecond"] = ROWS_PER_SECOND
    # The example's path is relative, so it begins at the root of a pod.
    spec["merges"] = {"template": with_storage(mount="/out")}
    pipeline = TrialPipeline(space, document)
    pipeline.apply()
    until(lambda: _is_ready(pipeline), 240, "the example is ready")
    until(lambda: pipeline.status()["phase"] == Phase.COMPLETED, 240, "the example is completed")
    until(lambda: not pipeline.pods(), GONE_WITHIN, "a completed pipeline has no pods")
    delivered = Output(space.shared).table()
    counters = pipeline.status()["counters"]
    assert counters["rowsIn"] == len(rows["payments"])
    assert counters["rowsOut"] == len(delivered)
    RECOUNTS[EXAMPLE](Books(rows, delivered))
    assert Phase.COMPLETED in space.kubectl("get", "stp").splitlines()[1].split()


def _is_ready(pipeline: TrialPipeline) -> bool:
    return pipeline.condition(ConditionType.READY).get("status") == "True"


@pytest.mark.timeout(900, func_only=True)
def test_pipelines_survive_chart_upgrade_and_uninstall(
    space: Space, release: Release, tmp_path: Path
) -> None:
    with flowing(space) as flow:
        pods = {pod.uid for pod in flow.pods()}
        (operator,) = release.operators()
        try:
            with_another_definition(release, tmp_path).install()
            assert LATER_COLUMN not in shown_columns(space)
            with_another_tag(release).install({"operator": {"logLevel": "debug"}})
            (upgraded,) = release.operators()
            assert upgraded.uid != operator.uid
            assert shown_columns(space) == COLUMNS
            flow.until_whole()
            release.uninstall()
            flow.goes_on()
        finally:
            release.install()
        release.test()
        until_status_follows(flow.last(), flow)
        assert {pod.uid for pod in flow.pods()} == pods, "pods with rows or state were replaced"


def with_another_definition(release: Release, directory: Path) -> Release:
    """The chart as if it were an earlier version's, whose resource shows a column less."""
    chart = shutil.copytree(release.chart, directory / "earlier")
    file = chart / "files" / "streampipelines.yaml"
    definition = yaml.safe_load(file.read_text())
    columns = definition["spec"]["versions"][0]["additionalPrinterColumns"]
    columns[:] = [column for column in columns if column["name"].upper() != LATER_COLUMN]
    file.write_text(yaml.safe_dump(definition, sort_keys=False))
    return replace(release, chart=chart)


def shown_columns(space: Space) -> list[str]:
    return space.kubectl("get", "stp").splitlines()[0].split()


def with_another_tag(release: Release) -> Release:
    """The same images under other names, as if they were those of a later version."""
    later = {name: f"{reference}-later" for name, reference in release.images.items()}
    for name, reference in later.items():
        release.cluster.engine.ask("tag", release.images[name], reference)
    release.cluster.load(later.values())
    return replace(release, images=later)


def until_status_follows(epoch: int, pipeline: TrialPipeline) -> None:
    until(
        lambda: pipeline.status()["epoch"]["delivered"] >= epoch,
        30,
        f"the status knows that epoch {epoch} is delivered",
    )


@pytest.mark.timeout(900, func_only=True)
def test_namespaced_operator_ignores_other_namespaces(
    new_space: MakeSpace, release: Release
) -> None:
    here, elsewhere = new_space(), new_space()
    ignored = TrialPipeline(elsewhere, counting())
    ignored.apply()
    until(ignored.status, 60, "an operator for all namespaces sees to it")
    ignored.delete()
    try:
        release.install({"watch": {"namespaces": [here.name]}})
        until(lambda: not ignored.pods(), GONE_WITHIN, "it is gone")
        ignored.apply()
        with flowing(here) as flow:
            survives_deletion(flow, primary(flow))
        assert ignored.status() == {}
    finally:
        release.install()


@pytest.mark.timeout(600, func_only=True)
def test_deletion_without_operator_leaves_nothing_behind(space: Space, release: Release) -> None:
    before = space.inventory()
    with flowing(space) as flow:
        pass
    with release.away():
        flow.delete()
        until(lambda: space.inventory() == before, GONE_WITHIN, "nothing of the pipeline is left")


@pytest.mark.timeout(600, func_only=True)
def test_suspended_pipeline_reads_no_rows_and_keeps_pods(space: Space) -> None:
    with flowing(space) as flow:
        pods = {pod.uid for pod in flow.pods()}
        suspend(flow, True)
        until(lambda: flow.status()["phase"] == Phase.SUSPENDED, 60, "it is suspended")
        until(
            lambda: now() - flow.outlet.look()[-1].at > QUIET_SECONDS,
            60,
            "nothing is delivered any more",
        )
        assert flow.outlet.reaches() < flow.feeder.fed - 1
        suspend(flow, False)
        flow.goes_on()
        flow.until_whole()
        assert {pod.uid for pod in flow.pods()} == pods


def suspend(pipeline: TrialPipeline, wanted: bool) -> None:
    change = f'{{"spec": {{"suspend": {str(wanted).lower()}}}}}'
    pipeline.space.kubectl("patch", "stp", pipeline.name, "--type=merge", "--patch", change)
