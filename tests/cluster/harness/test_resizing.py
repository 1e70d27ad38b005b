"""What tests of changes read from files and from the output of kubectl, and their manifests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cluster.e2e.flow import counting
from tests.cluster.e2e.resizing import assert_counts_grow, millicores, stages_in
from tests.cluster.e2e.test_resize import in_partitions, with_settings
from tests.crds.definition import refusals

from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.model.states import ChangeStage

WATCHED = """\
NAME       PHASE     PAIRS   EPOCH   LAG    CHANGE     AGE
spending   Running   2/2     17      0.4               80s
spending   Running   2/2     18      0.3    Planned    81s
spending   Running   2/2     18      0.3    Building   82s
spending   Running   2/2     19      0.3    Building   83s
spending   Running   3/3     20      0.3    Retiring   84s
spending   Running   3/3     21      0.2               85s
spending   Running   3/3     22      0.2    Planned    86s
"""


def test_stages_are_read_from_the_column_of_the_watch() -> None:
    assert stages_in(WATCHED) == [
        ChangeStage.PLANNED,
        ChangeStage.BUILDING,
        ChangeStage.RETIRING,
        ChangeStage.PLANNED,
    ]


@pytest.mark.parametrize(("amount", "expected"), [("100m", 100), ("2", 2000), ("0", 0)])
def test_millicores_are_read(amount: str, expected: int) -> None:
    assert millicores(amount) == expected


def test_counts_that_come_out_of_order_are_detected(tmp_path: Path) -> None:
    # The files are named by epoch and slot, and appear in the order in which they are written.
    for name, count in (("000000000001-0", 3), ("000000000002-1", 5)):
        deliver(tmp_path, name, count)
    assert_counts_grow(tmp_path)
    deliver(tmp_path, "000000000003-0", 4)
    with pytest.raises(AssertionError):
        assert_counts_grow(tmp_path)


def deliver(directory: Path, name: str, count: int) -> None:
    table = pa.table({"user": ["key-1"], "n": [count]})
    pq.write_table(table, directory / f"{name}.parquet")


def test_manifests_are_accepted_by_model_and_api_server() -> None:
    for document in (with_settings(counting(pairs=1)), in_partitions(counting(pairs=2))):
        assert refusals(document) == []
        assert isinstance(parse_pipeline(document), Pipeline)
