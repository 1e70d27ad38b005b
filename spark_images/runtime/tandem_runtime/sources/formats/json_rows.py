"""Reads JSON line by line: slow, exact, and with a reason for each rejected row.

A line is one object. Fields that the schema does not name are ignored, missing ones are null, and
the last of repeated fields counts. Values must be of the JSON kind that belongs to the type: a
number in quotes is not a BIGINT, a number is not a STRING. There are two exceptions: decimals may
be numbers or strings, and floating-point numbers that are not finite may be strings. Maps are
objects whose names are the keys.
"""

import json
from collections.abc import Callable, Mapping

from tandem_core.model.ddl.types import (
    Array,
    Column,
    DataType,
    Decimal,
    Map,
    Schema,
    Simple,
    Struct,
)
from tandem_runtime.sources.formats.text_values import (
    Parser,
    Unfit,
    is_not_finite,
    parser_of,
    unfit,
)

Reader = Callable[[object], object]


class _Number(str):
    """A number as written in the text, so that no digit is lost."""

    __slots__ = ()


class TooDeep(Unfit):
    """A line is nested too deeply for this reader."""


class JsonRows:
    """Reads lines of JSON into the values of a schema's columns."""

    def __init__(self, schema: Schema) -> None:
        self._read = _record_reader(schema.columns)

    def __call__(self, line: bytes) -> tuple[object, ...]:
        """Return the values of one line in the order of the columns.

        Raises:
            Unfit: the line is not a JSON object, or a value does not fit its column.
        """
        try:
            value = json.loads(
                line.decode(), parse_float=_Number, parse_int=_Number, parse_constant=_Number
            )
        except UnicodeDecodeError:
            raise Unfit("it is not UTF-8") from None
        except json.JSONDecodeError as error:
            raise Unfit(f"it is no JSON: {error.msg} at character {error.pos + 1}") from None
        except RecursionError:
            raise TooDeep("it is nested too deeply") from None
        if not isinstance(value, dict):
            raise Unfit("it is no JSON object")
        return tuple(self._read(value).values())


def _record_reader(
    columns: tuple[Column, ...],
) -> Callable[[Mapping[str, object]], dict[str, object]]:
    readers = [(column.name, column.nullable, _reader_of(column.type)) for column in columns]

    def read(record: Mapping[str, object]) -> dict[str, object]:
        values: dict[str, object] = {}
        for name, nullable, reader in readers:
            value = record.get(name)
            if value is None:
                if not nullable:
                    raise Unfit(f"{name}: null, but it is NOT NULL")
                values[name] = None
                continue
            try:
                values[name] = reader(value)
            except Unfit as problem:
                raise problem.within(name) from None
        return values

    return read


def _reader_of(kind: DataType) -> Reader:
    """Return the function that reads a value other than null."""
    match kind:
        case Simple.BOOLEAN:
            return _boolean
        case Simple() | Decimal():
            return _scalar_reader(kind)
        case Array(element):
            return _list_reader(kind, _reader_of(element))
        case Map(key, value):
            return _map_reader(kind, parser_of(key), _reader_of(value))
        case Struct(fields):
            return _struct_reader(kind, fields)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise unfit(_written(value), Simple.BOOLEAN)
    return value


def _scalar_reader(kind: DataType) -> Reader:
    """Return the reader of a type that is written as a number or a string."""
    parse = parser_of(kind)
    is_right = _JSON_KINDS.get(kind, _is_string)

    def read(value: object) -> object:
        if not isinstance(value, str) or not (isinstance(kind, Decimal) or is_right(value)):
            raise unfit(_written(value), kind)
        return parse(value)

    return read


def _is_string(value: str) -> bool:
    return not isinstance(value, _Number)


def _is_number(value: str) -> bool:
    return isinstance(value, _Number)


def _is_floating(value: str) -> bool:
    return isinstance(value, _Number) or is_not_finite(value)


_JSON_KINDS: Mapping[DataType, Callable[[str], bool]] = {
    Simple.TINYINT: _is_number,
    Simple.SMALLINT: _is_number,
    Simple.INT: _is_number,
    Simple.BIGINT: _is_number,
    Simple.FLOAT: _is_floating,
    Simple.DOUBLE: _is_floating,
}


def _list_reader(kind: DataType, element: Reader) -> Reader:
    def read(value: object) -> object:
        if not isinstance(value, list):
            raise unfit(_written(value), kind)
        return [None if item is None else element(item) for item in value]

    return read


def _map_reader(kind: DataType, key: Parser, value_reader: Reader) -> Reader:
    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise unfit(_written(value), kind)
        return [
            (key(name), None if item is None else value_reader(item))
            for name, item in value.items()
        ]

    return read


def _struct_reader(kind: DataType, fields: tuple[Column, ...]) -> Reader:
    record = _record_reader(fields)

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise unfit(_written(value), kind)
        return record(value)

    return read


def _written(value: object) -> str:
    """Return a value as JSON, for messages."""
    if isinstance(value, _Number):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a value that is nested deeply"
