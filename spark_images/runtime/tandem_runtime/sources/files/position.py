"""Positions in a sequence of files: all that determines which rows came before.

| part | |
|---|---|
| name, offset | the file, and how far it was read: bytes of its text, or rows of a Parquet file |
| newest | the latest change among the files passed |
| passed | a digest of the names of all files passed and of how far each was read |
| decisions | the last few files that were left out, rejected or taken as they stood |

So a replay knows which of the files that exist by now were left out, and the digest shows whether
it passed the same files, each up to the same offset.
"""

from enum import IntEnum
from typing import Any, NamedTuple, cast

import xxhash

from tandem_runtime.protocol.types import Position
from tandem_runtime.sources.base import BEGINNING

NOT_READ = -1
"""Offset of a file that was not read at all: it came after its place was passed."""

_REMEMBERED = 16
"""Maximum of decisions in a position; they are rare, and a position must stay small [12]."""

_DIGEST_BITS = 62

_NO_FILE = ""
"""Stands for the name in a position before the first file that has decisions."""


class FileVerdict(IntEnum):
    """A decision on a file; the numbers are part of stored positions and never change."""

    AS_IT_STOOD = 0
    """Read to the offset, a last line without a newline included; read on if the file grew."""
    LEFT_OUT = 1
    """Nothing beyond the offset is read."""
    REJECTED = 2
    """Reported as unreadable beyond the offset; not reported again there."""


class FileDecision(NamedTuple):
    """The decision on a file, kept because a second read may find the file different."""

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
        """Return plain values, which can be stored and sent."""
        if self.name is None and not self.decisions:
            return BEGINNING
        decided = [
            part for each in self.decisions for part in (each.file, each.offset, int(each.verdict))
        ]
        return (self.name or _NO_FILE, self.offset, self.newest, self.passed, *decided)

    def decided(self, decision: FileDecision) -> "FilesPosition":
        """Add a decision; drop the oldest if there are too many."""
        if decision in self.decisions:
            return self
        return self._replace(decisions=(*self.decisions, decision)[-_REMEMBERED:])

    def passes(self) -> "FilesPosition":
        """Leave the file and add it to the digest, with the offset it was read to."""
        return self.leaves()._replace(passed=passed_too(self.passed, self.name or "", self.offset))

    def leaves(self) -> "FilesPosition":
        """Leave the file and drop the decisions at its end, which no longer matter."""
        at_its_end = [
            FileDecision(self.name or "", self.offset, verdict) for verdict in _WHERE_READ
        ]
        return self._replace(
            decisions=tuple(each for each in self.decisions if each not in at_its_end)
        )


def passed_too(passed: int, name: str, end: int) -> int:
    """Return the digest after one more file, which was read up to `end`."""
    return xxhash.xxh64_intdigest(f"{passed}/{end}/{name}".encode()) & ((1 << _DIGEST_BITS) - 1)


def place_of(position: Position) -> FilesPosition:
    """Parse a position into its parts."""
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
