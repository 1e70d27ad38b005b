"""A query that depends on the order of rows, fed by real splits."""

from pathlib import Path
from typing import Any

import pytest
from tests.services.by_position import PAYMENTS, Layout, kill_one, rebuilt, rows_of, run
from tests.services.intake import Epoch

from tandem_runtime.services import driver as services
from tandem_runtime.spark.epochs.engine import Engine
from tandem_runtime.spark.jvm.launch import SparkDriver

LAYOUTS = (
    Layout(1, {"interval": "500ms"}, pairs=1, clicks=False),
    Layout(2, {"interval": "300ms"}, pairs=1, clicks=False, happens=kill_one),
)


@pytest.fixture
def _spark(driver: SparkDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas run real Spark, in the JVM of all tests."""

    class Warm(Engine):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, session=driver.session)

        def boot(self, *, check: bool = False, warm_up: bool = True) -> None:
            """It is up."""

    monkeypatch.setattr(services, "Engine", Warm)


def expected(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the query tells in each epoch, worked out from the rebuilt ones."""
    amounts: dict[str, list[int]] = {}
    began: dict[str, Any] = {}
    told = []
    for epoch in files:
        touched = set()
        for row in rows_of(epoch["payments"]):
            user = row["user"]
            touched.add(user)
            began.setdefault(user, row["at"])
            given = [] if row["amount"] is None else [row["amount"]]
            amounts.setdefault(user, []).extend(given)
        told.append({user: (list(amounts[user]), began[user]) for user in touched})
    return told


def result_of(epoch: Epoch) -> dict[str, Any]:
    return {row["user"]: (row["amounts"], row["began"]) for row in epoch.result}


@pytest.mark.usefixtures("_spark")
@pytest.mark.parametrize("layout", LAYOUTS, ids=["one split", "one of two splits dies"])
def test_order_dependent_query_matches_source_order(tmp_path: Path, layout: Layout) -> None:  # [4]
    ran = run(tmp_path, layout)
    ((pair, replica),) = ran.replicas.items()
    files = rebuilt(ran, pair)
    assert [result_of(epoch) for epoch in replica.epochs] == expected(files)
    assert sum(len(rows_of(file["payments"])) for file in files) == PAYMENTS
