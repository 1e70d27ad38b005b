"""Values: documented, checked, and each of effect."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml
from tests.charts.conftest import CHART

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())

# Values that are documents of Kubernetes' own, which the table has as one.
WHOLE = {"operator.resources"}


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict) and value and path not in WHOLE:
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


def test_readme_table_lists_every_value_with_default() -> None:
    rows = re.findall(
        r"^\| `([\w.]+)` \| (.*?) \|", (CHART / "README.md").read_text(), re.MULTILINE
    )
    table = dict(rows)
    assert list(table) == [path for path, _ in leaves(VALUES)]
    for path, default in leaves(VALUES):
        assert yaml.safe_load(table[path].strip("`")) == default, path


def test_values_schema_covers_exactly_all_values() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def described(part: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
        for name, below in part["properties"].items():
            if "properties" in below:
                assert below["additionalProperties"] is False, f"{prefix}{name}"
                yield from described(below, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}"

    assert set(described(schema)) - {"global"} == {path for path, _ in leaves(VALUES)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"image": {"tag": "1"}},
        {"images": {"tags": "1"}},
        {"images": {"pullPolicy": "Sometimes"}},
        {"images": {"registry": "example.com/"}},
        {"watch": {"namespaces": "default"}},
        {"watch": {"namespaces": ["Default"]}},
        {"operator": {"replicas": "1"}},
        {"operator": {"logLevel": "LOUD"}},
        {"operator": {"workers": 0}},
        {"operator": {"timeouts": {"failover": 5}}},
        {"operator": {"timeouts": {"replacement": "30"}}},
        {"operator": {"timeouts": {"boot": "1m"}}},
        {"operator": {"podLabels": {"app.kubernetes.io/name": "mine"}}},
        {"podMonitor": {"interval": "15"}},
        {"podDisruptionBudget": {"maxUnavailable": "half"}},
        {"serviceAccount": {"create": False}},
    ],
    ids=json.dumps,
)
def test_wrong_values_are_refused(
    template: Callable[[Mapping[str, Any]], subprocess.CompletedProcess[str]],
    wrong: Mapping[str, Any],
) -> None:
    assert template(wrong).returncode != 0
