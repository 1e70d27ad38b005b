"""Kinds of values: each reads plain parsed data, writes it back, and describes itself."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, NoReturn, TypeVar

from tandem_core.model.fields.problems import Fault, Path, Problem, suggestion
from tandem_core.model.fields.quantities import ByteSize, Duration, parse_bytes, parse_duration

T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=StrEnum)


class Unreadable(Exception):
    """The value could not be read; the problem is reported already."""


class Reading:
    """One pass over one document, collecting every problem it meets."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def report(self, at: Path, value: object, fault: Fault, expected: str) -> None:
        """Record a problem and continue."""
        self.problems.append(Problem(at, value, fault, expected))

    def reject(self, at: Path, value: object, fault: Fault, expected: str) -> NoReturn:
        """Record a problem and abandon this value."""
        self.report(at, value, fault, expected)
        raise Unreadable


class Kind(ABC, Generic[T_co]):
    """Reads and writes one kind of value.

    `read` raises `Unreadable`, and nothing else, after reporting why. `write` is its inverse.
    """

    @property
    @abstractmethod
    def expected(self) -> str:
        """A description of valid values; fits after `expected` in a sentence."""

    @abstractmethod
    def read(self, value: object, at: Path, reading: Reading) -> T_co:
        """Convert plain parsed data to the typed value."""

    def write(self, value: Any) -> object:
        """Convert a typed value to plain data."""
        return value


@dataclass(frozen=True, slots=True)
class Text(Kind[str]):
    """A text that matches a pattern as a whole; the default pattern requires a non-blank."""

    what: str = "a text that is not empty"
    pattern: str = r"(?s).*\S.*"
    longest: int = 10_000

    @property
    def expected(self) -> str:
        return self.what

    def read(self, value: object, at: Path, reading: Reading) -> str:
        if not isinstance(value, str):
            hint = "" if isinstance(value, Mapping | Sequence) else "; put it in quotes"
            reading.reject(at, value, Fault.WRONG_TYPE, f"{self.what}{hint}")
        if len(value) > self.longest:
            limit = f"{self.what}, of at most {self.longest} characters"
            reading.reject(at, value, Fault.OUT_OF_RANGE, limit)
        if not re.fullmatch(self.pattern, value):
            reading.reject(at, value, Fault.BAD_FORMAT, self.what)
        return value


@dataclass(frozen=True, slots=True)
class Whole(Kind[int]):
    """A whole number within bounds, both included; `why` explains the upper one."""

    least: int
    most: int = 2**63 - 1
    why: str = ""

    @property
    def expected(self) -> str:
        return f"{self._range} ({self.why})" if self.why else self._range

    @property
    def _range(self) -> str:
        if self.most == 2**63 - 1:
            return f"a whole number of {self.least:,} or more"
        if self.most == self.least + 1:
            return f"{self.least} or {self.most}"
        return f"a whole number from {self.least:,} to {self.most:,}"

    def read(self, value: object, at: Path, reading: Reading) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        if not self.least <= value <= self.most:
            reading.reject(at, value, Fault.OUT_OF_RANGE, self.expected)
        return value


@dataclass(frozen=True, slots=True)
class Number(Kind[float]):
    """A number, whole or not, within bounds, both included."""

    least: float
    most: float

    @property
    def expected(self) -> str:
        if self.most == math.inf:
            return f"a number of {self.least:g} or more"
        return f"a number from {self.least:g} to {self.most:g}"

    def read(self, value: object, at: Path, reading: Reading) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        # Compared before the conversion: a huge whole number does not fit into a float.
        if not self.least <= value <= self.most or abs(value) == math.inf:
            reading.reject(at, value, Fault.OUT_OF_RANGE, self.expected)
        return float(value)


@dataclass(frozen=True, slots=True)
class Flag(Kind[bool]):
    """True or false."""

    @property
    def expected(self) -> str:
        return "true or false"

    def read(self, value: object, at: Path, reading: Reading) -> bool:
        if not isinstance(value, bool):
            hint = ", without quotes" if str(value).lower() in {"true", "false"} else ""
            reading.reject(at, value, Fault.WRONG_TYPE, f"{self.expected}{hint}")
        return value


@dataclass(frozen=True, slots=True)
class Choice(Kind[E]):
    """One of the members of an enumeration, by its value.

    `refused` has the reasons for values that Spark has and Tandem refuses.
    """

    members: type[E]
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def expected(self) -> str:
        values = [member.value for member in self.members]
        return f"one of {', '.join(values)}" if len(values) > 1 else values[0]

    def read(self, value: object, at: Path, reading: Reading) -> E:
        for member in self.members:
            if value == member.value:
                return member
        if not isinstance(value, str):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        known = [member.value for member in self.members]
        reason = self.refused.get(value)
        hint = f"; {reason}" if reason else suggestion(value, known) if len(known) > 1 else ""
        reading.reject(at, value, Fault.NOT_A_CHOICE, f"{self.expected}{hint}")

    def write(self, value: Any) -> object:
        return str(value)


def _unit_hint(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "; a number needs a unit" if is_number else ""


@dataclass(frozen=True, slots=True)
class DurationKind(Kind[Duration]):
    """A duration within bounds, both included."""

    least: Duration
    most: Duration

    @property
    def expected(self) -> str:
        return f"a duration from {self.least} to {self.most}, such as 500ms, 10s or 1m30s"

    def read(self, value: object, at: Path, reading: Reading) -> Duration:
        if not isinstance(value, str):
            hint = _unit_hint(value)
            reading.reject(at, value, Fault.WRONG_TYPE, f"{self.expected}{hint}")
        try:
            duration = parse_duration(value)
        except ValueError as error:
            reading.reject(at, value, Fault.BAD_FORMAT, str(error))
        if not self.least <= duration <= self.most:
            reading.reject(at, value, Fault.OUT_OF_RANGE, self.expected)
        return duration

    def write(self, value: Any) -> object:
        return str(value)


@dataclass(frozen=True, slots=True)
class Size(Kind[ByteSize]):
    """An amount of bytes within bounds, both included; `why` explains the lower one."""

    least: ByteSize
    most: ByteSize
    why: str = ""

    @property
    def expected(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"an amount of bytes from {self.least} to {self.most}{why}, such as 1g or 800Mi"

    def read(self, value: object, at: Path, reading: Reading) -> ByteSize:
        if not isinstance(value, str):
            hint = _unit_hint(value)
            reading.reject(at, value, Fault.WRONG_TYPE, f"{self.expected}{hint}")
        try:
            size = parse_bytes(value)
        except ValueError as error:
            reading.reject(at, value, Fault.BAD_FORMAT, str(error))
        if not self.least <= size <= self.most:
            reading.reject(at, value, Fault.OUT_OF_RANGE, self.expected)
        return size

    def write(self, value: Any) -> object:
        return str(value)


@dataclass(frozen=True, slots=True)
class ListOf(Kind[tuple[T_co, ...]]):
    """A list whose items are all of one kind, and whose length is within bounds.

    With a `key` several writers may share the list: the API server merges items by that field.
    """

    item: Kind[T_co]
    least: int = 0
    most: int | None = None
    key: str = ""

    @property
    def count(self) -> str:
        """The allowed number of items, worded to follow `list`."""
        if self.most is not None:
            return f" of {self.least} to {self.most}"
        return f" of {self.least} or more" if self.least else ""

    @property
    def expected(self) -> str:
        return f"a list{self.count}, each {self.item.expected}"

    def read(self, value: object, at: Path, reading: Reading) -> tuple[T_co, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            reading.reject(at, value, Fault.OUT_OF_RANGE, self.expected)
        items: list[T_co] = []
        for position, entry in enumerate(value):
            try:
                items.append(self.item.read(entry, (*at, position), reading))
            except Unreadable:
                continue
        if len(items) < len(value):
            raise Unreadable
        return tuple(items)

    def write(self, value: Any) -> object:
        return [self.item.write(entry) for entry in value]
