"""Each kind of query is resized again and again while rows flow, then recounted.

`RESIZE_REPLICAS=2` gives every pair a twin, on a machine with room for twelve drivers.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.examples.adapting import EXAMPLES
from tests.examples.recount import RECOUNTS, Books
from tests.laptop.harness import Run
from tests.laptop.output import Output, longest_gap
from tests.soak.pipeline import ROWS_PER_SECOND, Rows, files_read

from tandem_core.model.pipeline import Pipeline, parse_pipeline

QUERIES = (
    "windowed-sums",
    "left-outer-join",
    "deduplication",
    "sessions",
    "records",
    "counts-per-key",
)
STEPS: tuple[dict[str, int], ...] = (
    {"pairs": 3, "splits": 4, "merges": 3},
    {"pairs": 2},
    {"pairs": 4, "splits": 1},
    {"pairs": 1, "merges": 1},
)
KEYS = 1000
STEP_LIMIT = 400.0
REPLICAS = int(os.environ.get("RESIZE_REPLICAS", "1"))


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", QUERIES)
def test_resized_query_delivers_what_the_recount_says(name: str, tmp_path: Path) -> None:
    manifest, rows = flowing(name, tmp_path)
    output = Output(tmp_path / "out")
    with Run(tmp_path, manifest) as run:
        with rows.flowing(run):
            run.until(run.whole, 180, "everybody runs")
            took = [run.scale(STEP_LIMIT, **step) for step in STEPS]
        status = run.completes(300)
    told = ", ".join(f"{seconds:.0f}" for seconds in took)
    gap = longest_gap(output.deliveries())
    print(f"{name}: steps took {told} s, longest gap {gap:.1f} s")  # noqa: T201
    tables, delivered = rows.tables(), output.table()
    assert status["counters"]["rowsIn"] == sum(len(table) for table in tables.values())
    RECOUNTS[name](Books(tables, delivered))
    intent = run.intent()
    assert intent is not None
    after = [past.pairs_after for past in reversed(intent.history) if not past.abandoned]
    assert after == [step["pairs"] for step in STEPS]


def flowing(name: str, home: Path) -> tuple[dict[str, Any], Rows]:
    """An example whose streams are files, which are written as they are read."""
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    spec = manifest["spec"]
    spec.update(
        epoch={"interval": "1s"},
        splits={"count": 2},
        pairs={"count": 1, "replicas": REPLICAS},
        merges={"count": 1},
    )
    for sink in spec["sinks"]:
        sink.pop("console", None)
        sink["files"] = {"path": "out", "format": "json"}
    for stream in spec["streams"]:
        source = stream["source"]["generator"]
        source.update(rowsPerSecond=ROWS_PER_SECOND, keys=min(source["keys"], KEYS))
        source.pop("rows", None)
    parsed = parse_pipeline(manifest)
    assert isinstance(parsed, Pipeline), parsed
    for stream in spec["streams"]:
        stream["source"] = files_read(stream["name"])
    for query in EXAMPLES.glob("*.py"):
        shutil.copy(query, home)
    return manifest, Rows(home, streams=parsed.spec.streams)
