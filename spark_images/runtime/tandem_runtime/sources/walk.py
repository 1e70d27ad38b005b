"""The way through the files of a partition, one piece after the other.

A position is 0 before the first file, then (name, offset, newest): the file, how far it was read
(bytes of its text, or rows of a Parquet file), and the latest change among the files passed. By
the last one a file that comes or grows after its place was passed is noticed, also after a
restart; it is rejected as a whole, never skipped in silence. Only a change that falls between two
looks into the directory right before a crash can escape.

A bounded source ends when no file sorts after the position. A watched one waits for more: for
files, and for lines of the last one. There only whole lines count: a last line without an end, and
a gzip or Parquet file without its end, are taken as they are once the file has not grown for two
seconds or a later file is there.

A file that vanishes before it could be opened is rejected as a whole and the next one follows. One
that vanishes while it is read is still read to its end, unless the process ends first.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from tandem_runtime.protocol.data import Position
from tandem_runtime.sources.file_readers import FileReader, Piece
from tandem_runtime.sources.listing import Listing, list_files
from tandem_runtime.sources.pace import Clock
from tandem_runtime.sources.source import BEGINNING, Rejected
from tandem_runtime.sources.watch import Watch

OpenFile = Callable[[Path, str, int], FileReader]
"""Opens a file by its path, its name in the source, and the offset to begin at."""

_SETTLED = 2.0
"""A watched file that has not grown for so many seconds is taken as it is."""


class Files(NamedTuple):
    """Which files are walked through, and how they are opened."""

    directory: Path
    partition: int
    partitions: int
    bounded: bool
    open_file: OpenFile


class Walk:
    """The files of a partition from a position on.

    `ended`: nothing will come any more.
    """

    def __init__(
        self, files: Files, position: Position, clock: Clock, left_out: list[Rejected]
    ) -> None:
        """Go to the position.

        `left_out` takes files that are rejected as a whole because of when they came or went. It
        belongs to the caller: what was told once cannot be found out again after an error.

        Raises:
            OSError: the file cannot be read now.
        """
        self.ended = False
        self._left_out = left_out
        self._files = files
        self._clock = clock
        self._name, self._offset, newest = _parts_of(position)
        self._reader: FileReader | None = None
        self._size = 0
        """Size of the open file when it was opened."""
        self._still_since: float | None = None
        """Since when an unfinished file has been seen not to grow."""
        self._watch = Watch(self._look, clock, newest, bounded=files.bounded)
        if self._name is not None:
            self._open(self._name, self._offset)

    @property
    def position(self) -> Position:
        """Where the next piece begins."""
        if self._name is None:
            return BEGINNING
        return (self._name, self._offset, self._watch.newest)

    def is_at(self, position: Position) -> bool:
        """Whether a position is this one, also if its tuple has become a list on the way."""
        return _parts_of(position) == _parts_of(self.position)

    def step(self, most: int) -> Piece | None:
        """The next rows, at most so many, perhaps none; None if there is nothing now.

        Raises:
            OSError: the directory or a file cannot be read now.
        """
        if self._reader is None:
            return self._next_file()
        piece = self._read(self._reader, most)
        if piece is not None or self._has_grown(self._reader):
            return piece
        following = self._following()
        if self._reader.unfinished:
            return self._finish(self._reader, following is not None)
        if following is not None:
            self._leave(self._reader)
        elif self._files.bounded:
            self.ended = True
        return None if following is None else self._next_file()

    def close(self) -> None:
        """Close the open file."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read(self, reader: FileReader, most: int) -> Piece | None:
        piece = reader.read(most)
        if reader.offset == self._offset:
            return None
        self._offset = reader.offset
        return piece

    def _has_grown(self, reader: FileReader) -> bool:
        """Whether there is more than when the file was opened; then it is opened again."""
        if reader.size_and_change()[0] == self._size:
            return False
        self._open(self._name or "", self._offset)
        return True

    def _finish(self, reader: FileReader, more_follows: bool) -> Piece | None:
        now = self._clock.now()
        if self._still_since is None:
            self._still_since = now
        settled = now - self._still_since >= _SETTLED
        if not (self._files.bounded or more_follows or settled):
            return None
        piece = reader.finish()
        self._offset = reader.offset
        return piece

    def _following(self) -> str | None:
        following, left_out = self._watch.after(self._name)
        self._left_out.extend(left_out)
        return following

    def _next_file(self) -> Piece | None:
        following = self._following()
        if following is None:
            self.ended = self._files.bounded
            return None
        self._name, self._offset = following, 0
        self._open(following, 0)
        return Piece([], [])

    def _leave(self, reader: FileReader) -> None:
        self._watch.passes(self._name or "", reader.size_and_change()[1])
        self.close()

    def _open(self, name: str, offset: int) -> None:
        self.close()
        self._still_since = None
        try:
            self._reader = self._files.open_file(self._files.directory / name, name, offset)
        except FileNotFoundError:
            read = f"beyond {offset} nothing was read of it" if offset else "it was not read"
            self._left_out.append(Rejected(name, None, f"the file is gone; {read}"))
            return
        self._size = self._reader.size_and_change()[0]

    def _look(self, known: Mapping[str, int]) -> Listing:
        files = self._files
        return list_files(files.directory, files.partition, files.partitions, known)


def _parts_of(position: Position) -> tuple[str | None, int, int]:
    if position == BEGINNING:
        return None, 0, 0
    name, offset, newest = cast(Sequence[object], position)
    return str(name), int(cast(int, offset)), int(cast(int, newest))
