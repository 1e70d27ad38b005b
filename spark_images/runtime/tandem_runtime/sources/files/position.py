"""A position among files: all that determines which rows came before it.

| part | |
|---|---|
| name, offset | the file, and how far it was read: bytes of its text, or rows of a Parquet file |
| newest | the latest change among the files passed |
| passed | a digest of the names of all files passed and of how far each was read |
| decisions | what was left out, rejected or taken as it stood, the last few |

So a replay knows which files were left out although they exist by now, and the digest shows whether
it passed the same files, each as far as it was read then.
"""

from enum import IntEnum
from typing import Any, NamedTuple, cast

import xxhash

from tandem_runtime.protocol.types import Position
from tandem_runtime.sources.base import BEGINNING

NOT_READ = -1
"""Offset of a file of which nothing was read: it came after its place was passed."""

_REMEMBERED = 16
"""Decisions that a position carries; such files are rare, and a position must stay small [12]."""

_DIGEST_BITS = 62

_NO_FILE = ""
"""Name in a position before the first file, where something was decided already."""


class FileVerdict(IntEnum):
    """A decision on a file; the numbers are part of positions, and never change."""

    AS_IT_STOOD = 0
    """Its last line had no end at the offset and was taken; it was read on when it had grown."""
    LEFT_OUT = 1
    """Nothing beyond the offset is read."""
    REJECTED = 2
    """Reported as unreadable beyond the offset; not reported again there."""


class FileDecision(NamedTuple):
    """The decision on a file that may look different when it is read again."""

    file: str
    offset: int
    verdict: FileVerdict


_WHERE_READ = (FileVerdict.AS_IT_STOOD, FileVerdict.REJECTED)
"""Verdicts that matter only as long as the file is being read."""


class FilesPosition(NamedTuple):
    """A position among files."""

    name: str | None = None
    """None: before the first file."""
    offset: int = 0
    newest: int = 0
    passed: int = 0
    decisions: tuple[FileDecision, ...] = ()

    def as_position(self) -> Position:
        """As plain values, which can be stored and sent."""
        if self.name is None and not self.decisions:
            return BEGINNING
        decided = [
            part for each in self.decisions for part in (each.file, each.offset, int(each.verdict))
        ]
        return (self.name or _NO_FILE, self.offset, self.newest, self.passed, *decided)

    def decided(self, decision: FileDecision) -> "FilesPosition":
        """Add a decision, and drop the oldest if there are too many."""
        if decision in self.decisions:
            return self
        return self._replace(decisions=(*self.decisions, decision)[-_REMEMBERED:])

    def passes(self) -> "FilesPosition":
        """Leave the file and add it to the digest, with how far it was read."""
        return self.leaves()._replace(passed=passed_too(self.passed, self.name or "", self.offset))

    def leaves(self) -> "FilesPosition":
        """Leave the file: drops the decisions at its end, which no longer matter."""
        at_its_end = [
            FileDecision(self.name or "", self.offset, verdict) for verdict in _WHERE_READ
        ]
        return self._replace(
            decisions=tuple(each for each in self.decisions if each not in at_its_end)
        )


def passed_too(passed: int, name: str, end: int) -> int:
    """The digest after one more file, which was read as far as `end`."""
    return xxhash.xxh64_intdigest(f"{passed}/{end}/{name}".encode()) & ((1 << _DIGEST_BITS) - 1)


def place_of(position: Position) -> FilesPosition:
    """The parts of a position."""
    if position == BEGINNING:
        return FilesPosition()
    name, offset, newest, passed, *decided = cast("tuple[Any, ...]", position)
    decisions = zip(decided[::3], decided[1::3], decided[2::3], strict=True)
    return FilesPosition(
        name=name or None,
        offset=offset,
        newest=newest,
        passed=passed,
        decisions=tuple(
            FileDecision(file, end, FileVerdict(verdict)) for file, end, verdict in decisions
        ),
    )
