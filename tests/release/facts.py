"""Gathers what the checks judge: from git, from files, and from a wheel that it builds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import yaml
from tests.release.chart import ROOT, declared_version
from tests.release.checks import Wheel, parse_version
from tests.release.crd_baseline import baseline_of
from tests.wire.golden import DEFAULTS, as_text, defaults_text, goldens

_GOLDEN = "tests/wire/golden"
_DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "charts/**/*.md")
_SOURCE_ROOTS = ("core", "operator", "spark_images/runtime", "tools")
_JARS = "spark_images/runtime/tandem_runtime/spark/jars"
_RUN_COMMAND = (
    "import sys; sys.path.insert(0, sys.argv.pop()); import tandem_cli; tandem_cli.main()"
)


class GatheringFailed(Exception):
    """A command that facts come from failed; the message is the end of its output."""


def git(*arguments: str, root: Path = ROOT) -> list[str]:
    """The lines that git prints.

    Raises:
        GatheringFailed: it failed.
    """
    return _run(["git", *arguments], root).splitlines()


def changed_files(root: Path = ROOT) -> list[str]:
    """What is not committed, untracked files included."""
    return [line[3:] for line in git("status", "--porcelain", root=root)]


def released_tags(*conditions: str, root: Path = ROOT) -> list[str]:
    """Tags of releases that fulfil conditions of `git tag`."""
    tags = git("tag", "--list", "v*", *conditions, root=root)
    return [tag for tag in tags if parse_version(tag.removeprefix("v"))]


def earlier_tags(root: Path = ROOT) -> list[str]:
    """Tags of releases, without those of this commit: a tagged tree can be checked again."""
    return released_tags("--no-contains", "HEAD", root=root)


def changed_frozen_files(root: Path = ROOT) -> list[str]:
    """Golden files and CRD baselines that differ from those of the release that wrote them."""
    return [
        file
        for tag in released_tags(root=root)
        for file in git("diff", "--name-only", tag, "--", *_frozen(tag), root=root)
    ]


def _frozen(tag: str) -> tuple[str, str]:
    version = tag.removeprefix("v")
    return f"{_GOLDEN}/{version}", baseline_of(version)


def stored_baseline(root: Path = ROOT) -> str | None:
    """The CRD's baseline of this version; None if it is missing."""
    baseline = root / baseline_of(declared_version(root))
    return baseline.read_text() if baseline.exists() else None


def documents(root: Path = ROOT) -> dict[str, str]:
    """Everything that readers copy commands from, by path."""
    paths = sorted(path for pattern in _DOCUMENTS for path in root.glob(pattern))
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def read_yaml(name: str, root: Path = ROOT) -> dict[str, Any]:
    """A document of the tree."""
    document: dict[str, Any] = yaml.safe_load((root / name).read_text())
    return document


def stored_golden(root: Path = ROOT) -> dict[str, str]:
    """The golden files of this version, as they are."""
    folder = root / _GOLDEN / declared_version(root)
    files = (path for path in folder.rglob("*.*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def written_golden() -> dict[str, str]:
    """The golden files of this version, as this build writes them."""
    values = {each.file: as_text(each.file, each.write(each.value)) for each in goldens()}
    return {**values, DEFAULTS: defaults_text()}


def modules(root: Path = ROOT) -> list[str]:
    """The Python files that a wheel has to hold."""
    tracked = git("ls-files", "--", *(f"{source}/tandem*" for source in _SOURCE_ROOTS), root=root)
    return [
        Path(file).relative_to(source).as_posix()
        for file in tracked
        for source in _SOURCE_ROOTS
        if file.startswith(f"{source}/") and file.endswith(".py")
    ]


def build_wheel(root: Path = ROOT) -> Wheel:
    """Build a wheel of the tracked files and the Java module, and look into it.

    In a directory of its own: setuptools packs whatever earlier builds left in `build/`.

    Raises:
        GatheringFailed: it cannot be built, or its command does not run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        sources, wheels = Path(scratch, "sources"), Path(scratch, "wheels")
        for file in _packed_files(root):
            copy = sources / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        _run([*pip, "--wheel-dir", str(wheels), str(sources)], root)
        (wheel,) = wheels.glob("*.whl")
        return read_wheel(wheel)


def read_wheel(path: Path) -> Wheel:
    """What a wheel holds, and what its command says.

    Raises:
        GatheringFailed: the command does not run.
    """
    with zipfile.ZipFile(path) as archive:
        files = tuple(archive.namelist())
        (metadata,) = (file for file in files if file.endswith(".dist-info/METADATA"))
        version = Parser().parsestr(archive.read(metadata).decode())["Version"]
    command = [sys.executable, "-c", _RUN_COMMAND, "--version", str(path)]
    return Wheel(version, files, _run(command, path.parent).strip())


def _packed_files(root: Path) -> Iterator[Path]:
    tracked = ("pyproject.toml", "README.md", "LICENSE", *_SOURCE_ROOTS)
    yield from (root / file for file in git("ls-files", "--", *tracked, root=root))
    yield from (root / _JARS).glob("*.jar")


def _run(command: list[str], root: Path) -> str:
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise GatheringFailed(f"{' '.join(command[:4])}: {' / '.join(said)}")
    return done.stdout
