"""The chart's copy of the resource's definition; Helm reads nothing outside of a chart."""

from tests.charts.conftest import CHART, ROOT


def test_the_chart_has_the_projects_definition() -> None:
    project, chart = ROOT / "crds/streampipelines.yaml", CHART / "files/streampipelines.yaml"
    assert chart.read_text() == project.read_text(), "run `make crd`"
