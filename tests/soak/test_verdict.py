"""The verdict must see what a soak is there to find."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.soak.pipeline import Rows
from tests.soak.verdict import judge


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = Rows(tmp_path_factory.mktemp("soak"), seed=1)
    rows.written = 3000
    return rows.expected()


def with_epochs(results: Any) -> Any:
    """As if delivered: each result in the epoch of the later one of its two rows."""
    later = pc.max_element_wise(results["ordered_at"], results["offered_at"])
    since = pc.subtract(later.cast(pa.int64()), pc.min(later).cast(pa.int64()))
    return results.append_column("_epoch", pc.divide(since, 500_000))


def test_correct_output_is_accepted(results: Any) -> None:
    verdict = judge(results, with_epochs(results))
    assert verdict.good
    assert verdict.rows == len(results) > 1000


def test_lost_row_is_detected(results: Any) -> None:
    verdict = judge(results, with_epochs(results).slice(1))
    assert (verdict.lost, verdict.doubled, verdict.foreign) == (1, 0, 0)


def test_doubled_row_is_detected(results: Any) -> None:
    delivered = with_epochs(results)
    verdict = judge(results, pa.concat_tables([delivered, delivered.slice(0, 2)]))
    assert (verdict.lost, verdict.doubled, verdict.foreign) == (0, 2, 0)


def test_foreign_row_is_detected(results: Any) -> None:
    delivered = with_epochs(results)
    changed = pc.add(delivered["price"], pa.array([1] + [0] * (len(delivered) - 1)))
    index = delivered.schema.get_field_index("price")
    verdict = judge(results, delivered.set_column(index, "price", changed))
    assert (verdict.lost, verdict.foreign) == (1, 1)


def test_early_row_is_detected(results: Any) -> None:
    delivered = with_epochs(results)
    last = pc.equal(delivered["_epoch"], pc.max(delivered["_epoch"]))
    index = delivered.schema.get_field_index("_epoch")
    early = pc.if_else(last, 0, delivered["_epoch"])
    verdict = judge(results, delivered.set_column(index, "_epoch", early))
    assert verdict.misordered > 0
    assert not verdict.good
