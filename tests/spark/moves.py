"""A story of moves: one owner becomes two, keys move between them, two become one again.

After every step the owners' output, epoch by epoch, and their state must be those of a query that
was never touched.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from tests.spark.harness import Replica, at, pipeline, stream
from tests.spark.move_keys import COUNT, Key

from tandem_core.model.pipeline import Pipeline
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.key_hashing import hash_columns
from tandem_core.routing.ring import bucket_of
from tandem_core.routing.xxh64 import U64Array
from tandem_runtime.arrow.schema import arrow_schema
from tandem_runtime.spark.checks.key_places import KeyPlace
from tandem_runtime.spark.checks.state_operators import key_places
from tandem_runtime.spark.state.mover import MovedStore, MoveTarget, Parent, move_state

SECONDS = 3
"""An epoch has the events of so many seconds."""

Rows = Mapping[str, Sequence[tuple[object, ...]]]
Owners = dict[str, Path]
"""The checkpoint of each pair."""
Output = Counter[tuple[object, ...]]
"""The rows of an epoch."""
State = dict[tuple[int, str], tuple[int, int]]
"""Rows and hash of every store of every operator."""


@dataclass(frozen=True)
class Query:
    """A query over payments and refunds with a key."""

    mode: str
    sql: str = ""
    python: str = ""
    """The text of a Python file, with {names} and {ddl} of the key."""
    streams: tuple[str, ...] = ("payments",)


_FUNCTION = """
def build(streams):
    payments = streams['payments']
    return """

_TIMERS = """
import pandas as pd
from pyspark.sql.streaming.state import GroupStateTimeout

def count(key, frames, state):
    rows = -1 if state.hasTimedOut else sum(map(len, frames))
    n = (state.get[0] if state.exists else 0) + rows
    state.update((n,))
    if not state.hasTimedOut:
        state.setTimeoutTimestamp(max(state.getCurrentWatermarkMs(), 0) + 1 + n % 5 * 1000)
    yield pd.DataFrame([(*key, n)], columns=[*{names}, "n"])

def build(streams):
    return streams["payments"].groupBy(*{names}).applyInPandasWithState(
        count, "{ddl}, n LONG", "n LONG", "update", GroupStateTimeout.EventTimeTimeout
    )
"""

_WINDOWS = """
SELECT {key}, window.start AS began, sum(amount) AS total FROM payments
GROUP BY window(at, '4 seconds'), {key}
"""

QUERIES = {
    "totals": Query(
        "update", "SELECT {key}, count(*) AS n, sum(amount) AS total FROM payments GROUP BY {key}"
    ),
    "averages": Query(
        "update",
        "SELECT {key}, avg(amount) AS mean, max(amount) AS most FROM payments GROUP BY {key}",
    ),
    "windows": Query("append", _WINDOWS),
    "updated-windows": Query("update", _WINDOWS),
    "chained": Query(
        "append",
        "SELECT {key}, window(window, '4 seconds').start AS began, sum(n) AS n FROM (SELECT {key}, "
        "window, count(*) AS n FROM payments GROUP BY window(at, '2 seconds'), {key}) "
        "GROUP BY window(window, '4 seconds'), {key}",
    ),
    "sessions": Query(
        "append",
        "SELECT {key}, session_window.start AS began, count(*) AS n FROM payments "
        "GROUP BY session_window(at, '1 second'), {key}",
    ),
    "distinct": Query(
        "append", python=_FUNCTION + "payments.select(*{names}, 'amount').dropDuplicates()"
    ),
    "distinct-times": Query(
        "append", python=_FUNCTION + "payments.dropDuplicates([*{names}, 'at'])"
    ),
    "distinct-in-time": Query(
        "append", python=_FUNCTION + "payments.dropDuplicatesWithinWatermark(['amount', *{names}])"
    ),
    "timers": Query("update", python=_TIMERS),
    "join": Query(
        "append",
        "SELECT {p.key}, p.amount, r.amount AS back, p.at FROM payments p JOIN refunds r ON "
        "{on} AND r.at BETWEEN p.at - INTERVAL 2 SECONDS AND p.at + INTERVAL 4 SECONDS",
        streams=("payments", "refunds"),
    ),
    "left-join": Query(
        "append",
        "SELECT {p.key}, p.amount, r.amount AS back, p.at FROM payments p LEFT JOIN refunds r ON "
        "{on} AND r.amount = p.amount + 1 AND "
        "r.at BETWEEN p.at - INTERVAL 2 SECONDS AND p.at + INTERVAL 4 SECONDS",
        streams=("payments", "refunds"),
    ),
    "full-join": Query(
        "append",
        "SELECT {p.key}, p.amount, r.amount AS back, p.at, r.at AS back_at FROM payments p "
        "FULL JOIN refunds r ON {on} AND r.amount = p.amount + 1 AND "
        "r.at BETWEEN p.at - INTERVAL 2 SECONDS AND p.at + INTERVAL 4 SECONDS",
        streams=("payments", "refunds"),
    ),
}


def describe(query: Query, key: Key, place: Path) -> Pipeline:
    """Make the pipeline of a query; a Python function becomes a file in `place`."""
    watermark = {"column": "at", "delay": "1s"}
    schema = f"{', '.join(key.ddl)}, amount BIGINT, at TIMESTAMP"
    streams = [
        {**stream(name, schema, "", watermark=watermark), "key": key.names}
        for name in query.streams
    ]
    if query.sql:
        on = " AND ".join(f"p.{name} = r.{name}" for name in key.names)
        sql = query.sql.replace("{key}", key.columns()).replace("{p.key}", key.columns("p."))
        return pipeline({"sql": sql.replace("{on}", on)}, *streams, mode=query.mode)
    file = place / "query.py"
    text = query.python.replace("{names}", str(key.names))
    file.write_text(text.replace("{ddl}", ", ".join(key.ddl)))
    program = {"python": {"file": str(file), "function": "build"}}
    return pipeline(program, *streams, mode=query.mode)


def rows_of(epoch: int, key: Key, streams: Sequence[str]) -> Rows:
    """Return the rows of an epoch: some of them late, some twice, some in the epoch before too."""
    return {
        name: [
            *_new_rows(epoch, key, offset),
            *(row for row in _new_rows(epoch - 1, key, offset) if row[-1] >= _watermark(epoch - 1)),
        ]
        for offset, name in enumerate(streams)
    }


def _new_rows(epoch: int, key: Key, offset: int) -> list[tuple[Any, ...]]:
    return [
        (
            *key.value((number * 5 + epoch + offset) % COUNT),
            (number * 3) % 4 + epoch,
            at(epoch * SECONDS) + timedelta(milliseconds=(number * 370) % 3000 - 700),
        )
        for number in range(24)
    ]


def _watermark(epoch: int) -> datetime:
    """Return the watermark from the epoch on."""
    return at((epoch + 1) * SECONDS - 1)


def united(state: State, moved: Sequence[MovedStore]) -> State:
    """Add what a further owner has."""
    sums = {}
    for one in moved:
        rows, total = state.get((one.operator, one.store), (0, 0))
        sums[one.operator, one.store] = (rows + one.kept, (total + one.hash) % 2**64)
    return sums


class Story:
    """A query on checkpoints that change owners."""

    def __init__(self, session: SparkSession, place: Path, query: Query, key: Key) -> None:
        self.session = session
        self.place = place
        self.key = key
        self.streams = query.streams
        self.pipeline = describe(query, key, place)
        self.places: tuple[KeyPlace, ...] = key_places(session, self.pipeline)
        self._number = 0

    def run(self, owners: Owners, function: RoutingFunction, epochs: range) -> list[Output]:
        """Run epochs on the checkpoints of all owners; return each epoch's rows."""
        by_owner = [self._run_one(pair, owners[pair], function, epochs) for pair in function.pairs]
        return [sum(outcomes, Counter()) for outcomes in zip(*by_owner, strict=True)]

    def move(
        self, owners: Owners, before: RoutingFunction, after: RoutingFunction, epoch: int, v: int
    ) -> tuple[Owners, State]:
        """Move the state to new checkpoints; return them and their state."""
        parents = [Parent(owners[pair], before.share_of(pair)) for pair in before.pairs]
        made: Owners = {}
        state: State = {}
        for pair in after.pairs:
            made[pair] = self.fresh(pair)
            target = MoveTarget(made[pair], after.share_of(pair), v)
            moved = move_state(self.session, parents, epoch, target, self.places)
            state = united(state, moved)
        return made, state

    def _run_one(
        self, pair: str, checkpoint: Path, function: RoutingFunction, epochs: range
    ) -> list[Output]:
        replica = Replica(
            self.session, self.pipeline, self.fresh("inbox"), checkpoint, epochs.start - 1
        )
        try:
            return [
                Counter(replica.run(epoch, *self._given(epoch, pair, function)).rows)
                for epoch in epochs
            ]
        finally:
            replica.stop()

    def hashes(self, keys: Sequence[tuple[object, ...]]) -> U64Array:
        """Hash keys as a split does; further values of a row do not matter."""
        types = arrow_schema(self.pipeline.spec.streams[0].schema).types[: len(self.key.names)]
        columns = [pa.array([key[n] for key in keys], kind) for n, kind in enumerate(types)]
        return hash_columns(columns, self.key.names)

    def _given(
        self, epoch: int, pair: str, function: RoutingFunction
    ) -> tuple[Rows, dict[str, int | None]]:
        given: dict[str, Any] = {}
        for name, rows in rows_of(epoch, self.key, self.streams).items():
            mine = function.share_of(pair).holds(self.hashes(rows))
            given[name] = [row for row, kept in zip(rows, mine, strict=True) if kept]
        watermark = round(_watermark(epoch).timestamp() * 1000)
        return given, dict.fromkeys(self.streams, watermark)

    def fresh(self, name: str) -> Path:
        """Name a directory that does not exist."""
        self._number += 1
        return self.place / f"{self._number}-{name}"


ALL = RoutingFunction.plain(["all"])
HALVES = RoutingFunction.plain(["left", "right"])


def keys_by_half(story: Story) -> list[U64Array]:
    """Return the hashes of the keys of each half."""
    hashes = np.unique(story.hashes([story.key.value(number) for number in range(COUNT)]))
    owners = HALVES.owner_of(hashes)
    assert set(owners) == {0, 1}
    return [hashes[owners == half] for half in (0, 1)]


def buckets_moved(story: Story) -> RoutingFunction:
    """Return the two halves after the left one has given half of its keys' buckets."""
    left, right = (set(np.flatnonzero(HALVES.bucket_owners == half).tolist()) for half in (0, 1))
    given = set(bucket_of(keys_by_half(story)[0])[::2].tolist())
    return RoutingFunction.explicit({"left": left - given, "right": right | given})


def hot_key_moved(story: Story) -> RoutingFunction:
    """Return the two halves after the left one has given a single key."""
    given = keys_by_half(story)[0][:1]
    return RoutingFunction(HALVES.pairs, HALVES.vnodes, given, np.array([1], dtype=np.uint16))


def keys_exchanged(story: Story) -> RoutingFunction:
    """Return the two halves after each has given a third of its keys to the other one."""
    given = np.concatenate([keys[::3] for keys in keys_by_half(story)])
    given.sort()
    return RoutingFunction(HALVES.pairs, HALVES.vnodes, given, 1 - HALVES.owner_of(given))


STEPS: Mapping[str, Callable[[Story], RoutingFunction]] = {
    "split": lambda _: HALVES,
    "move": buckets_moved,
    "hot-key": hot_key_moved,
    "exchange": keys_exchanged,
    "unite": lambda _: ALL,
}
"""What owns the keys after each step."""

_FIRST, _BETWEEN = 3, 2
"""Epochs before the first step, and between two steps."""


def tell(story: Story, steps: Sequence[str], partitions: Sequence[int]) -> None:
    """Run the story with so many state partitions: at first, and after each of the steps."""
    first, *later = partitions
    end = _FIRST + _BETWEEN * len(steps) + 1
    untouched, owners = {"all": story.fresh("untouched")}, {"all": story.fresh("all")}
    with state_partitions(story.session, first):
        expected = story.run(untouched, ALL, range(1, end + 1))
        assert story.run(owners, ALL, range(1, _FIRST + 1)) == expected[:_FIRST]
    assert partitions_of(untouched["all"]) == set(range(first))
    before = ALL
    for number, (step, v) in enumerate(zip(steps, later, strict=True)):
        epoch, after = _FIRST + _BETWEEN * number, STEPS[step](story)
        owners, state = story.move(owners, before, after, epoch, v)
        assert state == story.move(untouched, ALL, ALL, epoch, first)[1]
        assert any(rows for rows, _ in state.values())
        last = end if step is steps[-1] else epoch + _BETWEEN
        assert story.run(owners, after, range(epoch + 1, last + 1)) == expected[epoch:last]
        assert any(expected[epoch:last])
        assert all(partitions_of(tree) == set(range(v)) for tree in owners.values())
        before = after
    assert story.move(owners, before, ALL, end, 1)[1] == story.move(untouched, ALL, ALL, end, 1)[1]


@contextmanager
def state_partitions(session: SparkSession, count: int) -> Iterator[None]:
    """Let new queries have so many state partitions."""
    name = "spark.sql.shuffle.partitions"
    usual = session.conf.get(name) or ""
    session.conf.set(name, count)
    try:
        yield
    finally:
        session.conf.set(name, usual)


def partitions_of(checkpoint: Path) -> set[int]:
    """Return the state partitions of the first operator."""
    return {int(path.name) for path in (checkpoint / "state" / "0").glob("[0-9]*")}
