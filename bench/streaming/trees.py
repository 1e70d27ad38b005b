"""Prepares the trees of two commits, each to run by itself, from one set of installed packages."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from bench.streaming.report import ROOT, say
from bench.streaming.tandem_run import Installation

_ARCHIVE_VARIABLE = "TANDEM_CLASS_ARCHIVE"
_BUILD_JAR = "spark_images/java/build.py"
_JARS = "spark_images/**/jars/tandem-spark.*"
# Its path in earlier commits, and its path now.
_ARCHIVE_MAKERS = ("*/spark/archive.py", "*/spark/jvm/class_archive.py")
_WHEELS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tandem", "wheels")
_REQUIRED_EXTRAS = ("spark",)
_PROGRAM = """\
#!{python}
import sys

from {module} import {function}

sys.exit({function}())
"""


class CannotPrepare(Exception):
    """A tree cannot be run; the message says why."""


@dataclass(frozen=True)
class Side:
    """One of the two commits, ready to run."""

    name: str
    commit: str
    """The commit's hash, with `+` after it if files were changed since."""
    installation: Installation


@contextmanager
def checked_out(revision: str, directory: Path) -> Iterator[Path]:
    """Check out a commit in a worktree for the duration of the block.

    Raises:
        CannotPrepare: there is no such commit.
    """
    _git("worktree", "add", "--quiet", "--detach", str(directory), commit_of(revision))
    try:
        yield directory
    finally:
        _git("worktree", "remove", "--force", str(directory))


def commit_of(revision: str) -> str:
    """The hash of a commit.

    Raises:
        CannotPrepare: there is no such commit.
    """
    return _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")


def commit_of_this_tree() -> str:
    """The hash of the current commit, with `+` after it if files were changed since."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return commit_of("HEAD") + ("+" if changed else "")


def prepare(name: str, commit: str, tree: Path, directory: Path) -> Side:
    """Make an environment that runs exactly this tree's code, with its jar and class archive.

    Both sides are made in the same way, so that nothing but their code differs.

    Raises:
        CannotPrepare: something that the tree needs cannot be made.
    """
    say(f"{name}: {commit[:12]} in {tree}")
    project = tomllib.loads((tree / "pyproject.toml").read_text())
    roots = source_roots(tree, project)
    packages = directory / "packages"
    python = make_environment(directory, [*roots, packages])
    _install_missing(project, tree, packages)
    environment = _environment(directory)
    _check_imports(python, roots, environment)
    _make_jar(python, tree, environment)
    _make_archive(python, roots, environment)
    return Side(name, commit, Installation(_write_program(python, project), environment))


def source_roots(tree: Path, project: Mapping[str, Any]) -> list[Path]:
    """The directories that hold a tree's packages."""
    return [tree / where for where in project["tool"]["setuptools"]["packages"]["find"]["where"]]


def make_environment(directory: Path, roots: Sequence[Path]) -> Path:
    """Create a virtual environment with source roots and the packages installed here.

    Returns its Python. A path in a .pth file is added, but .pth files in that path are ignored.
    That excludes the editable install of this tree, which would replace what another tree lacks.
    """
    venv.create(directory, with_pip=False)
    python = directory / "bin" / "python"
    base = {"base": str(directory), "platbase": str(directory)}
    site = Path(sysconfig.get_path("purelib", "venv", base))
    installed = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site / "tree.pth").write_text("".join(f"{path}\n" for path in (*roots, *installed)))
    return python


def _environment(directory: Path) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    # An archive fits one jar only, and the cache keeps few of them.
    archive = directory / "archive" / "classes.jsa"
    archive.parent.mkdir(exist_ok=True)
    return {**inherited, _ARCHIVE_VARIABLE: str(archive)}


def _install_missing(project: Mapping[str, Any], tree: Path, packages: Path) -> None:
    """Install what a tree requires and this one does not, with the tree's versions."""
    extras = project["project"]["optional-dependencies"]
    required = [
        *project["project"]["dependencies"],
        *(each for extra in _REQUIRED_EXTRAS for each in extras[extra]),
    ]
    missing = [each for each in required if not _is_installed(each)]
    packages.mkdir()
    if not missing:
        return
    say(f"  installing {', '.join(missing)}")
    lock = ("--constraint", str(tree / "requirements.lock"), "--find-links", str(_WHEELS))
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages))
    _run([*pip, *lock, *missing])


def _is_installed(requirement: str) -> bool:
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _check_imports(python: Path, roots: Sequence[Path], environment: Mapping[str, str]) -> None:
    """Check that each package of a tree is imported from that tree."""
    for root in roots:
        for package in sorted(path.parent for path in root.glob("*/__init__.py")):
            code = f"import {package.name}; print({package.name}.__file__)"
            found = Path(_run([str(python), "-c", code], environment=environment))
            if found.resolve().parent != package.resolve():
                raise CannotPrepare(f"{package.name} comes from {found} instead of {package}")


def _make_jar(python: Path, tree: Path, environment: Mapping[str, str]) -> None:
    """Use this tree's jar if it is made from the same sources, else build one."""
    for path in ROOT.glob(_JARS):
        copy = tree / path.relative_to(ROOT)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
    # Builds nothing if the present jar was made from the tree's sources.
    say(f"  {_run([str(python), str(tree / _BUILD_JAR)], environment=environment)}")


def _make_archive(python: Path, roots: Sequence[Path], environment: Mapping[str, str]) -> None:
    for root in roots:
        for path in (found for pattern in _ARCHIVE_MAKERS for found in root.glob(pattern)):
            module = ".".join(path.relative_to(root).with_suffix("").parts)
            say("  class archive, which takes half a minute")
            _run([str(python), "-m", module], environment=environment)
    if not Path(environment[_ARCHIVE_VARIABLE]).exists():
        raise CannotPrepare("the tree makes no class archive")


def _write_program(python: Path, project: Mapping[str, Any]) -> Path:
    """Write the `tandem` program that the tree's project file declares."""
    module, _, function = project["project"]["scripts"]["tandem"].partition(":")
    program = python.with_name("tandem")
    program.write_text(_PROGRAM.format(python=python, module=module, function=function))
    program.chmod(0o755)
    return program


def _git(*arguments: str) -> str:
    return _run(["git", "-C", str(ROOT), *arguments])


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a command; return its output.

    Raises:
        CannotPrepare: it fails.
    """
    done = subprocess.run(  # noqa: S603 - our own programs
        command, env=environment, cwd=ROOT.anchor, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CannotPrepare(f"{' '.join(command)}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout.strip()
