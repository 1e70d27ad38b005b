"""Reads Spark's logs of a batch: `offsets/<n>` before it runs, `commits/<n>` after.

The file names the batch's epoch, which is never derived from the batch's number.
"""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """The epoch that a batch reads, and the watermark that it runs under, in milliseconds."""

    epoch: int
    watermark: int


class UnreadableOffsets(Exception):
    """The file is not in the format that this version of Spark writes for this source."""


def read_batch(checkpoint: Path, batch: int) -> LoggedBatch:
    """Read the epoch from the end offset; all streams of a query have the same.

    Raises:
        FileNotFoundError: there is no such batch.
        UnreadableOffsets: the file has another format.
    """
    path = checkpoint / "offsets" / str(batch)
    version, _, rest = path.read_text(encoding="utf-8").partition("\n")
    metadata, *ends = rest.splitlines()
    try:
        (epoch,) = {json.loads(end)["epoch"] for end in ends}
        return LoggedBatch(epoch, json.loads(metadata)["batchWatermarkMs"])
    except (ValueError, KeyError, TypeError):
        raise UnreadableOffsets(f"{path} (of version {version}) has no one epoch") from None


def committed_batches(checkpoint: Path) -> dict[int, int]:
    """Return the committed batches by epoch.

    Spark removes old batches at any time; one that vanishes meanwhile is left out.
    """
    both = _numbers(checkpoint / "commits") & _numbers(checkpoint / "offsets")
    batches: dict[int, int] = {}
    for batch in sorted(both):
        try:
            batches[read_batch(checkpoint, batch).epoch] = batch
        except FileNotFoundError:
            continue
    return batches


def _numbers(directory: Path) -> set[int]:
    if not directory.exists():
        return set()
    return {int(path.name) for path in directory.iterdir() if path.name.isdecimal()}
