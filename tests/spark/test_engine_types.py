"""Every type that a schema may have comes through Spark unchanged."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.spark.harness import Replica, ms, pipeline, stream

from tandem_runtime.spark.epochs.inbox import Inbox

Make = Callable[..., Replica]


Row = tuple[object, ...]

SCHEMA = (
    "k STRING, bo BOOLEAN, ti TINYINT, sm SMALLINT, i INT NOT NULL, bi BIGINT, f FLOAT, d DOUBLE, "
    "bin BINARY, da DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, dec DECIMAL(10,2), wide DECIMAL(38,18), "
    "l ARRAY<STRING>, ll ARRAY<ARRAY<INT>>, m MAP<STRING, BIGINT>, "
    "s STRUCT<a: INT NOT NULL, b: STRUCT<c: STRING, d: ARRAY<DATE>>>, "
    "deep ARRAY<STRUCT<x: MAP<STRING, DECIMAL(5,1)>>>, `odd ``name` INT"
)
MOMENT = datetime(1969, 7, 20, 20, 17, 40, 123456, tzinfo=UTC)
FULL: Row = (
    *("ключ", True, -128, 32767, -(2**31), 2**63 - 1, 1.5, -0.1, b"\x00\xff", date(1582, 10, 15)),
    *(MOMENT, MOMENT.replace(tzinfo=None), Decimal("-12345678.90")),
    Decimal("12345678901234567890.123456789012345678"),
    *(["a", None, ""], [[1, None], [], None], [("x", 1), ("y", None)]),
    {"a": 1, "b": {"c": "d", "d": [date(2024, 2, 29), None]}},
    [{"x": [("q", Decimal("1.5"))]}, None],
    7,
)
EMPTY: Row = ("e", *[None] * 3, 0, *[None] * 15)
HOLLOW: Row = ("h", *[None] * 3, 1, *[None] * 9, [], [[]], [], {"a": 0, "b": None}, [], None)


@pytest.mark.parametrize("timed", [False, True])
def test_all_types_round_trip(replica: Make, timed: bool) -> None:
    more = {"watermark": {"column": "ts", "delay": "1s"}} if timed else {}
    one = replica(
        pipeline({"sql": "SELECT * FROM all_types"}, stream("all_types", SCHEMA, "k", **more))
    )
    epochs: list[list[Row]] = [[FULL, EMPTY, HOLLOW], [EMPTY, EMPTY], [], [HOLLOW]]
    for epoch, rows in enumerate(epochs, start=1):
        given = one.batch("all_types", rows)
        found = one.run(epoch, {"all_types": rows}, {"all_types": ms(0)}).table
        assert found.to_pylist() == given.to_pylist()
        if epoch == 1:
            assert found.schema.types == given.schema.types


def test_batches_are_read_in_order_and_completely(replica: Make) -> None:
    one = replica(pipeline({"sql": "SELECT * FROM s"}, stream("s", "k STRING, n INT", "k")))
    whole = one.batch("s", [(f"k{index}", index) for index in range(1000)])
    slices = [whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 700), whole.slice(701)]
    one.engine.run(1, {"s": slices}, {})
    one.await_(lambda told: 1 in told.committed)
    assert one.told.outcomes[1].table.combine_chunks() == pa.table(whole).combine_chunks()


def test_rows_of_another_schema_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    streams = pipeline({"sql": "SELECT * FROM s"}, stream("s", "k STRING, n INT", "k")).spec.streams
    inbox = Inbox(tmp_path_factory.mktemp("inbox"), streams)
    wrong = pa.record_batch([pa.array(["a"]), pa.array([1.5])], names=["k", "n"])
    with pytest.raises(pa.ArrowInvalid):
        inbox.write(1, {"s": [wrong]}, {})
