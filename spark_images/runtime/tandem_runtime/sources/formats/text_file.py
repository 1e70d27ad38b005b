"""A text file, plain or gzipped, as blocks of whole lines at byte offsets.

Offsets count the bytes of the text, so those of a gzipped file are offsets after decompression. To
open one in its middle everything before has to be decompressed.
"""

import gzip
import os
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

BLOCK = 2 * 2**20
"""Bytes that are read at once, and about the most of a block of several lines."""

LONGEST_LINE = 8 * 2**20
"""A line beyond this many bytes is passed over, only its beginning is kept."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEPT = 1024


class Lines(NamedTuple):
    """Whole lines, each with its end, and where the first one begins."""

    offset: int
    text: bytes


class LongLine(NamedTuple):
    """A line that was passed over."""

    offset: int
    beginning: bytes


class TextFile:
    """Reads a file on from an offset at which a line begins.

    `offset` is where the next line begins that was not handed out. `broken` says why nothing can
    be read beyond what was: a gzip file is damaged or ends too early, or there is less than had
    been read before. `passed_over` are lines that were too long, until somebody empties it.
    """

    def __init__(self, path: Path, offset: int, end: int | None = None) -> None:
        """Open the file; what is behind `end` counts as not there.

        Raises:
            OSError: it cannot be opened, or is not there.
        """
        self.offset = offset
        self._end = end
        self._read = 0
        """Bytes of the text that were read, from its beginning."""
        self.broken: str | None = None
        self.passed_over: list[LongLine] = []
        self._raw = path.open("rb")
        self._zipped = path.suffix == ".gz"
        self._file = cast(BinaryIO, gzip.GzipFile(fileobj=self._raw)) if self._zipped else self._raw
        self._buffer = b""
        self._used = 0
        self._skipped = 0
        """Bytes of the line that is being passed over."""
        self._beginning = b""
        if offset:
            self._go_to(offset)

    def lines(self, most: int) -> Lines:
        """The next whole lines, at most so many, or nothing if no whole line is there now."""
        while True:
            end = self._end_of_lines(most)
            if end:
                return self._hand_out(end)
            if not self._read_more():
                return Lines(self.offset, b"")

    def rest(self) -> Lines:
        """The last line, which has no end, with an end put to it; nothing if there is none."""
        if self._skipped:
            self._pass_over()
        line = self._hand_out(len(self._buffer))
        return Lines(line.offset, line.text + b"\n") if line.text else line

    def give_up(self, reason: str) -> None:
        """Read nothing more of this file."""
        self.broken = reason
        self._buffer, self._used, self._skipped = b"", 0, 0

    @property
    def unfinished(self) -> bool:
        """Whether there is something after the last end of a line."""
        return self._used < len(self._buffer) or self._skipped > 0

    def size_and_change(self) -> tuple[int, int]:
        """Size of the file as stored, and when it was changed last."""
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
        # Always in the same blocks: how much of a damaged file can be read depends on them.
        left = offset
        while left and (piece := self._more(BLOCK)):
            self._buffer = piece[left:]
            left -= min(left, len(piece))
        if left and not self.broken:
            self.broken = f"is shorter than the {offset} bytes that were read of it"

    def _end_of_lines(self, most: int) -> int:
        """Where the lines to be handed out end in the buffer; 0 if no line ends there."""
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
        """Put more into the buffer behind the unfinished line; false if there is nothing."""
        piece = self._more(BLOCK)
        if not piece:
            return False
        if self._skipped:
            piece = self._skip(piece)
        self._buffer = self._buffer[self._used :] + piece
        self._used = 0
        # Only the first line can be too long: the others came with this piece.
        end = self._buffer.find(b"\n") if len(self._buffer) > LONGEST_LINE else 0
        if end < 0 or end > LONGEST_LINE:
            self._beginning, self._skipped = self._buffer[:_KEPT], 0
            self._buffer = self._skip(self._buffer)
        return True

    def _skip(self, piece: bytes) -> bytes:
        """Pass over the rest of a long line; what follows it is answered."""
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
