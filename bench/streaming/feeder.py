"""Writes rows into a directory as files, at a steady pace."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.streaming.rows import Rows


class Feeder:
    """Periodically writes a file with the rows that became due since the last one.

    Paced row `n` is due `n / rate` seconds after the start. All keys come first, in one file, so
    that the state has its full size from the beginning.
    """

    def __init__(self, directory: Path, rows: Rows, rate: int, period: float) -> None:
        self.rows = rows
        self.rate = rate
        self.period = period
        self.fed = 0
        """Rows in the directory."""
        self._directory = directory
        self._new = directory.with_name(f"{directory.name}.new")
        self._files = 0
        self._started = 0.0
        self._paced_from = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        directory.mkdir(parents=True)
        self._new.mkdir()

    def preload(self) -> None:
        """Write every key once."""
        self._put(self.rows.keys)
        self._paced_from = self.fed

    def start(self) -> None:
        """Start pacing."""
        self._started = now()
        self._thread.start()

    def stop(self) -> None:
        """Stop; all rows that were due are in the directory."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Pace until the end of the block, also if that fails."""
        self.start()
        try:
            yield
        finally:
            self.stop()

    def due(self, number: int) -> float:
        """When a paced row was due, in seconds since 1970."""
        return self._started + (number - self._paced_from) / self.rate

    def _run(self) -> None:
        written = 0
        while not self._stop.wait(max(0.0, self._started + (written + 1) * self.period - now())):
            written = int((now() - self._started) / self.period)
            self._put(self._paced_from + int(written * self.period * self.rate) - self.fed)

    def _put(self, count: int) -> None:
        name = f"{self._files:09d}.json"
        draft = self._new / name
        draft.write_bytes(self.rows.json_lines(self.fed, self.fed + count))
        draft.replace(self._directory / name)
        self._files += 1
        self.fed += count


def now() -> float:
    """Seconds since 1970, by the clock of file times."""
    return time.time_ns() / 1e9


class Stock:
    """Files that are prepared in advance and moved into a watched directory on demand."""

    def __init__(self, shelf: Path, rows: Rows, count: int, rows_per_file: int) -> None:
        """Write all files."""
        self.rows = rows
        self.bytes = 0
        self._files: list[tuple[Path, int]] = []
        shelf.mkdir(parents=True)
        for index, first in enumerate(range(0, count, rows_per_file)):
            last = min(first + rows_per_file, count)
            path = shelf / f"{index:09d}.json"
            text = rows.json_lines(first, last)
            path.write_bytes(text)
            self.bytes += len(text)
            self._files.append((path, last))

    def release(self, directory: Path, first: int, last: int | None = None) -> int:
        """Move files into a directory; return the number of their last row."""
        chosen = self._files[first:last]
        for path, _ in chosen:
            (directory / path.name).hardlink_to(path)
        return chosen[-1][1] - 1
