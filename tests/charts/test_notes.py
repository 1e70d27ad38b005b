"""What `helm install` prints. `helm template` does not render it, so a template includes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.charts.conftest import CHART

_OBJECT = """
apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data:
  notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}
"""


@pytest.mark.parametrize(
    ("registry", "warned"), [("localhost", True), ("localhost:5000", False), ("r.example/a", False)]
)
def test_warn_of_images_that_no_node_can_pull(
    helm: Path, tmp_path: Path, registry: str, warned: bool
) -> None:
    chart = tmp_path / "tandem"
    shutil.copytree(CHART, chart)
    (chart / "templates/notes.yaml").write_text(_OBJECT)
    command = [str(helm), "template", "tandem", str(chart), "--show-only", "templates/notes.yaml"]
    done = subprocess.run(
        [*command, "--set", f"images.registry={registry}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("WARNING: images.registry" in yaml.safe_load(done.stdout)["data"]["notes"]) == warned
