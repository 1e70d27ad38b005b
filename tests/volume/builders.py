"""Segments of rows for tests of chunks."""

import pyarrow as pa

from tandem_core.routing.key_hashing import hash_keys
from tandem_runtime.protocol.types import Segment
from tandem_runtime.volume.chunks import HASH


def rows(first: int, count: int) -> pa.RecordBatch:
    """Rows as they are sealed, with the hashes of their keys."""
    users = [f"user-{n}" for n in range(first, first + count)]
    batch = pa.record_batch({"user": users, "amount": list(range(first, first + count))})
    return batch.append_column(HASH, pa.array(hash_keys(batch, ["user"]), pa.uint64()))


def segment(partition: str, first: int, count: int) -> Segment:
    """The rows of a partition from a number on, which is their position too."""
    stream = partition.partition("/")[0]
    return Segment(
        partition=partition,
        position=("at", first),
        ordinal=first,
        rows=count,
        payload=(stream, rows(first, count)),
    )
