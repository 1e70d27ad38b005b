"""Reads CSV line by line: slow, exact, and with a reason for each rejected row.

Values are separated by commas and may be in double quotes, within which a quote is written twice.
An empty value is null, one in quotes is an empty text. Blanks and tabs around values that are not
text are ignored. A row is one line: quoted values contain no newline. Empty lines are skipped.
"""

import re
from collections.abc import Sequence

from tandem_core.model.ddl.types import Schema, Simple
from tandem_runtime.sources.formats.text_values import Unfit, parser_of

_VALUE = re.compile(r'(?:"((?:[^"]++|"")*+)"([^,]*)|([^,]*))(,|$)')
_OPEN_QUOTE = '"'

Value = str | None
"""None for a value that is empty and not in quotes."""


class CsvRows:
    """Reads lines of CSV into the values of a schema's columns, found by the header."""

    def __init__(self, schema: Schema, header: Sequence[str]) -> None:
        self._width = len(header)
        self._columns = [
            (column, header.index(column.name) if column.name in header else None)
            for column in schema.columns
        ]
        self._parsers = [parser_of(column.type) for column in schema.columns]

    def __call__(self, line: bytes) -> tuple[object, ...] | None:
        """Return the values of one line in the order of the columns; None for an empty line.

        Raises:
            Unfit: the number of values differs from the header's, or a value does not fit.
        """
        text = text_of(line)
        if not text:
            return None
        values = split(text)
        if len(values) != self._width:
            raise Unfit(f"it has {len(values)} values, the header {self._width}")
        return tuple(
            self._read(index, None if place is None else values[place])
            for index, (_, place) in enumerate(self._columns)
        )

    def _read(self, index: int, value: Value) -> object:
        column, _ = self._columns[index]
        if value is None:
            if not column.nullable:
                raise Unfit(f"{column.name}: null, but it is NOT NULL")
            return None
        try:
            return self._parsers[index](
                value if column.type is Simple.STRING else value.strip(" \t")
            )
        except Unfit as problem:
            raise problem.within(column.name) from None


def text_of(line: bytes) -> str:
    """Return the text of a line without a carriage return at its end.

    Raises:
        Unfit: it is not UTF-8, or there is another carriage return.
    """
    try:
        text = line.removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise Unfit("it is not UTF-8") from None
    if "\r" in text:
        raise Unfit("there is a carriage return within the line")
    return text


def split(text: str) -> list[Value]:
    """Split a line into its values.

    Raises:
        Unfit: a quote is opened and not closed.
    """
    values: list[Value] = []
    start = 0
    while True:
        found = _VALUE.match(text, start)
        # Without a closing quote the pattern falls back to a plain value that begins with one.
        if found is None or (found[3] or "").startswith(_OPEN_QUOTE):
            raise Unfit("a quote is not closed")
        if found[1] is None:
            values.append(found[3] or None)
        else:
            values.append(found[1].replace('""', '"') + found[2])
        if not found[4]:
            return values
        start = found.end()
