"""The chart as `helm template` writes it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.programs import HELM_COMMAND, cached

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/tandem"

Objects = dict[tuple[str, str], dict[str, Any]]
"""Objects by kind and name; a namespace other than the release's stands before the name."""
Render = Callable[..., Objects]

NAMESPACE = "streaming"


@pytest.fixture(scope="session")
def helm() -> Path:
    path = cached(HELM_COMMAND)
    assert path.exists(), "build helm first: python -m cluster helm"
    return path


@pytest.fixture(scope="session")
def template(helm: Path) -> Callable[[Mapping[str, Any]], subprocess.CompletedProcess[str]]:
    """Run helm on values given as a document."""

    def run(values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        command = [str(helm), "template", "tandem", str(CHART), "--namespace", NAMESPACE]
        return subprocess.run(
            [*command, "--values", "-"],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def render(
    template: Callable[[Mapping[str, Any]], subprocess.CompletedProcess[str]],
) -> Render:
    """Give the objects that come of values."""

    def run(**values: Any) -> Objects:
        done = template(values)
        assert done.returncode == 0, done.stderr
        documents = [each for each in yaml.safe_load_all(done.stdout) if each]
        return {(each["kind"], _name(each)): each for each in documents}

    return run


def _name(document: Mapping[str, Any]) -> str:
    metadata = document["metadata"]
    namespace = metadata.get("namespace", NAMESPACE)
    name = str(metadata["name"])
    return name if namespace == NAMESPACE else f"{namespace}/{name}"
