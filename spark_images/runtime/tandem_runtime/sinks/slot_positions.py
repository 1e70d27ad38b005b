"""Stores the position of each slot in a file name that is swapped by a rename.

Beside the results, `_tandem` holds `uid`, the pipeline's id, and exactly one file
`position-<epoch>-<rows>-<draft>`: the last epoch that slot 0 has delivered, the rows of all its
epochs so far, and the draft with the rows of that epoch (0 if it has none). Moving the position is
a rename of that file. It succeeds only if the name is still the old one, so it is a compare-and-set
without a lock: of two merges one wins, and one that was frozen during a move never finds the old
name again. The positions of other slots are in `_tandem/slot-<slot>`.

Each of these directories is created by a rename, with its position already in it; the rename fails
if the directory exists, and the directory is never removed. So a slot never gets a second position.
When a slot has ended, its file is renamed to `sealed-…`: no position is left that could be moved.
"""

import errno
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from tandem_runtime.sinks.base import ForeignSink, SinkFailed

_POSITION = re.compile(r"(position|sealed)-([0-9]{12})-([0-9]+)-([0-9a-f]{32}(?:-[0-9]+)?|0)")
_RESULT = re.compile(r"[0-9]{12}(-[0-9]+)?\..+")
_SLOT = re.compile(r"slot-([0-9]+)")
_LOOKS = 100


class Position(NamedTuple):
    """A delivered epoch, the rows delivered up to it, and the draft with its own rows.

    The draft of an epoch that several slots share ends with the slot's number.
    """

    epoch: int
    rows: int
    draft: str | None = None
    sealed: bool = False

    @property
    def name(self) -> str:
        """The name of the file that stores this position."""
        word = "sealed" if self.sealed else "position"
        return f"{word}-{self.epoch:012}-{self.rows}-{self.draft or 0}"


def establish(directory: Path, uid: str) -> Path:
    """Create the directory of results, and `_tandem` in it, unless they exist.

    Returns:
        The directory `_tandem`.

    Raises:
        ForeignSink: it belongs to another pipeline, or has results of unknown origin.
        OSError: it cannot be created or read.
    """
    beside = directory / "_tandem"
    if not beside.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        has_results = any(_RESULT.fullmatch(name) for name in _names(directory))
        # Another merge may have created it meanwhile; only results older than that have no owner.
        if has_results and not beside.is_dir():
            raise ForeignSink(
                f"{directory} holds results that name no pipeline as their owner: "
                f"{_another(directory)}"
            )
        _appear(beside, {"uid": uid, Position(0, 0).name: ""})
    owner = (beside / "uid").read_text("utf-8")
    if owner != uid:
        raise ForeignSink(
            f"{directory} holds results of another pipeline (uid {owner}, this one has {uid}): "
            f"{_another(directory)}"
        )
    return beside


def _another(directory: Path) -> str:
    elsewhere = "in phase Refused or in a new pipeline, name another sink directory"
    return f"delete {directory} if its results are not needed; or, {elsewhere}"


def open_slot(beside: Path, slot: int, position: Position) -> Path:
    """Return the directory of a slot's position; create it with this position if it is missing.

    Raises:
        OSError: it cannot be created.
    """
    if slot == 0:
        return beside
    place = beside / f"slot-{slot}"
    if not place.is_dir():
        _appear(place, {position.name: ""})
    return place


def other_slots(beside: Path) -> list[Path]:
    """Return the directories of all slots but slot 0."""
    return sorted(path for path in beside.iterdir() if _SLOT.fullmatch(path.name))


def read_position(beside: Path) -> Position:
    """Read the position, current or shortly outdated.

    Raises:
        SinkFailed: there is none.
        OSError: it cannot be read.
    """
    for _ in range(_LOOKS):
        found = [_POSITION.fullmatch(name) for name in _names(beside)]
        positions = [
            Position(
                epoch=int(match[2]),
                rows=int(match[3]),
                draft=None if match[4] == "0" else match[4],
                sealed=match[1] == "sealed",
            )
            for match in found
            if match
        ]
        # A listing during a rename may show both names, or neither: then it is repeated.
        if positions:
            return max(positions, key=lambda position: (position.epoch, position.sealed))
    raise SinkFailed(
        f"the file position-… is missing in {beside}: restore the latest one from a backup; an "
        "older one makes the sink SinkRewound"
    )


def move_position(beside: Path, old: Position, new: Position) -> None:
    """Move the position atomically; do nothing if it is no longer the old one.

    Read the position to see whether it moved: on a network file system a successful rename may look
    like a failure, because it was retried after its response was lost.

    Raises:
        OSError: the rename failed; the position may have moved nevertheless.
    """
    try:
        (beside / old.name).rename(beside / new.name)
    except FileNotFoundError:
        return
    sync(beside)


def sync(directory: Path) -> None:
    """Sync a directory, so that its file names survive a crash of the machine."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def _appear(place: Path, files: Mapping[str, str]) -> None:
    """Create a directory with its files atomically, unless it exists."""
    prepared = place.with_name(f".tandem-{uuid4().hex}")
    try:
        prepared.mkdir()
        for name, text in files.items():
            (prepared / name).write_text(text, "utf-8")
        prepared.rename(place)
    except OSError as error:
        shutil.rmtree(prepared, ignore_errors=True)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
