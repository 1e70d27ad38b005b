"""One epoch, one micro-batch: when it runs, when it is committed, what a restart does."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.harness import Replica, pipeline, stream

from tandem_core.model.pipeline import Pipeline
from tandem_runtime.spark.checks.refusals import Reason
from tandem_runtime.spark.epochs.failure import EngineError
from tandem_runtime.spark.jvm.launch import SparkDriver

Make = Callable[..., Replica]


PAYMENTS = stream("payments", "user STRING, amount BIGINT", "user")


def sums(function: str = "sum") -> Pipeline:
    sql = f"SELECT user, {function}(amount) AS total FROM payments GROUP BY user"  # noqa: S608
    return pipeline({"sql": sql}, PAYMENTS, mode="update")


def test_epochs_are_reported_and_committed_in_order(replica: Make) -> None:
    one = replica(sums())
    for epoch in (1, 2, 3):
        one.run(epoch, {"payments": [("a", epoch), ("b", 1)]})
    assert one.told.committed == [1, 2, 3]
    assert [one.told.outcomes[epoch].rows for epoch in (1, 2, 3)] == [
        [("a", 1), ("b", 1)],
        [("a", 3), ("b", 2)],
        [("a", 6), ("b", 3)],
    ]


def test_commit_is_reported_after_spark_has_written_it(replica: Make) -> None:
    one = replica(sums())
    outcomes = [one.run(epoch, {"payments": [("a", 1)]}) for epoch in (1, 2, 3, 4)]
    assert all(outcome.committed_when_told for outcome in outcomes)


def test_epoch_without_rows_runs(replica: Make) -> None:
    one = replica(sums())
    one.run(1, {"payments": [("a", 1)]})
    assert one.run(2).rows == []
    assert one.run(3, {"payments": [("a", 1)]}).rows == [("a", 2)]


def test_query_without_epochs_stops_at_once(replica: Make) -> None:
    one = replica(sums())
    begun = time.monotonic()
    one.stop()
    assert time.monotonic() - begun < 5
    assert one.told.failure is None


def test_query_runs_no_batch_before_first_epoch(replica: Make) -> None:
    one = replica(sums())
    one.run(1, {"payments": [("a", 1)]})
    one.stop()
    assert sorted(path.name for path in (one.checkpoint / "offsets").glob("[0-9]*")) == ["0"]


def test_first_epoch_may_be_late_one(replica: Make) -> None:
    one = replica(sums(), base=41)
    assert one.run(42, {"payments": [("a", 1)]}).rows == [("a", 1)]


def test_unfinished_batch_is_not_committed_and_runs_again(replica: Make, tmp_path: Path) -> None:
    one = replica(sums(), tmp_path / "checkpoint")
    one.run(1, {"payments": [("a", 1)]})
    one.finishes = False
    before = one.run(2, {"payments": [("a", 1), ("b", 5)]})
    one.stop()
    assert one.told.committed == [1]
    assert not (one.checkpoint / "commits" / "1").exists()

    again = replica(sums(), tmp_path / "checkpoint")
    after = again.run(2, {"payments": [("a", 1), ("b", 5)]})
    assert (after.rows, after.digest) == (before.rows, before.digest)
    assert again.run(3, {"payments": [("a", 1)]}).rows == [("a", 3)]


def test_query_is_opened_again_on_another_checkpoint(replica: Make, tmp_path: Path) -> None:
    ahead = replica(sums(), tmp_path / "ahead")
    for epoch in (1, 2, 3):
        ahead.run(epoch, {"payments": [("a", 1)]})
    ahead.stop()
    behind = replica(sums(), tmp_path / "behind")
    behind.run(1, {"payments": [("a", 1)]})
    behind.engine.close()
    behind.engine.open(ahead.checkpoint)
    assert behind.run(4, {"payments": [("a", 1)]}).rows == [("a", 4)]
    assert behind.told.committed == [1, 4]


def test_memory_of_read_rows_is_released(replica: Make, driver: SparkDriver) -> None:
    one = replica(sums())
    for epoch in (1, 2):
        one.run(epoch, {"payments": [("a", 1)]})
    arrow = driver.session.sparkContext._jvm.org.apache.spark.sql.util.ArrowUtils  # type: ignore[union-attr]
    assert arrow.rootAllocator().getAllocatedMemory() == 0
    maps = Path(f"/proc/{driver.jvm.process.pid}/maps").read_text()
    assert str(one.inbox) not in maps
    assert [path.name for path in one.inbox.iterdir()] == []


def test_state_of_another_query_is_refused(replica: Make, tmp_path: Path) -> None:
    one = replica(sums(), tmp_path / "checkpoint")
    one.run(1, {"payments": [("a", 1)]})
    one.stop()
    with pytest.raises(EngineError) as refused:
        replica(sums("max"), tmp_path / "checkpoint")
    assert refused.value.failure.kind == "FingerprintMismatch"
    assert refused.value.failure.is_users
    assert replica(sums(), tmp_path / "checkpoint").run(2, {"payments": [("a", 1)]}).rows == [
        ("a", 2)
    ]


def test_query_refused_by_spark_is_users_failure(replica: Make) -> None:
    wrong = pipeline({"sql": "SELECT nobody FROM payments"}, PAYMENTS)
    with pytest.raises(EngineError) as refused:
        replica(wrong)
    assert refused.value.failure.kind == Reason.MISSING_COLUMN
    assert refused.value.failure.is_users


def test_row_that_breaks_query_is_reported_once(replica: Make) -> None:
    one = replica(pipeline({"sql": "SELECT 1 DIV amount AS x FROM payments"}, PAYMENTS))
    one.run(1, {"payments": [("a", 1)]})
    one.begin(2, {"payments": [("a", 0)]})
    one.await_(lambda told: told.failure is not None)
    assert one.told.failure is not None
    assert one.told.failure.kind == "DivideByZero"
    assert one.told.failure.is_users


def test_duplicate_column_names_are_refused(replica: Make) -> None:
    with pytest.raises(EngineError) as refused:
        replica(pipeline({"sql": "SELECT user, amount AS USER FROM payments"}, PAYMENTS))
    assert refused.value.failure.kind == "QueryRefused"


def test_boot_warms_query_up_and_leaves_no_files(replica: Make, tmp_path: Path) -> None:
    one = replica(sums())
    one.stop()
    one.engine.boot()
    one.checkpoint = tmp_path / "fresh"
    one.engine.open(one.checkpoint)
    assert one.run(1, {"payments": [("a", 7)]}).rows == [("a", 7)]
    assert not (one.inbox / "warm-up").exists()


def test_boot_with_check_refuses_nondeterministic_query(replica: Make) -> None:
    query = "SELECT user, count(*) AS n, rand() AS x FROM payments GROUP BY user"
    one = replica(pipeline({"sql": query}, PAYMENTS, mode="update"))
    one.stop()
    with pytest.raises(EngineError) as refused:
        one.engine.boot(check=True)
    assert refused.value.failure.kind == Reason.RANDOMNESS
    assert refused.value.failure.is_users
    good = replica(sums())
    good.stop()
    good.engine.boot(check=True)
