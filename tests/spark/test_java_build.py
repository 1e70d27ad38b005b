"""Building the Java module."""

import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "spark_images" / "java" / "build.py"


@pytest.fixture
def script() -> Any:
    spec = importlib.util.spec_from_file_location("java_build", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_jar_is_built_once(script: Any, tmp_path: Path) -> None:
    script.JAR = tmp_path / "jars" / "one.jar"
    script.STAMP = tmp_path / "jars" / "one.built-from"
    assert script.build()
    assert zipfile.is_zipfile(script.JAR)
    assert not script.build()


def test_missing_compiler_error_names_package(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.JAR = tmp_path / "jars" / "one.jar"
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(script.CannotBuild) as missing:
        script.build()
    assert "openjdk-17-jdk-headless" in str(missing.value)
