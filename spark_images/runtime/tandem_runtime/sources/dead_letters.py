"""Stores rejected rows as JSON lines: one file per stream, append-only.

A line is `{"stream", "partition", "file", "offset", "reason", "row"}`; without an offset it is
about a file. A file that is long enough is rotated to `<name>.1`, which replaces the previous one,
and a new one begins [12]. Its first line is `{"stream", "before"}`: for each partition the number
of earlier rejections, and the place of the last rejected row. So the newest file alone is enough,
and reading it takes a bounded time.

Several processes may append, one after the other or, when a frozen one wakes, at once. Rejected
rows come in the order of their positions, so a row that is not beyond its partition's furthest row
in the file is in it already. Each append first reads the lines of other processes. So a row that
is read again after a crash is not stored twice. Limits: a rejected file whose line was rotated may
be reported again after a restart; two processes that append at the same moment may both write a
row, and if one of them rotates the file then, lines may be missing.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tandem_runtime.sources.base import Rejected

MOST_BYTES = 8 * 2**20
"""Size at which a file is rotated; one older file is kept."""

Place = tuple[str, int]
"""A file and an offset in it."""

_NOWHERE: Place = ("", -1)


class _Told(NamedTuple):
    """The rejections of a partition: their number, and the furthest row."""

    letters: int = 0
    furthest: Place = _NOWHERE


class _Contents(NamedTuple):
    """The content of a file."""

    told: dict[str, _Told]
    """By partition."""
    files: set[tuple[str, str]]
    """(partition, file) of files that were rejected as a whole."""

    def learn(self, line: bytes) -> None:
        """Apply a line; foreign lines are ignored."""
        try:
            about: dict[str, Any] = json.loads(line)
            if "before" in about:
                self.told.update(
                    (partition, _Told(letters, (file, offset)))
                    for partition, (letters, (file, offset)) in about["before"].items()
                )
                return
            partition, file, offset = about["partition"], about["file"], about["offset"]
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        letters, furthest = self.told.get(partition, _Told())
        if offset is None:
            self.files.add((partition, file))
        else:
            furthest = max(furthest, (file, offset))
        self.told[partition] = _Told(letters + 1, furthest)


class DeadLetters:
    """The rejected rows of a stream, for the readers of all its partitions.

    No file is created before the first rejection, and none is read before `catch_up` or `add`.
    """

    def __init__(self, path: Path, stream: str, most: int = MOST_BYTES) -> None:
        self._path = path
        self._stream = stream
        self._most = most
        self._lock = threading.Lock()
        self._first = b""
        """First line of the file that was read; it differs between files."""
        self._known = 0
        """Bytes of this file that were read."""
        self._contents = _Contents({}, set())

    def catch_up(self) -> None:
        """Read the lines that were not read yet.

        Raises:
            OSError: the file cannot be read.
        """
        with self._lock:
            self._read_what_was_added()

    def add(self, partition: str, rejected: Iterable[Rejected]) -> None:
        """Append the rejections that are not stored yet.

        Raises:
            OSError: the file cannot be written; a retry is safe.
        """
        rejected = tuple(rejected)
        if not rejected:
            return
        with self._lock:
            self._read_what_was_added()
            fresh = [letter for letter in rejected if not self._has(partition, letter)]
            if fresh:
                self._append("".join(self._line(partition, letter) for letter in fresh))

    def count(self, partition: str) -> int:
        """Return the number of a partition's rejections that this process has read or written.

        Takes no lock, for callers that must not wait for the disk.
        """
        return self._contents.told.get(partition, _Told()).letters

    def _has(self, partition: str, letter: Rejected) -> bool:
        told, files = self._contents
        if letter.offset is None:
            return (partition, letter.file) in files
        return (letter.file, letter.offset) <= told.get(partition, _Told()).furthest

    def _line(self, partition: str, letter: Rejected) -> str:
        return _as_line(
            {
                "stream": self._stream,
                "partition": partition,
                "file": letter.file,
                "offset": letter.offset,
                "reason": letter.reason,
                "row": letter.row,
            }
        )

    def _append(self, lines: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._known >= self._most:
            self._begin_anew()
        with self._path.open("ab") as file:
            # A process that died may have left half a line.
            torn = file.tell() > 0 and not _ends_a_line(self._path)
            file.write((b"\n" if torn else b"") + lines.encode())
        self._read_what_was_added()

    def _begin_anew(self) -> None:
        """Rotate the file. At every moment a complete one exists."""
        draft = self._path.with_name(f".{self._path.name}.new")
        older = self._path.with_name(f"{self._path.name}.1")
        first = {"stream": self._stream, "before": self._contents.told}
        draft.write_text(_as_line(first), "utf-8")
        older.unlink(missing_ok=True)
        older.hardlink_to(self._path)
        draft.replace(self._path)

    def _read_what_was_added(self) -> None:
        try:
            with self._path.open("rb") as file:
                first = file.readline()
                same = first == self._first
                file.seek(self._known if same else 0)
                lines = file.read()
        except FileNotFoundError:
            self._first, self._known = b"", 0
            return
        whole = lines[: lines.rfind(b"\n") + 1]
        # A file read from its beginning goes to a new object: `count` must not see half of it.
        contents = self._contents if same else _Contents({}, set())
        for line in whole.split(b"\n"):
            contents.learn(line)
        self._first, self._contents = first, contents
        self._known = len(whole) + (self._known if same else 0)


def _as_line(about: Mapping[str, object]) -> str:
    return json.dumps(about, ensure_ascii=False) + "\n"


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
