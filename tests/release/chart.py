"""Derives what the chart repeats: `python -m tests.release.chart`, or `make chart`.

`pyproject.toml` declares the version and `crds/` the resource; Helm reads nothing outside of a
chart, so the chart holds a copy of both. `values.yaml` describes the values; the chart's README
has them as a table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = "pyproject.toml"
CHART = "charts/tandem/Chart.yaml"
CRD = "crds/streampipelines.yaml"
CHART_CRD = "charts/tandem/files/streampipelines.yaml"
VALUES = "charts/tandem/values.yaml"
CHART_README = "charts/tandem/README.md"

_STAMPED = re.compile(r"^(version|appVersion):.*$", re.MULTILINE)
_TABLE = re.compile(r"^\| value \|.*?\n(?=\n|\Z)", re.MULTILINE | re.DOTALL)


class Value(NamedTuple):
    """A value of the chart."""

    path: str
    default: str
    """As it is written."""
    meaning: str


def declared_version(root: Path = ROOT) -> str:
    """The version of this tree, from the one place that declares it."""
    version: str = tomllib.loads((root / PROJECT).read_text())["project"]["version"]
    return version


def stamped(chart: str, version: str) -> str:
    """The text of `Chart.yaml` for a version; the tag of all images follows `appVersion`."""
    return _STAMPED.sub(rf"\1: {version}", chart)


def with_values(readme: str, values: str) -> str:
    """The text of the chart's README, with the table of a `values.yaml`."""
    rows = "".join(
        f"| `{each.path}` | `{each.default}` | {each.meaning} |\n"
        for each in described_values(values)
    )
    table = f"| value | default | meaning |\n|---|---|---|\n{rows}"
    return _TABLE.sub(lambda _: table, readme)


def described_values(values: str) -> list[Value]:
    """All values of a `values.yaml`, each with the comment above it.

    Raises:
        ValueError: a value has no comment.
    """
    return list(_described(values, yaml.compose(values), ""))


def _described(values: str, mapping: yaml.Node, prefix: str) -> Iterator[Value]:
    for key, value in mapping.value:
        path = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _described(values, value, f"{path}.")
        else:
            default = values[value.start_mark.index : value.end_mark.index]
            yield Value(path, default, _comment_above(values, key.start_mark.line, path))


def _comment_above(values: str, line: int, path: str) -> str:
    comment: list[str] = []
    for above in reversed(values.splitlines()[:line]):
        if not above.strip().startswith("#"):
            break
        comment.insert(0, above.strip().removeprefix("#").strip())
    if not comment:
        raise ValueError(f"values.yaml:{line + 1}: describe {path} in a comment above it")
    return " ".join(comment)


def write_copies(root: Path = ROOT) -> None:
    """Stamp the chart, copy the resource into it, and write the table of its README."""
    chart, readme = root / CHART, root / CHART_README
    chart.write_text(stamped(chart.read_text(), declared_version(root)))
    (root / CHART_CRD).write_text((root / CRD).read_text())
    readme.write_text(with_values(readme.read_text(), (root / VALUES).read_text()))


if __name__ == "__main__":
    write_copies()
