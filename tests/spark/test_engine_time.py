"""Event time: Spark's watermark is the header's, whatever the rows say."""

from collections.abc import Callable
from pathlib import Path

from tests.spark.harness import Replica, at, ms, pipeline, stream

Make = Callable[..., Replica]


END_OF_TIME = 2**62
BEGINNING_OF_TIME = -(2**62)

CLICKS = stream("clicks", "k STRING, t TIMESTAMP", "k", watermark={"column": "t", "delay": "5s"})
WINDOWS = pipeline(
    {
        "sql": "SELECT k, window.end AS ended, count(*) AS n FROM clicks "
        "WHERE k <> 'nobody' GROUP BY k, window(t, '10 seconds')"
    },
    CLICKS,
)
JOIN = pipeline(
    {
        "sql": "SELECT lk, lv, rv FROM l LEFT OUTER JOIN r "
        "ON lk = rk AND rt BETWEEN lt AND lt + INTERVAL 10 SECONDS"
    },
    stream("l", "lk STRING, lv INT, lt TIMESTAMP", "lk", watermark={"column": "lt", "delay": "0s"}),
    stream("r", "rk STRING, rv INT, rt TIMESTAMP", "rk", watermark={"column": "rt", "delay": "0s"}),
)


def test_window_is_emitted_one_epoch_after_its_header(replica: Make) -> None:
    one = replica(WINDOWS)
    # Rows far ahead of the header do not move the watermark.
    assert one.run(1, {"clicks": [("a", at(1)), ("a", at(500))]}, {"clicks": ms(0)}).rows == []
    assert one.run(2, {"clicks": [("a", at(2))]}, {"clicks": ms(10)}).rows == []
    assert one.run(3, {}, {"clicks": ms(10)}).rows == [("a", at(10), 2)]
    # Late rows are told apart by the header before the last one.
    assert one.run(4, {"clicks": [("a", at(3)), ("b", at(12))]}, {"clicks": ms(20)}).rows == []
    assert one.run(5, {}, {"clicks": ms(20)}).rows == [("b", at(20), 1)]
    one.await_(lambda told: told.late == 1)


def test_end_of_time_closes_all_windows(replica: Make) -> None:
    one = replica(WINDOWS)
    one.run(1, {"clicks": [("a", at(1)), ("b", at(10_000))]}, {"clicks": BEGINNING_OF_TIME})
    one.run(2, {"clicks": [("nobody", at(2))]}, {"clicks": None})
    one.run(3, {}, {"clicks": END_OF_TIME})
    assert one.run(4, {}, {"clicks": END_OF_TIME}).rows == [("a", at(10), 1), ("b", at(10_010), 1)]


def test_rows_without_event_time_are_ignored(replica: Make) -> None:
    one = replica(WINDOWS)
    one.run(1, {"clicks": [("a", None), ("a", at(1))]}, {"clicks": ms(100)})
    assert one.run(2, {}, {"clicks": ms(100)}).rows == [("a", at(10), 1)]


def test_outer_join_emits_unmatched_row_when_both_watermarks_pass(replica: Make) -> None:
    one = replica(JOIN)
    one.run(1, {"l": [("a", 1, at(0)), ("b", 2, at(1))]}, {"l": ms(50), "r": ms(5)})
    assert one.run(2, {"r": [("a", 7, at(8))]}, {"l": ms(50), "r": ms(30)}).rows == [("a", 1, 7)]
    assert one.run(3, {}, {"l": ms(50), "r": ms(30)}).rows == [("b", 2, None)]


def test_falling_watermark_of_header_fails(replica: Make) -> None:
    one = replica(WINDOWS)
    one.run(1, {}, {"clicks": ms(100)})
    one.run(2, {}, {"clicks": ms(50)})
    one.begin(3, {}, {"clicks": ms(50)})
    one.await_(lambda told: told.failure is not None)
    assert one.told.failure is not None
    assert one.told.failure.kind == "OutOfStep"


def test_deduplication_state_lasts_for_delay_of_stream(replica: Make, tmp_path: Path) -> None:
    file = tmp_path / "query.py"
    file.write_text(
        "def build(streams):\n    return streams['clicks'].dropDuplicatesWithinWatermark(['k'])\n"
    )
    one = replica(pipeline({"python": {"file": str(file), "function": "build"}}, CLICKS))
    assert one.run(1, {"clicks": [("a", at(0)), ("a", at(1))]}, {"clicks": ms(0)}).rows == [
        ("a", at(0))
    ]
    assert one.run(2, {"clicks": [("a", at(4))]}, {"clicks": ms(6)}).rows == []
    one.run(3, {}, {"clicks": ms(6)})
    assert one.run(4, {"clicks": [("a", at(9))]}, {"clicks": ms(6)}).rows == [("a", at(9))]
