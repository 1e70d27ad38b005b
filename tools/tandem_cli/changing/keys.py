"""The keys that a user names: their values as text, and the hash by which rows are routed."""

import csv
import json
from collections.abc import Sequence

from tandem_core.model.ddl.types import Column
from tandem_core.model.pipeline import Pipeline

_SEPARATOR = ","


class BadKey(ValueError):
    """A text that is no key of the pipeline; the message says why and what is expected."""


def key_columns(pipeline: Pipeline) -> tuple[Column, ...]:
    """Return the key columns of the first stream; those of others have the same types."""
    stream = pipeline.spec.streams[0]
    columns = {column.name: column for column in stream.schema.columns}
    return tuple(columns[name] for name in stream.key)


def hash_of_key(text: str, columns: Sequence[Column]) -> int:
    """Return the hash of a key, by which the routing function finds its pair.

    The values of several columns are separated by commas, as in CSV, or are a JSON list. Only a
    JSON list can have null.

    Raises:
        BadKey: the number of values or a type is wrong.
    """
    # Imported here: they load Arrow, which other commands do not need.
    import pyarrow as pa  # noqa: PLC0415

    from tandem_core.routing.key_hashing import hash_columns  # noqa: PLC0415
    from tandem_runtime.arrow.schema import arrow_type  # noqa: PLC0415
    from tandem_runtime.sources.formats.text_values import Unfit, parser_of  # noqa: PLC0415

    arrays = []
    for value, column in zip(_values(text, columns), columns, strict=True):
        try:
            parsed = None if value is None else parser_of(column.type)(value)
            arrays.append(pa.array([parsed], arrow_type(column.type)))
        except (Unfit, pa.ArrowException) as problem:
            raise BadKey(f"key {text!r}: {column.name}: {problem}") from None
    return int(hash_columns(arrays, [column.name for column in columns])[0])


def _values(text: str, columns: Sequence[Column]) -> list[str | None]:
    names = ", ".join(f"{column.name} {column.type}" for column in columns)
    values: list[str | None]
    if text.startswith("["):
        values = _json_values(text, names)
    elif len(columns) == 1:
        values = [text]
    else:
        values = list(next(csv.reader([text], delimiter=_SEPARATOR), []))
    if len(values) != len(columns):
        raise BadKey(f"key {text!r} has {len(values)} values; expected {len(columns)}: {names}")
    return values


def _json_values(text: str, names: str) -> list[str | None]:
    try:
        values = json.loads(text, parse_int=str, parse_float=str)
    except ValueError as problem:
        raise BadKey(f"key {text!r} is no JSON list of {names}: {problem}") from None
    if not all(isinstance(value, str | bool | None) for value in values):
        raise BadKey(f"key {text!r}: expected a list of plain values: {names}")
    return [str(value).lower() if isinstance(value, bool) else value for value in values]
