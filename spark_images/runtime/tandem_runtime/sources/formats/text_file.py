"""Reads a text file, plain or gzipped, in blocks of whole lines at byte offsets.

Offsets count bytes of text; in a gzipped file they are offsets after decompression, so opening one
at an offset decompresses everything before it.
"""

import gzip
import os
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

BLOCK = 2 * 2**20
"""Bytes read at once, and about the maximum of a block of several lines."""

LONGEST_LINE = 8 * 2**20
"""Maximum bytes of a line; a longer one is skipped, and only its beginning is kept."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEPT = 1024


class Lines(NamedTuple):
    """Whole lines with their newlines, and the offset of the first one."""

    offset: int
    text: bytes


class LongLine(NamedTuple):
    """A line that was skipped because of its length."""

    offset: int
    beginning: bytes


class TextFile:
    """Reads a file from an offset at which a line begins.

    `offset` is the beginning of the next line to return. `broken` says why reading stopped for
    good: a gzip file is damaged or truncated, or the file is shorter than the part read before.
    `passed_over` collects lines that were too long; the caller empties it.
    """

    def __init__(self, path: Path, offset: int, end: int | None = None) -> None:
        """Open the file and ignore its content beyond `end`.

        Raises:
            OSError: it cannot be opened, or does not exist.
        """
        self.offset = offset
        self._end = end
        self._read = 0
        """Bytes of text read, counted from the beginning of the file."""
        self.broken: str | None = None
        self.passed_over: list[LongLine] = []
        self._raw = path.open("rb")
        self._zipped = path.suffix == ".gz"
        self._file = cast(BinaryIO, gzip.GzipFile(fileobj=self._raw)) if self._zipped else self._raw
        self._buffer = b""
        self._used = 0
        self._skipped = 0
        """Bytes skipped so far of a line that is too long."""
        self._beginning = b""
        if offset:
            self._go_to(offset)

    def lines(self, most: int) -> Lines:
        """Return the next whole lines, at most `most`; empty if there is none now."""
        while True:
            end = self._end_of_lines(most)
            if end:
                return self._hand_out(end)
            if not self._read_more():
                return Lines(self.offset, b"")

    def rest(self) -> Lines:
        """Return a last line that has no newline, with one added; empty if there is none."""
        if self._skipped:
            self._pass_over()
        line = self._hand_out(len(self._buffer))
        return Lines(line.offset, line.text + b"\n") if line.text else line

    def give_up(self, reason: str) -> None:
        """Stop reading this file."""
        self.broken = reason
        self._buffer, self._used, self._skipped = b"", 0, 0

    @property
    def unfinished(self) -> bool:
        """Whether there is text after the last newline."""
        return self._used < len(self._buffer) or self._skipped > 0

    def size_and_change(self) -> tuple[int, int]:
        """Return the size of the file as stored, and the time of its last change."""
        found = os.fstat(self._raw.fileno())
        return found.st_size, found.st_ctime_ns

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._raw.close()

    def _go_to(self, offset: int) -> None:
        if not self._zipped:
            if offset > os.fstat(self._raw.fileno()).st_size:
                self.broken = f"is shorter than the {offset} bytes that were read of it"
            self._raw.seek(offset)
            self._read = offset
            return
        # Reads in blocks of one size: they determine how much of a damaged file is readable.
        left = offset
        while left and (piece := self._more(BLOCK)):
            self._buffer = piece[left:]
            left -= min(left, len(piece))
        if left and not self.broken:
            self.broken = f"is shorter than the {offset} bytes that were read of it"

    def _end_of_lines(self, most: int) -> int:
        """Return where the next lines end in the buffer; 0 if no line ends there."""
        if self._buffer.count(b"\n", self._used) <= most:
            return self._buffer.rfind(b"\n", self._used) + 1
        end = self._used
        for _ in range(most):
            end = self._buffer.index(b"\n", end) + 1
        return end

    def _hand_out(self, end: int) -> Lines:
        text = self._buffer[self._used : end]
        if self.offset == 0 and text.startswith(_BYTE_ORDER_MARK):
            text = text[len(_BYTE_ORDER_MARK) :]
            self.offset = len(_BYTE_ORDER_MARK)
        lines = Lines(self.offset, text)
        self.offset += len(text)
        self._used = end
        return lines

    def _read_more(self) -> bool:
        """Append to the unfinished line in the buffer; return false if there is no more."""
        piece = self._more(BLOCK)
        if not piece:
            return False
        if self._skipped:
            piece = self._skip(piece)
        self._buffer = self._buffer[self._used :] + piece
        self._used = 0
        # Only the first line can be too long: the others lie within this piece.
        end = self._buffer.find(b"\n") if len(self._buffer) > LONGEST_LINE else 0
        if end < 0 or end > LONGEST_LINE:
            self._beginning, self._skipped = self._buffer[:_KEPT], 0
            self._buffer = self._skip(self._buffer)
        return True

    def _skip(self, piece: bytes) -> bytes:
        """Skip the rest of a long line and return the text after it."""
        end = piece.find(b"\n") + 1
        self._skipped += end or len(piece)
        if end == 0:
            return b""
        self._pass_over()
        return piece[end:]

    def _pass_over(self) -> None:
        self.passed_over.append(LongLine(self.offset, self._beginning))
        self.offset += self._skipped
        self._skipped = 0

    def _more(self, most: int) -> bytes:
        if self.broken:
            return b""
        try:
            piece = self._file.read(most)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.broken = f"is damaged: {error}"
            return b""
        if self._end is not None:
            piece = piece[: max(0, self._end - self._read)]
        self._read += len(piece)
        return piece
