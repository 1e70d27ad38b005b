"""Types of keys whose state is moved."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

COUNT = 12
"""Keys of a story; the n-th one for each n below this is another one."""

_WIDE = 10**28


@dataclass(frozen=True)
class Key:
    """A key: its columns, and the values of the n-th key."""

    ddl: tuple[str, ...]
    value: Callable[[int], tuple[object, ...]]

    @property
    def names(self) -> list[str]:
        return [column.split()[0] for column in self.ddl]

    def columns(self, prefix: str = "") -> str:
        return ", ".join(prefix + name for name in self.names)


TEXT = Key(("user STRING",), lambda number: (f"user-{number}",))

KEYS = {
    "text": TEXT,
    "text-or-null": Key(("k STRING",), lambda number: (f"é{number}" if number else None,)),
    "bigint": Key(("k BIGINT",), lambda number: ((number - 5) * 2**40,)),
    "int": Key(("k INT",), lambda number: (number - 5,)),
    "date": Key(("k DATE",), lambda number: (date(1969, 12, 25) + timedelta(days=number),)),
    "timestamp": Key(
        ("k TIMESTAMP",),
        lambda number: (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=number),),
    ),
    "decimal": Key(("k DECIMAL(10,2)",), lambda number: (Decimal(number - 5).scaleb(-2),)),
    "wide-decimal": Key(("k DECIMAL(30,1)",), lambda number: (Decimal((number - 5) * _WIDE),)),
    "binary": Key(("k BINARY",), lambda number: (bytes(range(number)),)),
    "two": Key(("k STRING", "j INT"), lambda number: (f"k{number % 4}", number // 4 or None)),
    "three": Key(
        ("k BOOLEAN", "j SMALLINT", "i DATE"),
        lambda number: (number % 2 == 0, number // 4, date(2024, 1, 1 + number % 4)),
    ),
}
