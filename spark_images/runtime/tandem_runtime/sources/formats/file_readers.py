"""One file of a source, read in pieces: what all formats have in common, and text."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

from tandem_core.model.ddl.types import Schema
from tandem_runtime.sources.base import Rejected, Rows, shortened
from tandem_runtime.sources.formats.csv_lines import BadHeader, CsvDecoder
from tandem_runtime.sources.formats.line_decoding import Decoded, is_blank
from tandem_runtime.sources.formats.text_file import LONGEST_LINE, Lines, TextFile

MOST_ROWS = 65_536
"""Most rows of a piece, so that short lines do not become a great many wide rows."""


class Piece(NamedTuple):
    """Rows of a file, in their order, and what was left out."""

    batches: list[Rows]
    rejected: list[Rejected]


class FileReader(Protocol):
    """A file that is read on from an offset, in whatever units its format has."""

    @property
    def offset(self) -> int:
        """Where the next piece begins."""

    def read(self, most: int) -> Piece:
        """The next rows, at most so many. If the offset stays, no whole row is there now."""

    def finish(self) -> Piece:
        """Take what is there as all that comes: an unfinished last row, or why there is no more."""

    @property
    def unfinished(self) -> bool:
        """Whether something is there that may be the beginning of more."""

    def size_and_change(self) -> tuple[int, int]:
        """Size of the file as stored, and when it was changed last."""

    def close(self) -> None:
        """Close the file."""


class LineDecoder(Protocol):
    """Makes rows of a block of lines."""

    def decode(self, block: bytes) -> Decoded:
        """Read a block of lines, each of which ends in a newline."""


class TextReader:
    """A file of lines, each of which is a row; offsets are bytes of the text."""

    def __init__(
        self, path: Path, name: str, offset: int, decoder: LineDecoder, end: int | None = None
    ) -> None:
        """Open the file; what is behind `end` counts as not there.

        Raises:
            OSError: it cannot be opened, or is not there.
        """
        self._name = name
        self._text = TextFile(path, offset, end)
        self._decoder = decoder
        self._told = False

    @property
    def offset(self) -> int:
        """Where the next line begins."""
        return self._text.offset

    def read(self, most: int) -> Piece:
        """Rows of whole lines."""
        return self._decoded(self._text.lines(min(most, MOST_ROWS)))

    def finish(self) -> Piece:
        """The last line if it has no end; damage to the file is told once."""
        piece = self._decoded(self._text.rest())
        if self._text.broken and not self._told:
            self._told = True
            piece.rejected.append(Rejected(self._name, None, f"the file {self._text.broken}"))
        return piece

    @property
    def unfinished(self) -> bool:
        """Whether there is a line without an end, or damage that was not told."""
        return self._text.unfinished or (self._text.broken is not None and not self._told)

    def size_and_change(self) -> tuple[int, int]:
        """Size of the file as stored, and when it was changed last."""
        return self._text.size_and_change()

    def close(self) -> None:
        """Close the file."""
        self._text.close()

    def _decoded(self, lines: Lines) -> Piece:
        decoded = self._decoder.decode(lines.text) if lines.text else Decoded([], [])
        rejected = [
            Rejected(self._name, long.offset, _TOO_LONG, shortened(long.beginning))
            for long in self._text.passed_over
        ]
        self._text.passed_over.clear()
        rejected.extend(
            Rejected(self._name, lines.offset + bad.offset, bad.reason, shortened(bad.line))
            for bad in decoded.bad
        )
        return Piece(decoded.batches, rejected)


class CsvReader(TextReader):
    """A file of CSV lines. The first line that is not blank is the header."""

    def __init__(
        self, path: Path, name: str, offset: int, schema: Schema, end: int | None = None
    ) -> None:
        """Open the file and, in its middle, read the header first.

        Raises:
            OSError: it cannot be opened, or is not there.
        """
        super().__init__(path, name, offset, _NoHeaderYet(), end)
        self._schema = schema
        if offset:
            beginning = TextFile(path, 0)
            with closing(beginning):
                while (line := beginning.lines(1)).text and not self._takes_header(line.text):
                    pass

    def _decoded(self, lines: Lines) -> Piece:
        while lines.text and isinstance(self._decoder, _NoHeaderYet):
            line, _, rest = lines.text.partition(b"\n")
            self._takes_header(line)
            lines = Lines(lines.offset + len(line) + 1, rest)
            if self._text.broken:
                # However many lines came with it, nothing behind the header was read.
                self._text.offset = min(self._text.offset, lines.offset)
        return super()._decoded(lines)

    def _takes_header(self, line: bytes) -> bool:
        """Whether this line, which follows blank ones at most, was the header."""
        if is_blank(line):
            return False
        try:
            self._decoder = CsvDecoder(self._schema, line)
        except BadHeader as problem:
            self._text.give_up(str(problem))
            self._decoder = _NoRows()
        return True


class _NoRows:
    """Of a file without a usable header nothing is read."""

    def decode(self, _block: bytes) -> Decoded:
        return Decoded([], [])


class _NoHeaderYet(_NoRows):
    """Of a file whose header was not seen yet nothing is read either."""


_TOO_LONG = f"it is longer than {LONGEST_LINE // 2**20} MiB"
