"""What the chart repeats is what it repeats; Helm reads nothing outside of a chart."""

from tests.charts.conftest import CHART, ROOT
from tests.release.chart import with_values


def test_chart_definition_matches_project() -> None:
    project, chart = ROOT / "crds/streampipelines.yaml", CHART / "files/streampipelines.yaml"
    assert chart.read_text() == project.read_text(), "run `make crd`"


def test_readme_values_match_comments() -> None:
    readme = (CHART / "README.md").read_text()
    written = with_values(readme, (CHART / "values.yaml").read_text())
    assert readme == written, "run `make chart`"
