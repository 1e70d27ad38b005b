"""Replays the rows of a source partition between two positions.

Returns exactly the rows that were read between them, regardless of the split, of its batches, and
of additions to the source since then. Fails if the source no longer has them. Does not detect that
a file was replaced by another of the same length.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple, cast

from tandem_core.contract.partitions import index_of, not_yet
from tandem_core.model.spec import FilesSource, GeneratorSource, HttpSource, KafkaSource, Stream
from tandem_runtime.protocol.types import Mark
from tandem_runtime.sources.base import Rows, SourceError
from tandem_runtime.sources.files.file_sequence import Files
from tandem_runtime.sources.files.listing import Listing, list_files
from tandem_runtime.sources.files.partition import files_of
from tandem_runtime.sources.files.position import FilesPosition, FileVerdict, passed_too, place_of
from tandem_runtime.sources.formats.file_readers import MOST_ROWS
from tandem_runtime.sources.generator.partition import generated


class NotReplayable(SourceError):
    """The source no longer has the rows that were read."""


def replay(stream: Stream, partition: str, first: Mark, last: Mark) -> list[Rows]:
    """Return the rows of a partition from one mark to another, in order.

    Raises:
        NotReplayable: the source has changed where rows were read.
        SourceUnsupported: this kind of source cannot be read.
        OSError: the source cannot be read now.
    """
    wanted = last.rows - first.rows
    match stream.source:
        case FilesSource() as source:
            files = files_of(stream, source, index_of(partition))
            found = _FilesAgain(files, place_of(first.position), place_of(last.position))
            return found.rows(partition, wanted)
        case GeneratorSource():
            numbers = (cast(int, first.position), cast(int, last.position))
            return list(generated(stream, *numbers, index_of(partition)).to_batches())
        case HttpSource() | KafkaSource():
            raise not_yet(stream)


class _Stretch(NamedTuple):
    """A part of a file: from an offset to another one or to the end of the file."""

    name: str
    first: int
    end: int | None


class _FilesAgain:
    """The files between two positions, each up to the offset that was read."""

    def __init__(self, files: Files, first: FilesPosition, last: FilesPosition) -> None:
        self._files = files
        self._first = first
        self._last = last
        self._ends = {
            each.file: each.offset
            for each in last.decisions
            if each.verdict is FileVerdict.LEFT_OUT
        }

    def rows(self, partition: str, wanted: int) -> list[Rows]:
        """Return the rows; the digest of the files passed proves which files were read.

        A file that has changed since then may have been read before, or may be new: tries both.
        """
        if self._last.name is None:
            return []
        files = self._files
        listing = list_files(files.directory, files.partition, files.partitions, {})
        changed = {n for n, at in listing.changed.items() if at > self._last.newest}
        tries: list[frozenset[str]] = [frozenset(), frozenset(changed)]
        for left_out in tries:
            found = self._read(listing, left_out)
            if found is not None and sum(batch.num_rows for batch in found) == wanted:
                return found
        raise NotReplayable(
            f"{partition}: the files from {self._first.name or 'the first one'} to "
            f"{self._last.name} have changed since their rows were read"
        )

    def _read(self, listing: Listing, left_out: frozenset[str]) -> list[Rows] | None:
        """Return the rows of all files but `left_out`; None if other files were read."""
        rows: list[Rows] = []
        passed = self._first.passed
        for stretch in self._passed_files(listing, left_out):
            end = self._read_stretch(stretch, rows)
            if end is None:
                return None
            passed = passed_too(passed, stretch.name, end)
        if passed != self._last.passed:
            return None
        last = self._last
        begin = self._first.offset if self._first.name == last.name else 0
        current = _Stretch(last.name or "", begin, last.offset)
        return None if self._read_stretch(current, rows) is None else rows

    def _passed_files(self, listing: Listing, left_out: frozenset[str]) -> Iterable[_Stretch]:
        """Yield the files that were passed, as far as the position shows."""
        first, last = self._first, self._last
        if first.name is not None and first.name != last.name:
            there = first.name in listing.changed and first.name not in left_out
            ended = first.name in self._ends or not there
            end = max(self._ends.get(first.name, 0), first.offset) if ended else None
            if there or first.offset:
                yield _Stretch(first.name, first.offset, end)
        for name in listing.names:
            after = first.name is None or name > first.name
            if not after or name >= (last.name or ""):
                continue
            end = self._ends.get(name)
            if (end is None and name not in left_out) or (end is not None and end >= 0):
                yield _Stretch(name, 0, end)

    def _read_stretch(self, stretch: _Stretch, rows: list[Rows]) -> int | None:
        """Append a stretch's rows and return its end, or None if the file is shorter."""
        at = stretch.first
        for stop in self._stops(stretch):
            if at != stop:
                at = self._read_to(stretch.name, at, stop, rows)
            if stop is not None and at != stop:
                return None
        return at

    def _stops(self, stretch: _Stretch) -> Sequence[int | None]:
        """Return the offsets where the file was taken as it stood, and the end of the stretch."""
        cuts = sorted(
            each.offset
            for each in self._last.decisions
            if each.file == stretch.name
            and each.verdict is FileVerdict.AS_IT_STOOD
            and each.offset > stretch.first
        )
        return [*(cut for cut in cuts if stretch.end is None or cut < stretch.end), stretch.end]

    def _read_to(self, name: str, first: int, end: int | None, rows: list[Rows]) -> int:
        path = self._files.directory / name
        try:
            reader = self._files.open_file(path, name, first, end)
        except FileNotFoundError:
            return first
        with closing(reader):
            offset = -1
            while offset != reader.offset:
                offset = reader.offset
                rows.extend(reader.read(MOST_ROWS).batches)
            if reader.unfinished:
                rows.extend(reader.finish().batches)
            return reader.offset
