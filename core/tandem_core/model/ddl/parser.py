"""Parses schemas in Spark's DDL: `user STRING, amount DECIMAL(10,2) NOT NULL, tags ARRAY<STRING>`.

It accepts the types of `tandem_core.model.ddl.types` under all of Spark's names for them, names in
backticks, NOT NULL and COMMENT. Spark's other types are refused by name.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from tandem_core.model.ddl.types import (
    MOST_DECIMAL_DIGITS,
    Array,
    Column,
    DataType,
    Decimal,
    Map,
    Schema,
    Simple,
    Struct,
)
from tandem_core.model.fields.problems import suggestion

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<quoted>`(?:[^`]|``)+`)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>\d+(?!\w))
    | (?P<word>[^\W\d]\w*)
    | (?P<mark>[<>(),:])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ALIASES = {
    "BYTE": Simple.TINYINT,
    "SHORT": Simple.SMALLINT,
    "INTEGER": Simple.INT,
    "LONG": Simple.BIGINT,
    "REAL": Simple.FLOAT,
    "TIMESTAMP_LTZ": Simple.TIMESTAMP,
}
_SIMPLE = {**{simple.value: simple for simple in Simple}, **_ALIASES}
_DECIMAL_NAMES = ("DECIMAL", "DEC", "NUMERIC")
_COMPOUND = (*_DECIMAL_NAMES, "ARRAY", "MAP", "STRUCT")
_REFUSED = {
    "CHAR": "write STRING: Spark keeps no other text in a stream",
    "VARCHAR": "write STRING: Spark keeps no other text in a stream",
    "VARIANT": "VARIANT cannot travel between pods; write STRING and parse it in the query",
    "INTERVAL": "an interval cannot travel between pods; write BIGINT",
    "VOID": "a column needs a type that has values",
}
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class DdlFault:
    """One problem of a schema: the piece of text, and what is expected instead."""

    piece: str
    expected: str


class DdlError(Exception):
    """The schema cannot be parsed; has all its faults."""

    def __init__(self, faults: list[DdlFault]) -> None:
        super().__init__("; ".join(f"{fault.piece}: {fault.expected}" for fault in faults))
        self.faults = faults


def parse_schema(text: str) -> Schema:
    """Parse the columns of a stream.

    Raises:
        DdlError: with every unknown type, bad parameter and repeated name, and at most one
            syntax error, because parsing stops there.
    """
    parser = _Parser(text)
    try:
        columns = parser.columns(end="")
        parser.take("", "a comma or the end of the schema")
    except _SyntaxFault:
        columns = ()
    if parser.faults:
        raise DdlError(parser.faults)
    return Schema(columns)


class _SyntaxFault(Exception):
    """Ends the parsing; the fault is recorded."""


@dataclass(frozen=True, slots=True)
class _Token:
    group: str
    text: str


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            yield _Token("stray", text[position:].split(maxsplit=1)[0])
            return
        group = match.lastgroup or "end"
        yield _Token(group, match[group])
        if group == "end":
            return
        position = match.end()


class _Parser:
    """Recursive descent with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self.faults: list[DdlFault] = []
        self._tokens = _tokens(text)
        self._next = next(self._tokens)
        self._depth = 0

    def columns(self, end: str) -> tuple[Column, ...]:
        """Read columns separated by commas, and report repeated names."""
        columns = [self._column()]
        while self._accept(","):
            columns.append(self._column())
        if end:
            self.take(end, f"a comma or {end}")
        seen: set[str] = set()
        for column in columns:
            if column.name.lower() in seen:
                self._note(column.name, "a name that no other column has, whatever its case")
            seen.add(column.name.lower())
        return tuple(columns)

    def take(self, mark: str, expected: str) -> None:
        """Consume a required mark."""
        if not self._accept(mark):
            self._stop(expected)

    def _column(self) -> Column:
        name = self._name()
        self._accept(":")
        kind = self._type()
        nullable = True
        if self._accept_word("NOT"):
            if not self._accept_word("NULL"):
                self._stop("NULL after NOT")
            nullable = False
        comment = self._string() if self._accept_word("COMMENT") else None
        return Column(name, kind, nullable, comment)

    def _name(self) -> str:
        token = self._next
        if token.group == "word":
            self._advance()
            return token.text
        if token.group == "quoted":
            self._advance()
            return token.text[1:-1].replace("``", "`")
        self._stop("the name of a column, in backticks unless it is a plain word")

    def _type(self) -> DataType:
        token = self._next
        if token.group != "word":
            self._stop(f"a type such as {Simple.STRING}, {Simple.BIGINT} or {Simple.TIMESTAMP}")
        self._advance()
        word = token.text.upper()
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word in _DECIMAL_NAMES:
            return self._decimal()
        nested: dict[str, Callable[[], DataType]] = {
            "ARRAY": self._array,
            "MAP": self._map,
            "STRUCT": self._struct,
        }
        if word in nested:
            return self._nested(word, nested[word])
        hint = _REFUSED.get(word) or f"a type of Spark's DDL{suggestion(word, _type_names())}"
        self._note(token.text, hint)
        self._numbers()
        return Simple.STRING

    def _nested(self, word: str, read: Callable[[], DataType]) -> DataType:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._stop(f"types nested at most {_DEEPEST} deep")
        self.take("<", f"< after {word}")
        found = read()
        self._depth -= 1
        return found

    def _array(self) -> DataType:
        element = self._type()
        self.take(">", "> after the type of the elements")
        return Array(element)

    def _map(self) -> DataType:
        key = self._type()
        self.take(",", "a comma after the type of the keys")
        value = self._type()
        self.take(">", "> after the type of the values")
        return Map(key, value)

    def _struct(self) -> DataType:
        return Struct(self.columns(end=">"))

    def _decimal(self) -> DataType:
        numbers = self._numbers()
        if len(numbers) > len(("precision", "scale")):
            self._note(str(numbers), "DECIMAL(precision, scale)")
            return Decimal()
        found = Decimal(*numbers)
        if not 1 <= found.precision <= MOST_DECIMAL_DIGITS:
            self._note(str(found), f"a precision from 1 to {MOST_DECIMAL_DIGITS}")
        elif found.scale > found.precision:
            self._note(str(found), "a scale no larger than the precision")
        return found

    def _numbers(self) -> list[int]:
        if not self._accept("("):
            return []
        numbers = [self._number()]
        while self._accept(","):
            numbers.append(self._number())
        self.take(")", "a comma or )")
        return numbers

    def _number(self) -> int:
        text = self._next.text
        if self._next.group != "number" or len(text) > len("65535"):
            self._stop("a small whole number")
        self._advance()
        return int(text)

    def _string(self) -> str:
        token = self._next
        if token.group != "text":
            self._stop("a comment in quotes")
        self._advance()
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)

    def _accept(self, mark: str) -> bool:
        if self._next.group not in {"mark", "end"} or self._next.text != mark:
            return False
        if mark:
            self._advance()
        return True

    def _accept_word(self, word: str) -> bool:
        if self._next.group != "word" or self._next.text.upper() != word:
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        self._next = next(self._tokens)

    def _note(self, piece: str, expected: str) -> None:
        self.faults.append(DdlFault(piece, expected))

    def _stop(self, expected: str) -> NoReturn:
        self._note(self._next.text or "(end of the schema)", expected)
        raise _SyntaxFault


def _type_names() -> tuple[str, ...]:
    return (*_SIMPLE, *_COMPOUND)
