"""Compares the output with an independent recount of the same payments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb

_RESULTS = """
CREATE TABLE results AS SELECT user, n, total, _epoch FROM read_parquet($1)
"""
_LAST = """
CREATE TABLE counted AS
SELECT coalesce(wanted.user, found.user) AS user, coalesce(wanted.n, 0) AS wanted,
    coalesce(found.n, 0) AS found, wanted.total IS NOT DISTINCT FROM found.total AS agrees
FROM (SELECT user, count(*) AS n, sum(amount) AS total FROM payments GROUP BY user) AS wanted
FULL JOIN (
    SELECT user, max_by(n, _epoch) AS n, max_by(total, _epoch) AS total FROM results GROUP BY user
) AS found USING (user)
"""
_NUMBERS = {
    "users": "SELECT count(*) FROM counted",
    "agreeing": "SELECT count(*) FROM counted WHERE agrees AND wanted = found",
    "lost": "SELECT coalesce(sum(greatest(wanted - found, 0)), 0) FROM counted",
    "doubled": "SELECT coalesce(sum(greatest(found - wanted, 0)), 0) FROM counted",
    "results": "SELECT count(*) FROM results",
    "repeated": "SELECT count(*) - count(DISTINCT (user, n)) FROM results",
}


@dataclass(frozen=True, slots=True)
class Recount:
    """The result of the comparison."""

    users: int
    agreeing: int
    """Users whose last result equals the recount's."""
    lost: int
    """Payments that are in no result."""
    doubled: int
    """Payments that are counted twice."""
    results: int
    repeated: int
    """Results that were delivered twice."""

    @property
    def good(self) -> bool:
        """Whether nothing is lost, duplicated or wrong."""
        return self.users == self.agreeing and not (self.lost or self.doubled or self.repeated)


def recount(payments: Any, output: Path) -> Recount:
    """Count the payments (an Arrow table) with DuckDB and compare them with the sink's files."""
    with duckdb.connect() as database:
        database.register("payments", payments)
        database.execute(_RESULTS, [str(output / "*.parquet")])
        database.execute(_LAST)
        return Recount(**{name: _number(database, sql) for name, sql in _NUMBERS.items()})


def _number(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    ((found,),) = database.execute(sql).fetchall()
    return int(found)


def deliveries(output: Path) -> list[float]:
    """When each epoch's file appeared, in seconds since 1970."""
    return sorted(path.stat().st_ctime for path in output.glob("[0-9]*.parquet"))


def longest_gap(times: Sequence[float], begin: float, end: float) -> float | None:
    """The longest time between two delivered epochs that ended in a period.

    None if no two epochs were delivered by then.
    """
    gaps = (at - last for last, at in pairwise(times) if begin <= at < end)
    return max(gaps, default=None)
