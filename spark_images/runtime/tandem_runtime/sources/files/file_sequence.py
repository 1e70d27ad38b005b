"""Reads the files of a partition in order, one piece after the other.

A position is 0 before the first file, then as in `position`: the file, how far it was read, and the
decisions so far. It carries the latest change among the files passed, so a file that appears or
grows after its place was passed is detected even after a restart. That file is rejected as a whole,
never skipped silently. Only a change between two listings right before a crash can be missed.

A bounded source ends when no file sorts after the position. A watched one waits for more files, and
for more lines of the last file, of which it reads whole lines only. It accepts a last line without
a newline, or a truncated gzip or Parquet file, once the file has not grown for two seconds or a
later file exists.

A file that vanishes before it is opened is rejected as a whole, and the next one follows. One that
vanishes while it is read is still read to its end, unless the process ends first.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tandem_runtime.protocol.types import Position
from tandem_runtime.sources.base import Rejected
from tandem_runtime.sources.files.directory_watch import DirectoryWatch
from tandem_runtime.sources.files.listing import Listing, list_files
from tandem_runtime.sources.files.position import FileDecision, FileVerdict, place_of
from tandem_runtime.sources.formats.file_readers import FileReader, Piece
from tandem_runtime.sources.pacing import Clock

OpenFile = Callable[[Path, str, int, int | None], FileReader]
"""Opens a file by its path, its name in the source, the offset to begin at, and the offset to end
at; None for the end of the file."""

_SETTLED = 2.0
"""Seconds without growth after which a watched file is taken as it is."""


class Files(NamedTuple):
    """The files to read, and how they are opened."""

    directory: Path
    partition: int
    partitions: int
    bounded: bool
    open_file: OpenFile


class Walk:
    """Walks through the files of a partition from a position on.

    `ended` is true once no rows will follow.
    """

    def __init__(
        self, files: Files, position: Position, clock: Clock, left_out: list[Rejected]
    ) -> None:
        """Go to the position.

        `left_out` collects files that are rejected as a whole because they came late or vanished.
        The caller keeps it across errors: a file that vanished is not found again.

        Raises:
            OSError: the file cannot be read now.
        """
        self.ended = False
        self._left_out = left_out
        self._files = files
        self._clock = clock
        self._place = place_of(position)
        self._reader: FileReader | None = None
        self._size = 0
        """Size of the open file when it was opened."""
        self._still_since: float | None = None
        """Time since which an unfinished file has not grown."""
        told = [each.file for each in self._place.decisions if each.verdict is FileVerdict.LEFT_OUT]
        self._watch = DirectoryWatch(
            self._look, clock, self._place.newest, bounded=files.bounded, told=told
        )
        if self._place.name is not None:
            self._open()

    @property
    def position(self) -> Position:
        """Where the next piece begins."""
        return self._place._replace(newest=self._watch.newest).as_position()

    def is_at(self, position: Position) -> bool:
        """Whether a position equals this one; a list counts as a tuple."""
        return place_of(position) == place_of(self.position)

    def step(self, most: int) -> Piece | None:
        """Return the next rows, at most `most` and perhaps none; None if there is nothing now.

        Raises:
            OSError: the directory or a file cannot be read now.
        """
        if self._reader is None:
            return self._next_file(self._following())
        piece = self._read(self._reader, most)
        if piece is not None or self._has_grown(self._reader):
            return piece
        following = self._following()
        if self._reader.unfinished:
            return self._finish(self._reader, following is not None)
        return self._next_file(following)

    def close(self) -> None:
        """Close the open file."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read(self, reader: FileReader, most: int) -> Piece | None:
        piece = reader.read(most)
        if reader.offset == self._place.offset:
            return None
        self._place = self._place._replace(offset=reader.offset)
        return piece

    def _has_grown(self, reader: FileReader) -> bool:
        """Whether the file has changed its size since it was opened; reopens it if so."""
        if reader.size_and_change()[0] == self._size:
            return False
        self._open()
        return True

    def _finish(self, reader: FileReader, more_follows: bool) -> Piece | None:
        now = self._clock.now()
        if self._still_since is None:
            self._still_since = now
        settled = now - self._still_since >= _SETTLED
        if not (self._files.bounded or more_follows or settled):
            return None
        piece = reader.finish()
        if reader.offset != self._place.offset:
            self._place = self._place._replace(offset=reader.offset)
            self._decide(FileVerdict.AS_IT_STOOD)
        rows = [rejected for rejected in piece.rejected if rejected.offset is not None]
        is_told = len(rows) < len(piece.rejected) and not self._decide(FileVerdict.REJECTED)
        return Piece(piece.batches, rows) if is_told else piece

    def _decide(self, verdict: FileVerdict) -> bool:
        """Add a verdict on the file to the position; return false if it is there already."""
        decision = FileDecision(self._place.name or "", self._place.offset, verdict)
        if decision in self._place.decisions:
            return False
        self._place = self._place.decided(decision)
        return True

    def _following(self) -> str | None:
        following, left_out = self._watch.after(self._place.name)
        for rejected in left_out:
            end = self._watch.end_of(rejected.file)
            self._place = self._place.decided(
                FileDecision(rejected.file, end, FileVerdict.LEFT_OUT)
            )
            self._leave_out(rejected)
        return following

    def _leave_out(self, rejected: Rejected) -> None:
        """Reject a file once: after an error it is found again, from an earlier position."""
        if rejected not in self._left_out:
            self._left_out.append(rejected)

    def _next_file(self, following: str | None) -> Piece | None:
        if following is None:
            self.ended = self._files.bounded
            return None
        self._leave()
        self._place = self._place._replace(name=following, offset=0)
        self._open()
        return Piece([], [])

    def _leave(self) -> None:
        """Pass the file; a file that is gone only if part of it was read."""
        name, offset = self._place.name or "", self._place.offset
        if self._reader is not None:
            self._watch.passes(name, self._reader.size_and_change()[1], offset)
        is_read = self._reader is not None or offset > 0
        self._place = self._place.passes() if is_read else self._place.leaves()
        self.close()

    def _open(self) -> None:
        self.close()
        self._still_since = None
        name, offset = self._place.name or "", self._place.offset
        try:
            self._reader = self._files.open_file(self._files.directory / name, name, offset, None)
        except FileNotFoundError:
            read = f"beyond {offset} nothing was read of it" if offset else "it was not read"
            if self._decide(FileVerdict.REJECTED):
                self._leave_out(Rejected(name, None, f"the file is gone; {read}"))
            return
        self._size = self._reader.size_and_change()[0]

    def _look(self, known: Mapping[str, int]) -> Listing:
        files = self._files
        return list_files(files.directory, files.partition, files.partitions, known)
