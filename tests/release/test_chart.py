"""The chart's copies follow what they are copies of."""

from pathlib import Path

import pytest
from tests.release.chart import (
    CHART,
    CHART_CRD,
    CHART_README,
    CRD,
    PROJECT,
    ROOT,
    VALUES,
    Value,
    declared_version,
    described_values,
    stamped,
    write_copies,
)

_CHART = "apiVersion: v2\nversion: {0}\nappVersion: {0}\nkubeVersion: '>=1.29.0-0'\n"


def test_chart_version_matches_project() -> None:
    chart = (ROOT / CHART).read_text()
    assert stamped(chart, declared_version()) == chart


def test_stamping_updates_chart_version_and_crd_copy(tmp_path: Path) -> None:
    files = {
        PROJECT: '[project]\nversion = "0.10.2"\n',
        CHART: _CHART.format("0.1.0"),
        CRD: "kind: CustomResourceDefinition\n",
        CHART_CRD: "",
        VALUES: "# The tag.\ntag: v1\n",
        CHART_README: "# Chart\n\n| value | default |\n|---|---|\n| `old` | 1 |\n\nMore.\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write_copies(tmp_path)
    assert (tmp_path / CHART).read_text() == _CHART.format("0.10.2")
    assert (tmp_path / CHART_CRD).read_text() == files[CRD]
    table = "| value | default | meaning |\n|---|---|---|\n| `tag` | `v1` | The tag. |\n"
    assert (tmp_path / CHART_README).read_text() == f"# Chart\n\n{table}\nMore.\n"


def test_values_are_described_by_the_comments_above_them() -> None:
    values = """# Of the file.

a:
  # First line,
  # second line.
  b: {c: 1}
  # Empty.
  d: []
# Text.
e: ""
"""
    assert described_values(values) == [
        Value("a.b", "{c: 1}", "First line, second line."),
        Value("a.d", "[]", "Empty."),
        Value("e", '""', "Text."),
    ]


def test_a_value_without_a_comment_is_named() -> None:
    with pytest.raises(ValueError, match=r"values\.yaml:3: .*a\.c"):
        described_values("a:\n\n  c: 1\n")
