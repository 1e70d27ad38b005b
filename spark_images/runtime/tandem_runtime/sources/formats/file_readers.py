"""Reads one file in pieces: the interface of all formats, and the readers of text formats."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

from tandem_core.model.ddl.types import Schema
from tandem_runtime.sources.base import Rejected, Rows, shortened
from tandem_runtime.sources.formats.csv_lines import BadHeader, CsvDecoder
from tandem_runtime.sources.formats.line_decoding import Decoded, is_blank
from tandem_runtime.sources.formats.text_file import LONGEST_LINE, Lines, TextFile

MOST_ROWS = 65_536
"""Maximum rows of a piece; bounds the memory of rows that are wider than their lines."""


class Piece(NamedTuple):
    """Rows of a file, in order, and the rejected ones."""

    batches: list[Rows]
    rejected: list[Rejected]


class FileReader(Protocol):
    """Reads a file from an offset on, in units of its format."""

    @property
    def offset(self) -> int:
        """Where the next piece begins."""

    def read(self, most: int) -> Piece:
        """Return the next rows, at most `most`. The offset stays if there is no whole row now."""

    def finish(self) -> Piece:
        """Treat the file as complete: return an unfinished last row, or reject the rest."""

    @property
    def unfinished(self) -> bool:
        """Whether the file ends within a row, or is damaged or truncated."""

    def size_and_change(self) -> tuple[int, int]:
        """Return the size of the file as stored, and the time of its last change."""

    def close(self) -> None:
        """Close the file."""


class LineDecoder(Protocol):
    """Decodes a block of lines into rows."""

    def decode(self, block: bytes) -> Decoded:
        """Read a block of lines, each of which ends in a newline."""


class TextReader:
    """A file of lines, each of which is a row; offsets are bytes of the text."""

    def __init__(
        self, path: Path, name: str, offset: int, decoder: LineDecoder, end: int | None = None
    ) -> None:
        """Open the file and ignore its content beyond `end`.

        Raises:
            OSError: it cannot be opened, or does not exist.
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
        """Return rows of whole lines."""
        return self._decoded(self._text.lines(min(most, MOST_ROWS)))

    def finish(self) -> Piece:
        """Return a last line that has no newline; report damage to the file once."""
        piece = self._decoded(self._text.rest())
        if self._text.broken and not self._told:
            self._told = True
            piece.rejected.append(Rejected(self._name, None, f"the file {self._text.broken}"))
        return piece

    @property
    def unfinished(self) -> bool:
        """Whether there is a line without a newline, or damage that was not reported."""
        return self._text.unfinished or (self._text.broken is not None and not self._told)

    def size_and_change(self) -> tuple[int, int]:
        """Return the size of the file as stored, and the time of its last change."""
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
        """Open the file; with an offset, read the header from its beginning first.

        Raises:
            OSError: it cannot be opened, or does not exist.
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
                # No line after the header was read, even if the block holds some.
                self._text.offset = min(self._text.offset, lines.offset)
        return super()._decoded(lines)

    def _takes_header(self, line: bytes) -> bool:
        """Take a line as the header unless it is blank; return whether it was taken."""
        if is_blank(line):
            return False
        try:
            self._decoder = CsvDecoder(self._schema, line)
        except BadHeader as problem:
            self._text.give_up(str(problem))
            self._decoder = _NoRows()
        return True


class _NoRows:
    """Decodes no rows: the file has no usable header."""

    def decode(self, _block: bytes) -> Decoded:
        return Decoded([], [])


class _NoHeaderYet(_NoRows):
    """Decodes no rows: the header was not read yet."""


_TOO_LONG = f"it is longer than {LONGEST_LINE // 2**20} MiB"
