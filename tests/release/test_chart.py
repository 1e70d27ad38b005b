"""The chart's copies follow what they are copies of."""

from pathlib import Path

from tests.release.chart import (
    CHART,
    CHART_CRD,
    CRD,
    PROJECT,
    ROOT,
    declared_version,
    stamped,
    write_copies,
)

_CHART = "apiVersion: v2\nversion: {0}\nappVersion: {0}\nkubeVersion: '>=1.29.0-0'\n"


def test_chart_has_the_projects_version() -> None:
    chart = (ROOT / CHART).read_text()
    assert stamped(chart, declared_version()) == chart


def test_copies_follow_the_project(tmp_path: Path) -> None:
    files = {
        PROJECT: '[project]\nversion = "0.10.2"\n',
        CHART: _CHART.format("0.1.0"),
        CRD: "kind: CustomResourceDefinition\n",
        CHART_CRD: "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write_copies(tmp_path)
    assert (tmp_path / CHART).read_text() == _CHART.format("0.10.2")
    assert (tmp_path / CHART_CRD).read_text() == files[CRD]
