"""Sizes of state: what pairs have, and what replicas send to others."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from bench.streaming.tandem_run import TandemRun

from tandem_runtime.spark.state.state_files import needed, stores, versioned

_SENT = re.compile(r"(\S+ \S+),(\d+) .*: sent (\d+) bytes of state at epoch \d+ to \S+")
"""A line of a member's log on one machine, which begins with the local time."""


def state_bytes(checkpoint: Path) -> int:
    """Bytes of the files that restore the newest state of a checkpoint.

    Spark writes a snapshot now and then, and the changes since; the snapshots are all of it but
    for the rows that changed last.
    """
    total = 0
    for store in stores(checkpoint):
        sizes = {path.name: path.stat().st_size for path in store.iterdir() if path.is_file()}
        files = versioned(sizes)
        newest = max((file.version for file in files), default=0)
        total += sum(sizes[file.name] for file in needed(files, newest, newest))
    return total


def state_of_pairs(run: TandemRun) -> int:
    """Bytes of the state of all pairs of a pipeline, one replica of each."""
    primaries = [pair["primary"] for pair in run.status()["pairs"]]
    return sum(_of_running(run.volume_of(name) / "spark") for name in primaries)


def _of_running(checkpoint: Path) -> int:
    """As `state_bytes`, of a checkpoint from which Spark may remove files meanwhile."""
    while True:
        try:
            return state_bytes(checkpoint)
        except FileNotFoundError:
            continue


def sent_bytes(run: TandemRun, start: float, end: float) -> int:
    """Bytes of state that replicas sent to others in a period, according to their logs."""
    return sum(
        size
        for log in (run.directory / "logs").glob("*.log*")
        for at, size in sent_in(log.read_text(errors="replace"))
        if start <= at <= end
    )


def sent_in(log: str) -> Iterator[tuple[float, int]]:
    """The times of a log, in seconds since 1970, at which state was sent, with its bytes."""
    for line in log.splitlines():
        found = _SENT.fullmatch(line)
        if found is not None:
            at = datetime.fromisoformat(f"{found[1]}.{found[2]}").astimezone()
            yield at.timestamp(), int(found[3])
