"""The examples at a size that tests can wait for: fewer rows, and those quickly."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tandem_core.model.pipeline import Refusal, parse_pipeline
from tandem_core.model.spec import GeneratorSource, Stream
from tandem_runtime.sources.generator.partition import generated

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 5
"""In which the rows come."""
ROWS_OF_AN_ENDLESS_STREAM = 100_000

Document = dict[str, Any]
Tables = dict[str, Any]


def adapted(name: str, share: float, pairs: int, home: Path) -> tuple[Document, Tables]:
    """An example that takes this share of its rows in a few seconds, and those rows.

    Without twins: they are the matter of other tests. The times of a generator's rows follow from
    its pace. So streams that go by event time become files with the rows of the example's own pace,
    read faster than that; the others are generated faster. What goes to the console goes to a file.
    """
    manifest: Document = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    spec = manifest["spec"]
    spec["pairs"] = {"count": pairs, "replicas": 1}
    # Many epochs on a slow machine too, where rows wait: what is late has missed two of them.
    spec["epoch"] = {"interval": "500ms", "maxBytes": "64Ki"}
    for sink in spec["sinks"]:
        if sink.pop("console", None) is not None:
            sink["files"] = {"format": "json"}
        sink["files"]["path"] = "out"
    for stream in spec["streams"]:
        source = stream["source"]["generator"]
        source["rows"] = int(source.get("rows", ROWS_OF_AN_ENDLESS_STREAM) * share)
        if "watermark" not in stream:
            source["rowsPerSecond"] = source["rows"] // SECONDS
    rows = {stream.name: _rows(stream) for stream in _streams(manifest)}
    for stream in spec["streams"]:
        if "watermark" in stream:
            stream["source"] = _as_files(stream["name"], rows[stream["name"]], home)
    for query in EXAMPLES.glob("*.py"):
        shutil.copy(query, home)
    return manifest, {name: _without_zone(table) for name, table in rows.items()}


def _streams(manifest: Document) -> tuple[Stream, ...]:
    parsed = parse_pipeline(manifest)
    assert not isinstance(parsed, Refusal), parsed
    return parsed.spec.streams


def _rows(stream: Stream) -> Any:
    count = cast("GeneratorSource", stream.source).rows
    assert count is not None
    return generated(stream, 0, count)


def _as_files(stream: str, rows: Any, home: Path) -> Document:
    directory = home / "data" / stream
    directory.mkdir(parents=True)
    half = len(rows) // 2
    pq.write_table(rows.slice(0, half), directory / "0.parquet")
    pq.write_table(rows.slice(half), directory / "1.parquet")
    return {
        "files": {
            "path": f"data/{stream}",
            "format": "parquet",
            "bounded": True,
            "rowsPerSecond": len(rows) // SECONDS,
        }
    }


def _without_zone(table: Any) -> Any:
    """All times are in UTC; without a zone they compare as they stand."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            times = table.column(index).cast(pa.timestamp("us"))
            table = table.set_column(index, field.name, times)
    return table
