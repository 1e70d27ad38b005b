"""Writes and rotates small files that other processes read meanwhile."""

import os
from pathlib import Path

MOST_BYTES = 4 * 2**20
"""Size in bytes at which a file is rotated; one older file is kept."""


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file in one step: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)


def append(path: Path, line: str, most: int = MOST_BYTES) -> None:
    """Append a line; rotates a file that has reached `most` bytes first."""
    if path.exists() and path.stat().st_size >= most:
        path.replace(_older(path))
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def cut_short(path: Path, most: int = MOST_BYTES) -> None:
    """Rotate a file that a process keeps appending to, by copying and truncating it.

    Lines written between the two are lost: this is for logs.
    """
    if not path.exists() or path.stat().st_size < most:
        return
    with path.open("rb") as source, _older(path).open("wb") as target:
        source.seek(-most, os.SEEK_END)
        target.write(source.read())
    os.truncate(path, 0)


def _older(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")
