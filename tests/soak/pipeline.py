"""The pipeline that is soaked, and what must come out of it.

Two streams are joined on their key within a bound in time. Event times are in order and differ
from row to row, so that they are the rows' identities: each result names the two rows it is made
of, and a result of a later row may not come out before that of an earlier one.

How long a soak takes is known only when it is over. So rows stand in files that are written while
it goes on, always a few ahead of the one that is being read; without a further file streams end.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from tests.laptop.harness import POLL_SECONDS, Run

from tandem_core.model.pipeline import Refusal, parse_pipeline
from tandem_core.model.spec import Stream
from tandem_runtime.sources.generator.partition import generated

Document = dict[str, Any]

PAIRS = 2
SPLITS = 2
ROWS_PER_SECOND = 300
KEYS = 1000
ROWS_IN_A_FILE = 900
AHEAD = 4
"""Files beyond the one that is being read, each with rows for three seconds."""

_SQL = """
SELECT item, quantity, ordered_at, price, offered_at
FROM orders JOIN offers
ON item = product
AND offered_at BETWEEN ordered_at - INTERVAL 2 SECONDS AND ordered_at + INTERVAL 2 SECONDS
"""
_ORDERS = "item STRING, quantity BIGINT, ordered_at TIMESTAMP"
_OFFERS = "product STRING, price BIGINT, offered_at TIMESTAMP"


def manifest(pairs: int = PAIRS, replicas: int = 2, interval: str = "500ms") -> Document:
    """The pipeline."""
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "soak"},
        "spec": {
            "epoch": {"interval": interval},
            "streams": [
                _stream("orders", "item", _ORDERS, "ordered_at", files_read("orders")),
                _stream("offers", "product", _OFFERS, "offered_at", files_read("offers")),
            ],
            "query": {"sql": _SQL.strip(), "outputMode": "append"},
            "splits": {"count": SPLITS},
            "pairs": {"count": pairs, "replicas": replicas},
            "sinks": [{"name": "matches", "files": {"path": "out", "format": "parquet"}}],
        },
    }


def _stream(name: str, key: str, schema: str, at: str, source: Document) -> Document:
    return {
        "name": name,
        "schema": schema,
        "key": [key],
        "watermark": {"column": at, "delay": "1s"},
        "source": source,
    }


def files_read(name: str) -> Document:
    """The source that reads a stream's files at the pace at which they are written."""
    files = {"path": f"data/{name}", "format": "json", "bounded": True}
    return {"files": {**files, "rowsPerSecond": ROWS_PER_SECOND}}


class Rows:
    """The rows of all streams, as many as have been written."""

    def __init__(
        self, home: Path, seed: int = 0, streams: tuple[Stream, ...] | None = None
    ) -> None:
        """`streams` are generators of other rows than those of `manifest`."""
        self._data = home.resolve() / "data"
        self._streams = streams or _made_up(seed)
        self.written = 0
        """In each stream."""
        for stream in self._streams:
            (self._data / stream.name).mkdir(parents=True)

    @contextmanager
    def flowing(self, run: Run) -> Iterator[None]:
        """Write files until the end of the block, as they are read."""
        over = threading.Event()

        def write() -> None:
            while not over.wait(POLL_SECONDS):
                self._write_until(self._being_read(run) + AHEAD * ROWS_IN_A_FILE)

        self._write_until(AHEAD * ROWS_IN_A_FILE)
        writer = threading.Thread(target=write, name="rows", daemon=True)
        writer.start()
        try:
            yield
        finally:
            over.set()
            writer.join()

    def tables(self) -> dict[str, Any]:
        """All rows; zones are dropped, since all times are in UTC."""
        return {stream.name: _plain(stream, 0, self.written) for stream in self._streams}

    def expected(self) -> Any:
        """What must come out, counted by DuckDB, as an Arrow table."""
        with duckdb.connect() as database:
            for name, table in self.tables().items():
                database.register(name, table)
            return database.sql(_SQL).to_arrow_table()

    def _write_until(self, wanted: int) -> None:
        while self.written <= wanted:
            for stream in self._streams:
                table = _plain(stream, self.written, self.written + ROWS_IN_A_FILE)
                _write_lines(table, self._data / stream.name / f"{self.written:09}.json")
            self.written += ROWS_IN_A_FILE

    def _being_read(self, run: Run) -> int:
        """The highest number of a first row among the files that a split has open; else 0."""
        splits = [each["pid"] for each in run.members("split")]
        opened = [path for pid in splits for path in _open_files(pid)]
        files = [path for path in opened if path.suffix == ".json" and self._data in path.parents]
        return max((int(path.stem) for path in files), default=0)


def _open_files(pid: int) -> Iterator[Path]:
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                yield entry.readlink()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        # It has ended, and whoever comes after it reads nothing that it has not read.
        return


def _made_up(seed: int) -> tuple[Stream, ...]:
    """The streams as if they were generated."""
    document = manifest()
    for number, stream in enumerate(document["spec"]["streams"]):
        pace = {"rowsPerSecond": ROWS_PER_SECOND, "keys": KEYS}
        stream["source"] = {"generator": {**pace, "seed": 2 * seed + number}}
    parsed = parse_pipeline(document)
    assert not isinstance(parsed, Refusal), parsed
    return parsed.spec.streams


def _plain(stream: Stream, first: int, last: int) -> Any:
    table = generated(stream, first, last)
    for at, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            times = table.column(at).cast(pa.timestamp("us"))
            table = table.set_column(at, column.name, times)
    return table


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _write_lines(table: Any, path: Path) -> None:
    lines = [json.dumps(row, default=_as_text) for row in table.to_pylist()]
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(f"{line}\n" for line in lines))
    hidden.rename(path)
