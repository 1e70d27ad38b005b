"""Keeps results in the user's cache, each named by a hash of its inputs."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DIGITS = 12


def cache() -> Path:
    """The project's directory in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tandem"


def recipe(*parts: str | Path) -> str:
    """Name a result by its inputs: texts, files, and directories with all their files.

    The name depends on contents and on names within a directory, not on times or places.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            _add(digest, part.encode())
        elif part.is_dir():
            for file in files_below(part):
                _add(digest, file.relative_to(part).as_posix().encode())
                _add(digest, file.read_bytes())
        else:
            _add(digest, part.name.encode())
            _add(digest, part.read_bytes())
    return digest.hexdigest()[:_DIGITS]


def files_below(directory: Path) -> list[Path]:
    """List the files of a source tree in sorted order, without compiled Python."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )


@contextmanager
def making(target: Path) -> Iterator[Path]:
    """Make `target` appear complete, or not at all.

    Yields a path in an empty directory beside the target. When the block ends without an error, the
    file or directory at that path replaces the target.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
        fresh = Path(scratch, target.name)
        yield fresh
        if target.is_dir():
            shutil.rmtree(target)
        fresh.replace(target)


def _add(digest: hashlib._Hash, data: bytes) -> None:
    digest.update(len(data).to_bytes(8, "big"))
    digest.update(data)
