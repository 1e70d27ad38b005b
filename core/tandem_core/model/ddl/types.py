"""Schemas of streams: data types and columns, and their form in DDL."""

import re
from dataclasses import dataclass
from enum import StrEnum

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")

MOST_DECIMAL_DIGITS = 38


class Simple(StrEnum):
    """A type without parameters, by its name in Spark's DDL."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BINARY = "BINARY"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_NTZ = "TIMESTAMP_NTZ"


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int = 10
    scale: int = 0

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of elements of one type."""

    element: "DataType"

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key."""

    key: "DataType"
    value: "DataType"

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields in one column."""

    fields: tuple["Column", ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(field.text(':') for field in self.fields)}>"


DataType = Simple | Decimal | Array | Map | Struct


@dataclass(frozen=True, slots=True)
class Column:
    """A named part of a schema or of a struct."""

    name: str
    type: DataType
    nullable: bool = True
    comment: str | None = None

    def text(self, separator: str = "") -> str:
        """Write the column in DDL; inside a struct a colon follows the name."""
        parts = [f"{quoted(self.name)}{separator}", str(self.type)]
        if not self.nullable:
            parts.append("NOT NULL")
        if self.comment is not None:
            escaped = self.comment.replace("\\", "\\\\").replace("'", "\\'")
            parts.append(f"COMMENT '{escaped}'")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream, in order. Names are unique whatever their case, as in Spark."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column | None:
        """Find a column by its exact name."""
        return next((column for column in self.columns if column.name == name), None)

    def __str__(self) -> str:
        return ", ".join(column.text() for column in self.columns)


def quoted(name: str) -> str:
    """Write a name so that Spark reads it back: in backticks unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
