"""The rows that all sides read. A row is determined by its number; nothing is random."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SCHEMA = "user STRING, amount BIGINT, number BIGINT"
KEY = "user"
STREAM = "payments"
SQL = (
    "SELECT user, count(*) AS n, sum(amount) AS total, max(number) AS last "
    "FROM payments GROUP BY user"
)
"""Rows are numbered in their order, so the highest `last` of a result says how far it reaches."""

_AMOUNTS = 1_000
_MIXED = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Rows:
    """Payments of a number of users: first each user once, then mixed."""

    keys: int
    hot: float = 0.0
    """Share of the mixed rows that the first user has besides its own."""

    def users(self, first: int, last: int) -> np.ndarray:
        """The user of each row from `first` up to, but excluding, `last`."""
        numbers = np.arange(first, last, dtype=np.uint64)
        mixed = _mix(numbers) % np.uint64(self.keys)
        if self.hot:
            is_hot = _mix(numbers ^ _MIXED) < np.uint64(int(self.hot * 2**64))
            mixed = np.where(is_hot, np.uint64(0), mixed)
        return np.where(numbers < self.keys, numbers, mixed).astype(np.int64)

    def amounts(self, first: int, last: int) -> np.ndarray:
        """The amount of each row."""
        numbers = np.arange(first, last, dtype=np.uint64)
        return (_mix(numbers + _MIXED) % np.uint64(_AMOUNTS)).astype(np.int64)

    def table(self, first: int, last: int) -> pa.Table:
        """The rows as a table, with the schema above."""
        users = pa.array([_name(user) for user in self.users(first, last)])
        columns = [users, self.amounts(first, last), np.arange(first, last)]
        return pa.table(columns, names=["user", "amount", "number"])

    def json_lines(self, first: int, last: int) -> bytes:
        """The rows as lines of JSON."""
        return "".join(self._lines(first, last)).encode()

    def _lines(self, first: int, last: int) -> Iterator[str]:
        users, amounts = self.users(first, last).tolist(), self.amounts(first, last).tolist()
        for number, user, amount in zip(range(first, last), users, amounts, strict=True):
            yield f'{{"user":"{_name(user)}","amount":{amount},"number":{number}}}\n'


HOT_USER = "key-0000000"
"""The first user."""


def _name(user: int) -> str:
    return f"key-{user:07d}"


def _mix(words: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: spreads consecutive numbers over all words."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = words ^ (words >> np.uint64(31))
    return mixed
