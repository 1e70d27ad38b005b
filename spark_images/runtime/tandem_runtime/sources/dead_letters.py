"""What sources rejected, kept as JSON lines: one file for a stream, appended to and never cut.

A line is `{"stream", "partition", "file", "offset", "reason", "row"}`; without an offset it is
about a file. Several processes may append, one after the other or, when one was frozen and is
awake again, at once. Rejected rows come in the order of their positions, so of each partition what
is not beyond the furthest row in the file stands there already. Each append reads first what others
have added. So a row that is read again after a crash does not stand there twice; two processes that
append in the same moment may both write it.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tandem_runtime.sources.source import Rejected

Place = tuple[str, int]
"""A file and an offset in it."""


class DeadLetters:
    """The rejected rows of a stream. Nothing is made before something is rejected."""

    def __init__(self, path: Path, stream: str) -> None:
        self._path = path
        self._stream = stream
        self._known = 0
        """Bytes of the file that were read."""
        self._furthest: dict[str, Place] = {}
        self._files: set[tuple[str, str]] = set()
        self._counts: dict[str, int] = {}
        self._read_what_was_added()

    def add(self, partition: str, rejected: Iterable[Rejected]) -> None:
        """Append what is not there yet.

        Raises:
            OSError: the file cannot be written; adding the same again later is right.
        """
        rejected = tuple(rejected)
        if not rejected:
            return
        self._read_what_was_added()
        fresh = [letter for letter in rejected if not self._has(partition, letter)]
        if fresh:
            self._append("".join(self._line(partition, letter) for letter in fresh))

    def count(self, partition: str) -> int:
        """How much of a partition was rejected, as far as this process has read or written."""
        return self._counts.get(partition, 0)

    def _has(self, partition: str, letter: Rejected) -> bool:
        if letter.offset is None:
            return (partition, letter.file) in self._files
        return (letter.file, letter.offset) <= self._furthest.get(partition, ("", -1))

    def _line(self, partition: str, letter: Rejected) -> str:
        about = {
            "stream": self._stream,
            "partition": partition,
            "file": letter.file,
            "offset": letter.offset,
            "reason": letter.reason,
            "row": letter.row,
        }
        return json.dumps(about, ensure_ascii=False) + "\n"

    def _append(self, lines: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            # A process that died may have left half a line.
            torn = file.tell() > 0 and not _ends_a_line(self._path)
            file.write((b"\n" if torn else b"") + lines.encode())
        self._read_what_was_added()

    def _read_what_was_added(self) -> None:
        try:
            with self._path.open("rb") as file:
                file.seek(self._known)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._known += len(line)
                    self._learn(line)
        except FileNotFoundError:
            return

    def _learn(self, line: bytes) -> None:
        try:
            about: dict[str, Any] = json.loads(line)
            partition, file, offset = about["partition"], about["file"], about["offset"]
        except (ValueError, KeyError, TypeError):
            return
        self._counts[partition] = self._counts.get(partition, 0) + 1
        if offset is None:
            self._files.add((partition, file))
        else:
            place = (file, offset)
            self._furthest[partition] = max(place, self._furthest.get(partition, place))


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
