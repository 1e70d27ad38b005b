"""What each example must deliver, counted without Spark over the same rows.

A recount raises AssertionError if what was delivered is not that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb

Tables = dict[str, Any]


class Books:
    """Inputs by the names of their streams, and `delivered`, for questions in SQL."""

    def __init__(self, inputs: Tables, delivered: Any) -> None:
        self.inputs = inputs
        self._database = duckdb.connect()
        for name, table in {**inputs, "delivered": delivered}.items():
            self._database.register(name, table)

    def rows(self, sql: str) -> list[Any]:
        """The answer."""
        return list(self._database.execute(sql).fetchall())

    def name(self, name: str, sql: str) -> None:
        """Give an answer a name for further questions."""
        self._database.execute(f"CREATE TEMP TABLE {name} AS {sql}")

    def same(self, wanted: str, found: str) -> None:
        """Both questions have the same rows as answers, each as often."""
        for left, right in ((wanted, found), (found, wanted)):
            difference = self.rows(f"({left}) EXCEPT ALL ({right})")
            assert not difference, f"{len(difference)} rows, such as {difference[0]}"
        assert self.rows(wanted)

    def none(self, sql: str) -> None:
        """The question has no answer."""
        found = self.rows(sql)
        assert not found, f"{len(found)} rows, such as {found[0]}"


# --- update mode ----------------------------------------------------------------------------------


def counts_per_key(books: Books) -> None:
    books.same(
        "SELECT user, count(*) AS n, sum(amount) AS total FROM payments GROUP BY user",
        "SELECT user, max_by(n, _epoch), max_by(total, _epoch) FROM delivered GROUP BY user",
    )
    only_grows(books, "user", "n")
    never_falls(books, "user", "total")


def threshold(books: Books) -> None:
    books.same(
        """SELECT user, sum(amount) AS total
        FROM payments GROUP BY user HAVING sum(amount) > 10000""",
        "SELECT user, max_by(total, _epoch) FROM delivered GROUP BY user",
    )
    never_falls(books, "user", "total")


def records(books: Books) -> None:
    """How many records there are depends on where epochs are cut: each is a maximum so far."""
    books.same(
        "SELECT user, max(amount) FROM payments GROUP BY user",
        "SELECT user, max_by(record, _epoch) FROM delivered GROUP BY user",
    )
    only_grows(books, "user", "record")
    books.none(
        """SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY user ORDER BY _epoch) AS place
        FROM delivered) WHERE records != place"""
    )
    books.name("numbered", "SELECT *, row_number() OVER () AS place FROM payments")
    books.none(
        """SELECT user, record FROM delivered EXCEPT
        SELECT user, max(amount) OVER (PARTITION BY user ORDER BY place) FROM numbered"""
    )


def only_grows(books: Books, key: str, value: str) -> None:
    """A key's values rise from epoch to epoch, with one in an epoch."""
    _compare_neighbours(books, key, value, "<=")


def never_falls(books: Books, key: str, value: str) -> None:
    """A key's values do not fall from epoch to epoch, with one in an epoch."""
    _compare_neighbours(books, key, value, "<")


def _compare_neighbours(books: Books, key: str, value: str, wrong: str) -> None:
    in_order = f"OVER (PARTITION BY {key} ORDER BY _epoch)"
    books.none(
        f"""SELECT * FROM (
            SELECT {key}, {value}, _epoch, lag({value}) {in_order} AS before,
            lag(_epoch) {in_order} AS epoch_before FROM delivered)
        WHERE {value} {wrong} before OR _epoch = epoch_before"""  # noqa: S608 - names of our own
    )


# --- append mode ----------------------------------------------------------------------------------


def in_order(books: Books, key: str, at: str, only: str = "true") -> None:
    """A key's rows come out in the order of their times, none in an epoch before a former one's."""
    in_time = f'OVER (PARTITION BY {key} ORDER BY "{at}"::TIMESTAMP)'
    books.none(
        f"""SELECT * FROM (
            SELECT {key}, "{at}", _epoch, lag(_epoch) {in_time} AS epoch_before
            FROM delivered WHERE {only})
        WHERE _epoch < epoch_before"""  # noqa: S608 - names of our own
    )


def left_outer_join(books: Books) -> None:
    books.same(
        """SELECT order_id, price, ordered_at, amount, paid_at
        FROM orders LEFT OUTER JOIN payments ON order_id = paid_order
        AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 10 SECONDS""",
        "SELECT order_id, price, ordered_at, amount, paid_at FROM delivered",
    )
    # Orders come in order. With a payment they come out with the later one of both, without one
    # when the watermark has passed them.
    in_order(books, "order_id, paid_at", "ordered_at", "paid_at IS NOT NULL")
    in_order(books, "order_id", "ordered_at", "paid_at IS NULL")
    assert books.rows("SELECT 1 FROM delivered WHERE paid_at IS NULL LIMIT 1")
    assert books.rows("SELECT 1 FROM delivered WHERE paid_at IS NOT NULL LIMIT 1")


def windowed_sums(books: Books) -> None:
    """Which rows are late depends on where epochs are cut, but not from which row on.

    A window is closed at one place in the stream for all users. So what it has counted are its
    first rows, as many as it says.
    """
    books.name(
        "numbered",
        """SELECT *, row_number() OVER (PARTITION BY since ORDER BY place) AS place_in_window FROM (
            SELECT *, time_bucket(INTERVAL 10 SECONDS, payments.at) AS since,
            row_number() OVER () AS place FROM payments)""",
    )
    books.name(
        "windows",
        "SELECT since::TIMESTAMP AS since, sum(n) AS counted FROM delivered GROUP BY ALL",
    )
    books.same(
        """SELECT user, since, count(*) AS n, sum(amount) AS total
        FROM numbered JOIN windows USING (since)
        WHERE place_in_window <= counted GROUP BY user, since""",
        "SELECT user, since::TIMESTAMP, n, total FROM delivered",
    )
    in_order(books, "user", "since")
    books.name(
        "surely_in_time",
        """SELECT since, count(*) AS n FROM (
            SELECT since, max(numbered.at) OVER (ORDER BY place) - INTERVAL 5 SECONDS AS watermark
            FROM numbered)
        WHERE watermark < since + INTERVAL 10 SECONDS GROUP BY since""",
    )
    books.none(
        """SELECT * FROM surely_in_time LEFT JOIN windows USING (since)
        WHERE counted IS NULL OR counted < n"""
    )
    ((late,),) = books.rows(
        "SELECT (SELECT count(*) FROM payments) - (SELECT sum(n) FROM delivered)"
    )
    assert late > 0


def sessions(books: Books) -> None:
    gap = timedelta(seconds=5)
    clicks: dict[str, list[datetime]] = defaultdict(list)
    for click in books.inputs["clicks"].to_pylist():
        clicks[click["user"]].append(click["at"])
    wanted = []
    for user, times in clicks.items():
        times.sort()
        ends = [i for i, (a, b) in enumerate(pairwise(times), 1) if b - a > gap]
        for first, last in pairwise([0, *ends, len(times)]):
            wanted.append((user, times[first], times[last - 1] + gap, last - first))
    found = books.rows(
        "SELECT user, began::TIMESTAMP, ended::TIMESTAMP, clicks FROM delivered ORDER BY 1, 2"
    )
    assert found == sorted(wanted)
    in_order(books, "user", "began")


def deduplication(books: Books) -> None:
    """A click comes out unless one of its id did less than two delays before.

    An id is remembered until the watermark, which is a delay behind, has passed a further delay;
    the watermark is that of an epoch earlier, and forgetting is one more epoch.
    """
    forgotten = timedelta(seconds=2 * 5)
    out = books.rows(
        "SELECT d.at::TIMESTAMP, click_id, page, _epoch FROM delivered AS d ORDER BY 1"
    )
    epochs = [(at, epoch) for at, _, _, epoch in out]
    last_of = {epoch: at for at, epoch in epochs}
    pages = {(click_id, at): page for at, click_id, page, _ in out}
    assert len(pages) == len(out)
    last: dict[str, datetime] = {}
    for click in books.inputs["clicks"].to_pylist():
        click_id, at = click["click_id"], click["at"]
        before = last.get(click_id)
        if (click_id, at) in pages:
            assert before is None or at - before > forgotten, (click_id, at, before)
            assert pages.pop((click_id, at)) == click["page"]
            last[click_id] = at
        else:
            assert before is not None, (click_id, at)
            assert _seen_before(at, epochs, last_of) - before < forgotten, (click_id, at, before)
    assert not pages
    in_order(books, "click_id", "at")


def _seen_before(
    at: datetime, epochs: list[tuple[datetime, int]], last_of: dict[int, datetime]
) -> datetime:
    """A time that was surely reached two epochs before that of a click."""
    _, epoch = epochs[bisect_right(epochs, (at, 0)) - 1]
    return max((last for each, last in last_of.items() if each <= epoch - 2), default=datetime.min)


RECOUNTS: dict[str, Callable[[Books], None]] = {
    "counts-per-key": counts_per_key,
    "deduplication": deduplication,
    "left-outer-join": left_outer_join,
    "on-kubernetes": counts_per_key,
    "records": records,
    "sessions": sessions,
    "threshold": threshold,
    "windowed-sums": windowed_sums,
}
