"""`operator/` is a source root that must never shadow the standard library's module."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("python_path", [None, "."])
def test_import_operator_is_the_standard_librarys(python_path: str | None) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if python_path is not None:
        environment["PYTHONPATH"] = python_path
    found = subprocess.run(
        [sys.executable, "-c", "import operator; print(operator.__file__)"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert Path(found).parent == Path(sysconfig.get_path("stdlib"))


def test_source_roots_are_not_packages() -> None:
    for root in ("core", "operator", "spark_images", "spark_images/runtime", "tools"):
        assert not (ROOT / root / "__init__.py").exists()
