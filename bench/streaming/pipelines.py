"""Manifests of the measured pipelines."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.streaming.rows import KEY, SCHEMA, SQL, STREAM

from tandem_core.model.pipeline import Refusal, parse_pipeline
from tandem_runtime.sources.generator.partition import generated


@dataclass(frozen=True)
class Shape:
    """The parameters of a pipeline."""

    interval_ms: int = 500
    pairs: int = 1
    replicas: int = 2
    spares: int = 0
    cores: int = 1
    memory: str = "1Gi"
    max_bytes: str | None = None
    generator: tuple[int, int] | None = None
    """Rows per second and keys of a generator; without it, files are read."""
    wide_columns: int = 0
    """Columns of a generator's rows that the query does not use."""


def manifest(shape: Shape, source: Path, output: Path) -> dict[str, Any]:
    """The manifest of pairs that count per key; `source` has JSON files."""
    epoch: dict[str, Any] = {"interval": f"{shape.interval_ms}ms"}
    if shape.max_bytes is not None:
        epoch["maxBytes"] = shape.max_bytes
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "bench"},
        "spec": {
            "epoch": epoch,
            "streams": [_stream(shape, source)],
            "query": {"sql": GENERATED_SQL if shape.generator else SQL, "outputMode": "update"},
            "splits": {"count": 2},
            "pairs": {
                "count": shape.pairs,
                "replicas": shape.replicas,
                "spares": shape.spares,
            },
            "sinks": [{"name": "totals", "files": {"path": str(output), "format": "parquet"}}],
            "spark": {"cores": shape.cores, "memory": shape.memory},
        },
    }


GENERATED_SCHEMA = "user STRING, amount BIGINT, at TIMESTAMP"
GENERATED_SQL = (
    "SELECT user, count(*) AS n, sum(amount) AS total, unix_micros(max(at)) AS last "
    "FROM payments GROUP BY user"
)
"""A generator's event times rise with the row number, so they identify rows."""


def generated_rows(shape: Shape, through: int) -> pa.Table:
    """The rows of a generator up to the one with a given time, numbered by their times."""
    pipeline = parse_pipeline(manifest(shape, Path(), Path("out")))
    assert not isinstance(pipeline, Refusal)  # noqa: S101 - it has run
    assert shape.generator is not None  # noqa: S101
    stream = pipeline.spec.streams[0]
    begin = generated(stream, 0, 1)["at"].cast(pa.int64())[0].as_py()
    count = (through - begin) * shape.generator[0] // 1_000_000 + 1
    rows = generated(stream, 0, count)
    return pa.table(
        [rows["user"], rows["amount"], rows["at"].cast(pa.int64())],
        names=["user", "amount", "number"],
    )


def _wide(shape: Shape) -> list[str]:
    return [f"wide{index} BIGINT" for index in range(shape.wide_columns)]


def _stream(shape: Shape, source: Path) -> dict[str, Any]:
    if shape.generator is not None:
        rate, keys = shape.generator
        made = {"rowsPerSecond": rate, "keys": keys, "seed": 7}
        return {
            "name": STREAM,
            "schema": ", ".join([GENERATED_SCHEMA, *_wide(shape)]),
            "key": [KEY],
            "source": {"generator": made},
        }
    read = {"path": str(source), "format": "json"}
    return {"name": STREAM, "schema": SCHEMA, "key": [KEY], "source": {"files": read}}
