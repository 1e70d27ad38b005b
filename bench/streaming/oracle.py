"""Recounts everything without Spark, and compares epoch by epoch.

The last row of an epoch is the last one of its key, so the highest `last` of an epoch identifies
its rows, and thus its required results. A missing epoch makes the next one seem larger, and its
rows are missed there, unless all its keys occur again in the next one; so numbers without a file
are counted too. A repeated epoch has surplus rows.
"""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from bench.streaming.deliveries import files_of
from bench.streaming.rows import Rows

_DIFFERENCE = """
WITH delivered AS (
  SELECT CAST(regexp_extract(filename, '(\\d{12})(-\\d+)?\\.parquet$', 1) AS BIGINT) AS epoch,
         user, n, CAST(total AS HUGEINT) AS total, last
  FROM read_parquet($files, filename = true)
),
bounds AS (SELECT epoch, max(last) AS last FROM delivered GROUP BY epoch),
placed AS (
  SELECT fed.user, fed.amount, fed.number, bounds.epoch
  FROM fed ASOF LEFT JOIN bounds ON fed.number <= bounds.last
),
expected AS (
  SELECT epoch, user,
         CAST(sum(count(*)) OVER so_far AS BIGINT) AS n,
         CAST(sum(sum(amount)) OVER so_far AS HUGEINT) AS total,
         max(number) AS last
  FROM placed GROUP BY epoch, user
  WINDOW so_far AS (PARTITION BY user ORDER BY epoch)
)
SELECT (SELECT count(*) FROM (FROM expected EXCEPT ALL FROM delivered)),
       (SELECT count(*) FROM (FROM delivered EXCEPT ALL FROM expected)),
       (SELECT count(*) FROM delivered),
       (SELECT count(*) FROM bounds),
       (SELECT max(epoch) - min(epoch) + 1 - count(*) FROM bounds)
"""

_TOTALS = """
WITH delivered AS (
  SELECT CAST(regexp_extract(filename, '(\\d{12})(-\\d+)?\\.parquet$', 1) AS BIGINT) AS epoch,
         user, n, CAST(total AS HUGEINT) AS total, last
  FROM read_parquet($files, filename = true)
),
final AS (
  SELECT user, max(n) AS n, arg_max(total, n) AS total, max(last) AS last
  FROM delivered GROUP BY user
),
expected AS (
  SELECT user, count(*) AS n, CAST(sum(amount) AS HUGEINT) AS total, max(number) AS last
  FROM fed GROUP BY user
),
grown AS (
  SELECT n > coalesce(lag(n) OVER (PARTITION BY user ORDER BY epoch), 0) AS has_grown
  FROM delivered
)
SELECT (SELECT count(*) FROM (FROM expected EXCEPT ALL FROM final)),
       (SELECT count(*) FROM (FROM final EXCEPT ALL FROM expected))
         + (SELECT count(*) FROM grown WHERE NOT has_grown),
       (SELECT count(*) FROM delivered),
       (SELECT count(DISTINCT epoch) FROM delivered),
       (SELECT max(epoch) - min(epoch) + 1 - count(DISTINCT epoch) FROM delivered)
"""

_COUNTED = """
SELECT sum(n) FROM (SELECT max(n) AS n FROM read_parquet($files) GROUP BY user)
"""


@dataclass(frozen=True)
class Verdict:
    """How the output compares with the recount."""

    fed: int
    """Rows that were fed."""
    delivered: int
    """Result rows that were delivered."""
    epochs: int
    missing: int
    """Result rows in the recount that the output lacks."""
    surplus: int
    """Result rows in the output that the recount lacks."""
    skipped: int
    """Numbers of epochs without a file between the first and the last: an epoch without rows has
    none, but every epoch of these inputs has rows, except where a split's lane was closed."""

    @property
    def right(self) -> bool:
        """Whether nothing is lost, duplicated or wrong."""
        return self.missing == 0 and self.surplus == 0

    @property
    def brief(self) -> str:
        """A short text for a table."""
        if self.right:
            return f"equal, {self.epochs:,} epochs"
        return f"DIFFERENT: {self.missing:,} missing, {self.surplus:,} too many"

    def __str__(self) -> str:
        word = "equal" if self.right else "DIFFERENT"
        return (
            f"{word} to the recount: {self.fed:,} rows in, {self.delivered:,} result rows in "
            f"{self.epochs:,} epochs, {self.missing} missing, {self.surplus} too many, "
            f"{self.skipped} numbers skipped"
        )


def recount(directory: Path, rows: Rows, fed: int) -> Verdict:
    """Compare a sink's files with the first `fed` rows."""
    return recount_table(directory, rows.table(0, fed))


def recount_totals(directory: Path, rows: Rows, fed: int) -> Verdict:
    """Compare the last result of each key with the first `fed` rows, and see that counts only grow.

    For sources of several partitions, whose rows have no common order: their epochs cannot be
    identified by the highest row.
    """
    return _compared(directory, rows.table(0, fed), _TOTALS)


def counted_rows(directory: Path) -> int:
    """How many rows a sink's files counted: the last count of every key."""
    files = [str(path) for path in files_of(directory)]
    if not files:
        return 0
    with duckdb.connect() as database:
        found = database.execute(_COUNTED, {"files": files}).fetchone()
    return int(found[0]) if found else 0


def recount_table(directory: Path, fed: pa.Table) -> Verdict:
    """Compare a sink's files with rows that have a user, an amount and a number."""
    return _compared(directory, fed, _DIFFERENCE)


def _compared(directory: Path, fed: pa.Table, query: str) -> Verdict:
    files = [str(path) for path in files_of(directory)]
    if not files:
        return Verdict(fed.num_rows, 0, 0, fed.num_rows, 0, 0)
    with duckdb.connect() as database:
        database.register("fed", fed)
        found = database.execute(query, {"files": files}).fetchone()
    assert found is not None  # noqa: S101 - a SELECT of counts has one row
    missing, surplus, delivered, epochs, skipped = found
    return Verdict(fed.num_rows, delivered, epochs, missing, surplus, skipped)
