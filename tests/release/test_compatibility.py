"""The table of supported versions says what the code declares."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml
from cluster.versions import HELM, KUBERNETES, PUBLISHED_NODE
from tests.release.chart import CHART, PROJECT, ROOT

from tandem_runtime.spark.jvm.java import OLDEST

_ROW = re.compile(r"^\| (\w+) \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def compatibility() -> dict[str, tuple[str, str]]:
    """What is supported and what is tested, by the name of the program."""
    rows = _ROW.findall((ROOT / "docs/compatibility.md").read_text())
    return {name: (supported, tested) for name, supported, tested in rows}


def test_kubernetes_versions_match_documentation(compatibility: dict[str, tuple[str, str]]) -> None:
    supported, tested = compatibility["Kubernetes"]
    oldest = yaml.safe_load((ROOT / CHART).read_text())["kubeVersion"]
    assert oldest == f">={supported.split()[0]}.0-0"
    assert re.findall(r"[\d.]+\d", tested) == [
        KUBERNETES.removeprefix("v"),
        PUBLISHED_NODE.rpartition(":v")[2],
    ]


def test_helm_version_matches_documentation(compatibility: dict[str, tuple[str, str]]) -> None:
    assert compatibility["Helm"][1] == HELM.removeprefix("v")


def test_python_and_spark_versions_match_documentation(
    compatibility: dict[str, tuple[str, str]],
) -> None:
    project = tomllib.loads((ROOT / PROJECT).read_text())["project"]
    assert project["requires-python"] == f">={compatibility['Python'][0].split()[0]}"
    spark = f"pyspark=={compatibility['Spark'][1]}"
    assert spark in project["optional-dependencies"]["spark"]


def test_java_version_matches_documentation(compatibility: dict[str, tuple[str, str]]) -> None:
    assert compatibility["Java"][0].split()[0] == str(OLDEST)
