"""Reads deliveries: one file for each epoch or micro-batch, and when it appeared."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

_NAME = re.compile(r"(\d{12})(-\d+)?")
"""Epoch and, where several merge slots deliver, the slot."""


@dataclass(frozen=True)
class Delivery:
    """One epoch at the sink."""

    epoch: int
    at: float
    """When its file appeared, in seconds since 1970: the last change of its inode is the rename."""
    last: int
    """Number of the last row in it."""


def files_of(directory: Path) -> list[Path]:
    """The files of a sink, in order."""
    if not directory.is_dir():
        return []
    return sorted(
        path
        for path in directory.iterdir()
        if path.suffix == ".parquet" and _NAME.fullmatch(path.stem)
    )


def read_deliveries(directory: Path, after: int = -1) -> list[Delivery]:
    """All deliveries after an epoch; of several merge slots, each file is one."""
    return [_read(path) for path in files_of(directory) if _epoch_of(path) > after]


def _read(path: Path) -> Delivery:
    last = pc.max(pq.read_table(path, columns=["last"])["last"]).as_py()
    return Delivery(_epoch_of(path), path.stat().st_ctime_ns / 1e9, last)


def _epoch_of(path: Path) -> int:
    return int(path.stem.partition("-")[0])


class Outlet:
    """A sink's directory that is read repeatedly; each epoch is read once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.seen: list[Delivery] = []

    def look(self) -> list[Delivery]:
        """All deliveries so far."""
        after = self.seen[-1].epoch if self.seen else -1
        self.seen += read_deliveries(self.directory, after)
        return self.seen

    def reaches(self) -> int:
        """Number of the last delivered row; -1 if there is none."""
        return max((delivery.last for delivery in self.look()), default=-1)


def gaps(deliveries: Sequence[Delivery]) -> list[float]:
    """Seconds between consecutive deliveries."""
    return [after.at - before.at for before, after in pairwise(deliveries)]


@dataclass(frozen=True)
class Gap:
    """A period without a delivery."""

    seconds: float
    ended: float
    """When the next delivery came, in seconds since 1970."""


def longest_gap(deliveries: Sequence[Delivery], start: float, end: float) -> Gap:
    """The longest period without a delivery that overlaps a period."""
    touching = [
        Gap(after.at - before.at, after.at)
        for before, after in pairwise(deliveries)
        if after.at >= start and before.at <= end
    ]
    nothing = Gap(float("nan"), float("nan"))
    return max(touching, key=lambda gap: gap.seconds, default=nothing)


@dataclass(frozen=True)
class Wait:
    """A period between two deliveries."""

    since: float
    until: float
    latency: float
    """How long the first row of the delivery had waited, from when it was due."""


def waits(deliveries: Sequence[Delivery], due: Callable[[int], float]) -> list[Wait]:
    """The periods before each delivery but the first; `due` says when a row was due."""
    return [
        Wait(before.at, after.at, after.at - due(before.last + 1))
        for before, after in pairwise(deliveries)
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share of all values does not exceed."""
    return float(np.percentile(values, 100 * share)) if len(values) else float("nan")
