"""Compares what was delivered with what must come out, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

_RESULTS = """
CREATE VIEW results AS SELECT item, quantity, ordered_at, price, offered_at FROM delivered
"""
_COUNTS = {
    "rows": "SELECT count(*) FROM results",
    "lost": "SELECT count(*) FROM (FROM expected EXCEPT FROM results)",
    "doubled": """
        SELECT (SELECT count(*) FROM results) - count(*) FROM (SELECT DISTINCT * FROM results)""",
    "foreign": "SELECT count(*) FROM (FROM results EXCEPT FROM expected)",
    "misordered": """
        SELECT count(*) FROM (
            SELECT
                _epoch < lag(_epoch) OVER (PARTITION BY item, offered_at ORDER BY ordered_at)
                OR _epoch < lag(_epoch) OVER (PARTITION BY item, ordered_at ORDER BY offered_at)
                AS falls
            FROM delivered)
        WHERE falls""",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison found, in rows."""

    rows: int
    """Delivered."""
    lost: int
    doubled: int
    foreign: int
    """Delivered, though nothing of the kind should have come out."""
    misordered: int
    """Delivered in an earlier epoch than what had to come before them."""

    @property
    def good(self) -> bool:
        """Whether exactly what had to come out did, in order."""
        return not (self.lost or self.doubled or self.foreign or self.misordered)


def judge(expected: Any, delivered: Any) -> Verdict:
    """Compare two tables; the delivered one has epochs.

    All results that a row takes part in come out in the order of its partners: the result of two
    rows belongs to the epoch of the later one, and epochs follow the order of each stream.
    """
    with duckdb.connect() as database:
        database.register("expected", expected)
        database.register("delivered", delivered)
        database.execute(_RESULTS)
        return Verdict(**{name: _number(database, sql) for name, sql in _COUNTS.items()})


def _number(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    ((found,),) = database.execute(sql).fetchall()
    return int(found)
