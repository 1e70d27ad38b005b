"""Each example is run and its result compared with a recount of the same rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.examples.adapting import EXAMPLES, adapted
from tests.examples.recount import RECOUNTS, Books, in_order
from tests.laptop.harness import Run
from tests.laptop.output import Output

KEYS = {
    "counts-per-key": "user",
    "deduplication": "click_id",
    "left-outer-join": "order_id",
    "on-kubernetes": "user",
    "records": "user",
    "sessions": "user",
    "threshold": "user",
    "windowed-sums": "user",
}
SHARES = {"counts-per-key": 0.2, "on-kubernetes": 0.2, "threshold": 0.3, "records": 0.5}
PAIRS = {"counts-per-key": 2}


def test_every_example_has_a_recount() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.yaml")) == sorted(RECOUNTS)


def test_key_whose_rows_come_out_of_order_is_found() -> None:
    times = [f"2024-01-01T00:00:{second}" for second in ("10", "20", "20.5")]
    columns = {"user": ["a", "b", "a"], "since": times}
    in_order(Books({}, pa.table({**columns, "_epoch": [2, 1, 2]})), "user", "since")
    with pytest.raises(AssertionError):
        in_order(Books({}, pa.table({**columns, "_epoch": [2, 1, 1]})), "user", "since")


@pytest.mark.parametrize("name", RECOUNTS)
def test_an_example_delivers_what_the_recount_says(name: str, tmp_path: Path) -> None:
    pairs = PAIRS.get(name, 1)
    manifest, rows = adapted(name, SHARES.get(name, 1.0), pairs, tmp_path)
    with Run(tmp_path, manifest) as run:
        status = run.completes(150)
    delivered = Output(tmp_path / "out").table()
    assert status["counters"]["rowsIn"] == sum(len(table) for table in rows.values())
    assert status["counters"]["rowsOut"] == len(delivered)
    books = Books(rows, delivered)
    RECOUNTS[name](books)
    books.name("owners", f"SELECT DISTINCT {KEYS[name]} AS key, _pair FROM delivered")  # noqa: S608
    books.none("SELECT key FROM owners GROUP BY key HAVING count(*) > 1")
    assert len(books.rows("SELECT DISTINCT _pair FROM owners")) == pairs
    in_update_mode = manifest["spec"]["query"]["outputMode"] == "update"
    recount_sees_what_is_wrong(name, rows, delivered, in_update_mode)


def recount_sees_what_is_wrong(
    name: str, rows: dict[str, Any], delivered: Any, in_update_mode: bool
) -> None:
    """A recount that agrees with everything would prove nothing."""
    size = len(delivered)
    # What is missing in update mode shows only where nothing came after it.
    one_less = delivered.slice(0, size - 1) if in_update_mode else delivered.slice(1)
    one_twice = pa.concat_tables([delivered, delivered.slice(size - 1)])
    for wrong in (one_less, one_twice):
        with pytest.raises(AssertionError):
            RECOUNTS[name](Books(rows, wrong))
