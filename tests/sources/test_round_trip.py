"""What a sink writes a source reads back: made-up rows of every type through both formats."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.sources.builders import files_stream, generator_stream, opened, read_to_end, rejected_of

from tandem_core.model.spec import ResultFormat
from tandem_runtime.sinks.files import DirectorySink
from tandem_runtime.sources.generator.partition import generated

EVERYTHING = (
    "k STRING, b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, f4 FLOAT, f8 DOUBLE, "
    "s STRING NOT NULL, y BINARY, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, m DECIMAL(3,2), "
    "w DECIMAL(38,20), l ARRAY<ARRAY<STRING>>, p MAP<BOOLEAN, DECIMAL(5,2)>, "
    "r STRUCT<x: INT NOT NULL, y: ARRAY<BINARY>>"
)
PLAIN = (
    "k STRING, b BOOLEAN, f4 FLOAT, f8 DOUBLE, d DATE, t TIMESTAMP, m DECIMAL(9,2), l ARRAY<INT>"
)


@pytest.mark.parametrize("schema", [EVERYTHING, PLAIN])
@pytest.mark.parametrize("result_format", list(ResultFormat))
def test_rows_round_trip_through_sink_and_source(
    tmp_path: Path, schema: str, result_format: ResultFormat
) -> None:
    rows = generated(generator_stream(schema=schema, key=["k"], jitter=100), 0, 3000)
    sink = DirectorySink(tmp_path, "uid", result_format)
    sink.deliver(1, [("pair-0", rows.slice(0, 1000)), ("pair-1", rows.slice(1000))])
    batches = read_to_end(opened(files_stream(tmp_path, schema=schema, file_format=result_format)))
    assert rejected_of(batches) == []
    found = pa.Table.from_batches([batch.rows for batch in batches])
    assert found.schema == rows.schema
    assert found.to_pylist() == rows.to_pylist()
