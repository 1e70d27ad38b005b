"""A pipeline whose epochs are compared with those that are built again from its sources."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from tests.services.intake import Document, Intake

from tandem_runtime.services.replay_epoch import replay_epoch

FILES, ROWS_OF_A_FILE, CLICKS = 12, 400, 4000
PAYMENTS = FILES * ROWS_OF_A_FILE
SCHEMA = "user STRING, amount INT, at TIMESTAMP, tags ARRAY<STRING>"


def fill(directory: Path) -> None:
    """Files of three partitions, some rows of which do not fit or have no value."""
    draw = random.Random(5)  # noqa: S311
    directory.mkdir(parents=True)
    for number in range(FILES):
        lines = []
        for row in range(ROWS_OF_A_FILE):
            seconds, place = divmod(number * ROWS_OF_A_FILE + row, 60)
            value: dict[str, object] = {
                "user": f"user-{draw.randrange(30)}",
                "at": f"2024-01-01T00:{seconds % 60:02}:{place:02}Z",
                "tags": draw.choice([None, [], ["a", None], ["long" * 5]]),
            }
            if draw.random() < 0.7:
                value["amount"] = draw.randrange(1000)
            lines.append(json.dumps(value))
            if row % 97 == 0:
                lines.append('{"user": 7}')
        (directory / f"{number:02}.json").write_text("\n".join(lines))


def manifest(source: Path, layout: Layout) -> Document:
    payments = {
        "name": "payments",
        "schema": SCHEMA,
        "key": ["user"],
        "source": {
            "files": {
                "path": str(source),
                "format": "json",
                "bounded": True,
                "partitions": 3,
                "rowsPerSecond": layout.rate,
            }
        },
        "watermark": {"column": "at", "delay": "10s"},
        "onError": "deadLetter",
    }
    clicks = {
        "name": "clicks",
        "schema": "user STRING, n BIGINT",
        "key": ["user"],
        "source": {
            "generator": {"rowsPerSecond": layout.rate, "keys": 50, "seed": 3, "rows": CLICKS}
        },
    }
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "tried"},
        "spec": {
            "streams": [payments, clicks] if layout.clicks else [payments],
            "query": {"sql": BOTH if layout.clicks else IN_ORDER, "outputMode": "update"},
            "sinks": [{"name": "none", "console": {}}],
            "epoch": layout.epoch,
        },
    }


BOTH = "SELECT user FROM payments UNION ALL SELECT user FROM clicks"
IN_ORDER = (
    "SELECT user, collect_list(amount) AS amounts, first(at) AS began FROM payments GROUP BY user"
)


def _nothing(_: Intake) -> None: ...


class Layout(NamedTuple):
    """How a pipeline is run, and what happens to it in the middle."""

    splits: int
    epoch: Document
    pairs: int = 2
    rate: int = 2500
    clicks: bool = True
    happens: Callable[[Intake], None] = _nothing
    after: float = 0.4
    """The part of all rows that are in epochs when it happens."""


def kill_one(run: Intake) -> None:
    """A split dies; a file comes too late to be read."""
    (run.directory.parent / "source" / "00-late.json").write_text('{"user": "nobody"}')
    run.kill(1)


def let_one_leave(run: Intake) -> None:
    run.let_leave(0)


def drawn(seed: int) -> Layout:
    """Some layout."""
    draw = random.Random(seed)  # noqa: S311
    splits = draw.randint(1, 3)
    epoch = {
        "interval": f"{draw.randint(100, 800)}ms",
        "maxBytes": draw.choice(["64Ki", "200Ki", "64Mi"]),
    }
    happens = draw.choice([kill_one, let_one_leave]) if splits > 1 else _nothing
    pairs, rate = draw.randint(1, 3), draw.choice([2000, 4000])
    return Layout(splits, epoch, pairs=pairs, rate=rate, happens=happens)


def run(directory: Path, layout: Layout) -> Intake:
    """Run a pipeline to its end."""
    fill(directory / "source")
    document = manifest(directory / "source", layout)
    with Intake(directory / "run", document, splits=layout.splits, pairs=layout.pairs) as running:
        running.await_rows(layout.after * (PAYMENTS + CLICKS * layout.clicks))
        layout.happens(running)
        running.await_end()
    return running


def rebuilt(of: Intake, pair: str) -> list[dict[str, Any]]:
    """The files of all epochs of a pair, from the sources alone."""
    headers = [epoch.header for epoch in of.replicas[pair].epochs]
    return [
        replay_epoch(of.pipeline, before, header, of.shares[pair])
        for before, header in zip([None, *headers], headers, strict=False)
    ]


def rows_of(file: Any) -> list[dict[str, Any]]:
    """The rows of a stream in an epoch, without the tick."""
    rows: list[dict[str, Any]] = pa.ipc.open_stream(file).read_all().to_pylist()
    return [row for row in rows if row["user"] is not None]
