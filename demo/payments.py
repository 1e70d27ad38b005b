"""Generates payments: a new file twice a second."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from tandem_core.model.spec import GeneratorSource, Stream
from tandem_runtime.sources.generator.partition import generated

_SOURCE = GeneratorSource(rows_per_second=1000, keys=1000, skew=0.8, seed=42)
_SECONDS_IN_A_FILE = 0.5


class Payments:
    """Writes files for a stream, in a thread of its own."""

    def __init__(self, stream: Stream, directory: Path) -> None:
        self._stream = replace(stream, source=_SOURCE)
        self._directory = directory
        self._over = threading.Event()
        self._writer = threading.Thread(target=self._run, name="payments", daemon=True)
        self.written = 0
        """Number of payments so far."""
        directory.mkdir()

    def begin(self) -> None:
        """Start writing."""
        self._writer.start()

    def end(self) -> None:
        """Stop writing; afterwards `written` is final. May be called repeatedly."""
        self._over.set()
        if self._writer.is_alive():
            self._writer.join()

    def rows(self) -> Any:
        """All payments so far, as an Arrow table."""
        return generated(self._stream, 0, self.written)

    def _run(self) -> None:
        size = int(_SOURCE.rows_per_second * _SECONDS_IN_A_FILE)
        while not self._over.wait(_SECONDS_IN_A_FILE):
            self._write(generated(self._stream, self.written, self.written + size))
            self.written += size

    def _write(self, rows: Any) -> None:
        """Write a file under a hidden name, and rename it when it is complete."""
        path = self._directory / f"{self.written:09}.json"
        hidden = path.with_name(f".{path.name}")
        with duckdb.connect() as database:
            database.register("payments", rows)
            database.execute(f"COPY payments TO '{hidden}' (FORMAT json)")
        hidden.rename(path)
