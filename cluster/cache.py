"""Where things are kept, and under which name: a hash of what they are made from."""

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
    """The directory of the user's cache that belongs to the project."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tandem"


def recipe(*parts: str | Path) -> str:
    """Name what is made from these parts: texts, files, and directories with all files in them.

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
    """List the files that are part of a source tree, in an order that does not depend on it."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )


@contextmanager
def making(target: Path) -> Iterator[Path]:
    """Give a place to make something that appears at `target` whole, or not at all.

    The place is a path in an empty directory beside the target; what lies there when the block ends
    without an error replaces the target.
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
