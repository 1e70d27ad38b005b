"""The position of a directory of results: a file whose name is swapped.

Beside the results, `_tandem` holds `uid`, the pipeline's id, and exactly one file
`position-<epoch>-<rows>-<draft>`: the last epoch delivered, the rows of all epochs so far, and the
draft with the rows of that epoch (0 if it has none). Moving the position is a rename of that file.
It succeeds only if the name is still the old one, so it is a compare-and-set without a lock: of
two merges one wins, and whoever slept through a move finds the old name gone, for ever.

`_tandem` appears with both files in it by the rename of a directory, which fails if it is there
already. So there is never a second position.
"""

import errno
import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from tandem_runtime.sinks.sink import ForeignSink, SinkFailed

_POSITION = re.compile(r"position-([0-9]{12})-([0-9]+)-([0-9a-f]{32}|0)")
_RESULT = re.compile(r"[0-9]{12}\..+")
_LOOKS = 100


class Position(NamedTuple):
    """An epoch, the rows delivered up to it, and the draft with its own rows."""

    epoch: int
    rows: int
    draft: str | None = None

    @property
    def name(self) -> str:
        """The name of the file that says so."""
        return f"position-{self.epoch:012}-{self.rows}-{self.draft or 0}"


def establish(directory: Path, uid: str) -> Path:
    """Make the directory and what belongs beside the results if it is not there.

    Returns:
        The directory beside the results.

    Raises:
        ForeignSink: it belongs to another pipeline, or has results of unknown origin.
        OSError: it cannot be made or read.
    """
    beside = directory / "_tandem"
    if not beside.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        has_results = any(_RESULT.fullmatch(name) for name in _names(directory))
        # Another merge may have begun meanwhile; what was there before it is nobody's.
        if has_results and not beside.is_dir():
            raise ForeignSink(
                f"{directory} holds results, but not whose: name another directory in the "
                "manifest, or remove this one"
            )
        _appear(beside, uid)
    owner = (beside / "uid").read_text("utf-8")
    if owner != uid:
        raise ForeignSink(
            f"{directory} belongs to another pipeline (uid {owner}, this one has {uid}): name "
            "another directory in the manifest, or remove this one to start afresh"
        )
    return beside


def read_position(beside: Path) -> Position:
    """The position now, or a moment ago.

    Raises:
        SinkFailed: there is none.
        OSError: it cannot be read.
    """
    for _ in range(_LOOKS):
        found = [_POSITION.fullmatch(name) for name in _names(beside)]
        positions = [
            Position(int(match[1]), int(match[2]), None if match[3] == "0" else match[3])
            for match in found
            if match
        ]
        # A listing that meets a rename may show both names, or neither: then look again.
        if positions:
            return max(positions, key=lambda position: position.epoch)
    raise SinkFailed(f"{beside} has lost its position; restore it, or remove the directory")


def move_position(beside: Path, old: Position, new: Position) -> None:
    """Move the position in one step, or not at all if it is not the old one any more.

    Whether it moved tells the position: where the directory lies on a network, a move that was
    made may look as if it was not, because it was asked for again after its answer was lost.

    Raises:
        OSError: it could not be done; it may have been done nevertheless.
    """
    try:
        (beside / old.name).rename(beside / new.name)
    except FileNotFoundError:
        return
    sync(beside)


def sync(directory: Path) -> None:
    """See that the names in a directory outlive the machine."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def _appear(beside: Path, uid: str) -> None:
    prepared = beside.with_name(f".tandem-{uuid4().hex}")
    try:
        prepared.mkdir()
        (prepared / "uid").write_text(uid, "utf-8")
        (prepared / Position(0, 0).name).touch()
        prepared.rename(beside)
    except OSError as error:
        shutil.rmtree(prepared, ignore_errors=True)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
