"""What a file sink holds: its rows with epoch and pair, and when each epoch was delivered."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

_NAME = re.compile(r"(\d{12})(-\d+)?")
"""Epoch and, where several merge slots deliver, the slot."""


class Delivered(NamedTuple):
    """One epoch that has rows."""

    epoch: int
    at: float
    """Seconds since 1970, when its file came to be there."""


class Output:
    """A file sink's directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def files(self) -> list[Path]:
        """One for each epoch and slot, in order."""
        return sorted(path for path in self._directory.glob("*.*") if _NAME.fullmatch(path.stem))

    def last(self) -> int:
        """The last epoch that has rows; 0 if there is none."""
        return max(map(_epoch_of, self.files()), default=0)

    def deliveries(self) -> list[Delivered]:
        """Epochs in the order in which they were delivered; the last slot of an epoch counts."""
        times: dict[int, float] = {}
        for path in self.files():
            epoch = _epoch_of(path)
            times[epoch] = max(times.get(epoch, 0.0), path.stat().st_ctime)
        return sorted((Delivered(*each) for each in times.items()), key=lambda each: each.at)

    def table(self) -> Any:
        """All rows in one Arrow table, in the order of epochs; times of JSON stay text."""
        files = self.files()
        if files and files[0].suffix == ".json":
            return _of_lines(files)
        return pa.concat_tables(_of_parquet(path) for path in files) if files else pa.table({})

    def rows(self) -> list[dict[str, Any]]:
        """All rows, in the order of epochs."""
        rows: list[dict[str, Any]] = self.table().to_pylist()
        return rows


def longest_gap(deliveries: list[Delivered]) -> float:
    """The longest time between two delivered epochs, in seconds."""
    times = [each.at for each in deliveries]
    return max((b - a for a, b in pairwise(times)), default=0.0)


def _epoch_of(path: Path) -> int:
    return int(path.stem.partition("-")[0])


def _of_lines(files: list[Path]) -> Any:
    rows = [
        json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _of_parquet(path: Path) -> Any:
    """The rows of one file; zones are dropped, since all times are in UTC."""
    table = pq.ParquetFile(path).read()
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            times = table.column(index).cast(pa.timestamp("us"))
            table = table.set_column(index, field.name, times)
    return table
