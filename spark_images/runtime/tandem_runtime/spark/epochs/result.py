"""Reads the result of an epoch: the rows as bytes, and a digest to compare twins."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

_DIGEST_BITS = 62


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of an epoch."""

    payload: pa.Buffer
    """An Arrow IPC stream, lz4-compressed, with the user's columns."""
    digest: int
    """Equal for equal rows in any order."""
    rows: int


def read_result(file: Path) -> Result:
    """Read a result file of Spark: the user's columns and, last, the hash of each row."""
    with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source.read_buffer()) as reader:
        table = reader.read_all()
    hashes = table.column(table.num_columns - 1)
    rows = table.remove_column(table.num_columns - 1)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    return Result(sink.getvalue(), _sum(hashes), rows.num_rows)


def _sum(hashes: pa.ChunkedArray) -> int:
    """Add the hashes with wrap-around, so that the order of rows does not matter."""
    total: int = sum(int(chunk.to_numpy().sum()) for chunk in hashes.chunks)
    return total & ((1 << _DIGEST_BITS) - 1)
