"""Gives a stopped query's checkpoint another number of state partitions, on Spark's heap store.

Spark's own repartitioning refuses that store. The rows are copied by Tandem's mover, which is made
for checkpoints of its own source; these are a plain query's, with the logs of a file source.
"""

import base64
import json
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from tandem_core.routing.ring import BUCKETS
from tandem_runtime.spark.state.target_tree import (
    OperatorInfo,
    belongs,
    read_operator,
    read_progress,
    rewritten,
)

_EVERY_KEY = {
    "buckets": base64.b64encode(np.packbits(np.ones(BUCKETS, dtype=bool)).tobytes()).decode(),
    "hot": [],
    "foreign": [],
}
_KEY_COLUMNS = [0]
"""The query groups by its key alone."""


def repartition(session: SparkSession, checkpoint: Path, partitions: int) -> None:
    """Replace a checkpoint by one with this many state partitions, after its last committed batch.

    Raises:
        RuntimeError: not all rows were copied.
    """
    batch = last_committed(checkpoint)
    building = checkpoint.with_name(f"{checkpoint.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    _seed(checkpoint, building, batch, partitions)
    request = _request(checkpoint, building, batch, partitions)
    mover = session.sparkContext._jvm.dev.tandem.spark.StateMover  # type: ignore[union-attr]
    for copied in json.loads(mover.move(session._jsparkSession, json.dumps(request))):
        if copied["kept"] != copied["written"] or copied["read"] != copied["kept"]["rows"]:
            raise RuntimeError(f"not all rows were copied: {copied}")
    former = checkpoint.with_name(f"{checkpoint.name}.former")
    checkpoint.replace(former)
    building.replace(checkpoint)
    shutil.rmtree(former)


def last_committed(checkpoint: Path) -> int:
    """The last batch that was committed.

    One that was cut off by the stop runs again: the source's log names its files, and its output
    replaces itself.
    """
    return max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))


def _seed(checkpoint: Path, building: Path, batch: int, partitions: int) -> None:
    """Write all files of the target but its state; the query keeps its id."""
    for file in checkpoint.rglob("*"):
        path = PurePosixPath(file.relative_to(checkpoint).as_posix())
        kept = path.parts[0] in {"sources", "metadata"} or belongs(path, batch)
        if kept and file.is_file() and not path.name.startswith("."):
            copy = building / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(rewritten(path, file.read_bytes(), partitions))


def _request(checkpoint: Path, building: Path, batch: int, partitions: int) -> dict[str, Any]:
    logs = (checkpoint / log / str(batch) for log in ("offsets", "commits"))
    settings = read_progress(*(log.read_text() for log in logs)).settings
    files = sorted((checkpoint / "state").glob("[0-9]*/_metadata/metadata"))
    operators = [read_operator(file.read_text()) for file in files]
    before = operators[0].partitions
    return {
        "target": _tree(building, batch, partitions),
        "parents": [_tree(checkpoint, batch, before)],
        "stores": [store for operator in operators for store in _stores(operator)],
        "settings": dict(settings),
    }


def _tree(checkpoint: Path, batch: int, partitions: int) -> dict[str, Any]:
    # Batch n makes version n + 1 of the state.
    return {
        "checkpoint": str(checkpoint.resolve()),
        "version": batch + 1,
        "partitions": partitions,
        "share": _EVERY_KEY,
    }


def _stores(operator: OperatorInfo) -> list[dict[str, Any]]:
    return [
        {
            "name": {
                "operator": operator.number,
                "operatorName": operator.name,
                "store": store.name,
                "prefixColumns": store.prefix_columns,
            },
            "key": _KEY_COLUMNS,
        }
        for store in operator.stores
    ]
