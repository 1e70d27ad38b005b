"""Writes the CRD of the declared version as a baseline: `python -m tests.release.crd_baseline`.

`tests/crds` checks that the CRD takes what every baseline takes. Until its version is tagged a
baseline may be written again; from then on it is frozen.
"""

from __future__ import annotations

from pathlib import Path

from tests.release.chart import CRD, ROOT, declared_version

COMMAND = "python -m tests.release.crd_baseline"


def baseline_of(version: str) -> str:
    """The path of a version's baseline."""
    return f"tests/crds/released/v1alpha1-{version}.yaml"


def baseline_text(version: str, crd: str) -> str:
    """The baseline of a version with this CRD."""
    _, document = crd.split("apiVersion:", 1)
    return (
        f"# The CRD of version {version}, written by `{COMMAND}`; frozen at its tag.\n"
        "# tests/crds/test_compatibility.py checks later CRDs against it.\n"
        f"apiVersion:{document}"
    )


def write_baseline(root: Path = ROOT) -> None:
    """Write the baseline of the declared version."""
    version = declared_version(root)
    baseline = root / baseline_of(version)
    baseline.parent.mkdir(parents=True, exist_ok=True)
    baseline.write_text(baseline_text(version, (root / CRD).read_text()))


if __name__ == "__main__":
    write_baseline()
