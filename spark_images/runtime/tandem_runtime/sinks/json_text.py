"""Writes tables as JSON lines, column by column.

A row is an object that has every column, null or not. Numbers and decimals are numbers, those that
are not finite are the strings "NaN", "Infinity" and "-Infinity". Dates are "2024-01-31", times
always have six digits after the second: "2024-01-31T23:59:59.000000Z", without the Z if the type
has no zone. Bytes are Base64. Lists are arrays, structs and maps objects; keys of maps are strings.
Other types are the result of Python's `str`.

Spark writes the same, except that it omits nulls, cuts times to milliseconds, appends `.0` to whole
floating-point numbers, and has no JSON for intervals.
"""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_ROWS_AT_ONCE = 32_768
_ESCAPED = r'["\\\x00-\x1f]'
_CONTROL = r"[\x00-\x1f]"

Texts = Any
"""An Arrow array of strings."""


def json_lines(table: Any, more: dict[str, object]) -> Iterator[Any]:
    """Yield the rows of a table as buffers of text; appends the fields `more` to every row."""
    end = "".join(f",{_name(name)}:{json.dumps(value)}" for name, value in more.items()) + "}\n"
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        if batch.num_rows:
            yield _joined_text(_objects(batch.schema.names, batch.columns, end))


def literals(array: Any) -> Texts:
    """Return the JSON of each value; the result has no nulls."""
    written = next((write for fits, write in _WRITERS if fits(array.type)), _other)(array)
    return pc.fill_null(written, "null") if written.null_count else written


def _name(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _join(*parts: Any) -> Texts:
    return pc.binary_join_element_wise(*parts, "")


def _objects(names: Sequence[str], columns: Sequence[Any], end: str) -> Texts:
    """Return JSON objects with a field for each column; there is at least one column."""
    parts: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        parts += [f"{',' if parts else '{'}{_name(name)}:", literals(column)]
    return _join(*parts, end)


def _joined_text(texts: Texts) -> Any:
    """Return the texts of an array concatenated, without a copy: they are contiguous."""
    _, ends, text = texts.buffers()
    starts = memoryview(ends).cast("i")
    return memoryview(text)[starts[texts.offset] : starts[texts.offset + len(texts)]]


def _plain(array: Any) -> Texts:
    return array.cast(pa.string())


def _floating(array: Any) -> Texts:
    text = array.cast(pa.string())
    if pc.all(pc.is_finite(array)).as_py() is not False:
        return text
    infinite = pc.if_else(pc.greater(array, 0), '"Infinity"', '"-Infinity"')
    odd = pc.if_else(pc.is_nan(array), '"NaN"', infinite)
    return pc.if_else(pc.is_finite(array), text, odd)


def _date(array: Any) -> Texts:
    return _join('"', array.cast(pa.string()), '"')


def _time(array: Any) -> Texts:
    # Without a zone Arrow writes the same digits ten times as fast.
    plain = array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.timestamp("us"))
    text = pc.replace_substring(plain.cast(pa.string()), " ", "T", max_replacements=1)
    return _join('"', text, '"' if array.type.tz is None else 'Z"')


def _text(array: Any) -> Texts:
    text = array.cast(pa.string())
    if pc.any(pc.match_substring_regex(text, _ESCAPED)).as_py():
        text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
        if pc.any(pc.match_substring_regex(text, _CONTROL)).as_py():
            for code in range(0x20):
                text = pc.replace_substring(text, chr(code), json.dumps(chr(code))[1:-1])
    return _join('"', text, '"')


def _bytes(array: Any) -> Texts:
    values = array.to_pylist()
    return pa.array(
        [None if v is None else f'"{base64.b64encode(v).decode()}"' for v in values], pa.string()
    )


def _struct(array: Any) -> Texts:
    text = _objects([field.name for field in array.type], array.flatten(), "}")
    return pc.if_else(pc.is_valid(array), text, pa.scalar(None, pa.string()))


def _list(array: Any) -> Texts:
    return _join("[", _elements(array, literals(array.flatten())), "]")


def _map(array: Any) -> Texts:
    kind = array.type
    entries = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    keys, values = entries.flatten().flatten()
    names = literals(keys)
    if not pc.all(pc.starts_with(names, '"')).as_py():
        names = _join('"', names, '"')
    return _join("{", _elements(entries, _join(names, ":", literals(values))), "}")


def _elements(lists: Any, texts: Texts) -> Texts:
    """Return the texts of each list's elements, separated by commas; null for a null list."""
    lengths = pc.list_value_length(lists)
    ends = pc.cumulative_sum(pc.fill_null(lengths, 0)).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    return pc.if_else(pc.is_valid(lists), joined, pa.scalar(None, pa.string()))


def _dictionary(array: Any) -> Texts:
    return literals(array.cast(array.type.value_type))


def _nulls(array: Any) -> Texts:
    return pa.nulls(len(array), pa.string())


def _other(array: Any) -> Texts:
    values = array.to_pylist()
    return pa.array([None if v is None else json.dumps(str(v)) for v in values], pa.string())


def _any_of(*tests: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda arrow_type: any(test(arrow_type) for test in tests)


_types = pa.types
_WRITERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Texts]], ...] = (
    (_any_of(_types.is_integer, _types.is_boolean, _types.is_decimal), _plain),
    (_any_of(_types.is_string, _types.is_large_string, _types.is_string_view), _text),
    (_types.is_timestamp, _time),
    (_types.is_floating, _floating),
    (_types.is_date, _date),
    (_any_of(_types.is_binary, _types.is_large_binary, _types.is_fixed_size_binary), _bytes),
    (_types.is_struct, _struct),
    (_types.is_map, _map),
    (_any_of(_types.is_list, _types.is_large_list), _list),
    (_types.is_dictionary, _dictionary),
    (_types.is_null, _nulls),
)
