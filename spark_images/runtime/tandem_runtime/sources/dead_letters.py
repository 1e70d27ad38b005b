"""What sources rejected, kept as JSON lines: one file for a stream, appended to.

A line is `{"stream", "partition", "file", "offset", "reason", "row"}`; without an offset it is
about a file. A file that is long enough is put aside as `<name>.1`, in place of the one before, and
a new one begins [12]. Its first line is `{"stream", "before"}`: of each partition how much was
rejected before, and where the last row among it stood. So the newest file alone says what has to be
known, and reading it takes a bounded time.

Several processes may append, one after the other or, when one was frozen and is awake again, at
once. Rejected rows come in the order of their positions, so of each partition what is not beyond
the furthest row in the file stands there already. Each append reads first what others have added.
So a row that is read again after a crash does not stand there twice. Limits: a rejected file whose
line was put aside may be told again after a restart; of two processes that append in the same
moment both may write a row, and if one of them puts the file aside then, lines may be missing.
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
"""How long a file grows before it is put aside; one older file is kept."""

Place = tuple[str, int]
"""A file and an offset in it."""

_NOWHERE: Place = ("", -1)


class _Told(NamedTuple):
    """What stands there of a partition."""

    letters: int = 0
    furthest: Place = _NOWHERE


class _Contents(NamedTuple):
    """What a file tells."""

    told: dict[str, _Told]
    """By partition."""
    files: set[tuple[str, str]]
    """Partitions, and files of them that were rejected as a whole."""

    def learn(self, line: bytes) -> None:
        """Take a line in; what is none of ours says nothing."""
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

    Nothing is made before something is rejected, and nothing read before `catch_up` or `add`.
    """

    def __init__(self, path: Path, stream: str, most: int = MOST_BYTES) -> None:
        self._path = path
        self._stream = stream
        self._most = most
        self._lock = threading.Lock()
        self._first = b""
        """The first line of the file that was read: no two files have the same."""
        self._known = 0
        """Bytes of it that were read."""
        self._contents = _Contents({}, set())

    def catch_up(self) -> None:
        """Read what stands there and was not read yet.

        Raises:
            OSError: the file cannot be read.
        """
        with self._lock:
            self._read_what_was_added()

    def add(self, partition: str, rejected: Iterable[Rejected]) -> None:
        """Append what is not there yet.

        Raises:
            OSError: the file cannot be written; adding the same again later is right.
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
        """How much of a partition was rejected, as far as this process has read or written.

        Waits for nobody: it may be asked by whoever must not wait for the disk.
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
        """Put the file aside. At every moment there is one that says everything."""
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
        # What is read from its beginning must not be seen half read by `count`.
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
