"""Installs missing system programs from Debian packages."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cluster.steps import StepFailed, step, works

# Directories of programs that only other programs call.
_OUTSIDE_THE_PATH = (Path("/usr/lib/podman"), Path("/usr/sbin"), Path("/sbin"))


def need(programs: Mapping[str, str]) -> None:
    """Install missing programs with apt if we are root, else fail.

    Args:
        programs: names of programs, each with its Debian package.

    Raises:
        StepFailed: they are missing and cannot be installed; the message names the packages.
    """
    packages = sorted({package for name, package in programs.items() if not _found(name)})
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise StepFailed(
            f"missing programs; on Debian or Ubuntu, as root: apt-get install {' '.join(packages)}"
        )
    with tempfile.TemporaryDirectory(prefix="tandem-packages-") as archives:
        _install(packages, Path(archives))


def _install(packages: list[str], archives: Path) -> None:
    """Install packages, which are downloaded into a directory of their own.

    Debian's images for containers empty apt's directory after each call of dpkg. An essential
    package is installed by a call of its own, and the next one finds nothing.
    """
    archives.chmod(0o755)
    (archives / "partial").mkdir()
    install = ["apt-get", "install", "-y", "--no-install-recommends"]
    install += ["-o", f"Dir::Cache::archives={archives}", *packages]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    if not works([*install, "--download-only"], env=env):
        step("reading the lists of Debian packages", ["apt-get", "update"], env=env)
    step(f"installing {', '.join(packages)}", install, env=env)


def _found(program: str) -> bool:
    if shutil.which(program) is not None:
        return True
    return any((place / program).exists() for place in _OUTSIDE_THE_PATH)
