"""Derives the chart's copies: `python -m tests.release.chart`, or `make chart`.

`pyproject.toml` declares the version and `crds/` the resource. Helm reads nothing outside of a
chart, so the chart holds a copy of both.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = "pyproject.toml"
CHART = "charts/tandem/Chart.yaml"
CRD = "crds/streampipelines.yaml"
CHART_CRD = "charts/tandem/files/streampipelines.yaml"

_STAMPED = re.compile(r"^(version|appVersion):.*$", re.MULTILINE)


def declared_version(root: Path = ROOT) -> str:
    """The version of this tree, from the one place that declares it."""
    version: str = tomllib.loads((root / PROJECT).read_text())["project"]["version"]
    return version


def stamped(chart: str, version: str) -> str:
    """The text of `Chart.yaml` for a version; the tag of all images follows `appVersion`."""
    return _STAMPED.sub(rf"\1: {version}", chart)


def write_copies(root: Path = ROOT) -> None:
    """Stamp the chart, and copy the resource into it."""
    chart = root / CHART
    chart.write_text(stamped(chart.read_text(), declared_version(root)))
    (root / CHART_CRD).write_text((root / CRD).read_text())


if __name__ == "__main__":
    write_copies()
