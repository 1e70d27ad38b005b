"""Casts columns of a Parquet file to the columns of a stream.

Columns are found by name; missing ones are null, extra ones are ignored. A column may differ from
the schema's type within the same kind: whole numbers, decimals and floating-point numbers of
another width if the value fits, times in another unit (digits beyond the microsecond are cut off)
or without a zone (then they are UTC), text and bytes of any layout.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tandem_runtime.arrow.schema import ArrowSchema, ArrowType
from tandem_runtime.sources.base import Rows
from tandem_runtime.sources.formats.text_values import Unfit
from tandem_runtime.sources.formats.value_checks import in_range

_KINDS = (
    (pa.types.is_boolean, "a truth value"),
    (pa.types.is_integer, "a whole number"),
    (pa.types.is_floating, "a floating number"),
    (pa.types.is_decimal, "a decimal"),
    (pa.types.is_date, "a date"),
    (pa.types.is_timestamp, "a time"),
    (pa.types.is_map, "a map"),
    (pa.types.is_struct, "a struct"),
    (lambda t: pa.types.is_list(t) or pa.types.is_large_list(t), "a list"),
    (
        lambda t: pa.types.is_binary(t) or pa.types.is_string(t) or _is_large_or_fixed(t),
        "text or bytes",
    ),
)


def mismatch(found: ArrowSchema, wanted: ArrowSchema) -> str | None:
    """Return why a file's columns cannot be read as the wanted ones; None if they can."""
    common = [field for field in wanted if field.name in found.names]
    if not common:
        return "the file has no column of the schema"
    for field in common:
        if found.names.count(field.name) > 1:
            return f"column {field.name} stands twice in the file"
        reason = _mismatch(found.field(field.name).type, field.type)
        if reason:
            return f"column {field.name} is {reason}"
    return None


def as_wanted(rows: Rows, wanted: ArrowSchema) -> Rows:
    """Cast rows to the wanted columns.

    Raises:
        Unfit: a value does not fit.
    """
    names = rows.schema.names
    columns = [
        _cast(rows.column(field.name), field)
        if field.name in names
        else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    result = pa.RecordBatch.from_arrays(columns, schema=wanted)
    if not in_range(result):
        raise Unfit("a column that is NOT NULL is null, or a value is out of bounds")
    return result


def _mismatch(found: ArrowType, wanted: ArrowType) -> str | None:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_null(found):
        return None
    found_kind, wanted_kind = _kind(found), _kind(wanted)
    if found_kind != wanted_kind:
        return f"{found_kind} in the file ({found}), {wanted_kind} in the schema"
    for found_part, wanted_part in _parts(found, wanted):
        reason = _mismatch(found_part, wanted_part)
        if reason:
            return reason
    return None


def _parts(found: ArrowType, wanted: ArrowType) -> list[tuple[ArrowType, ArrowType]]:
    """Return the corresponding types within two nested types."""
    if pa.types.is_struct(wanted):
        fields = [(found.field(field.name), field) for field in wanted if field.name in found.names]
        return [(ours.type, theirs.type) for ours, theirs in fields]
    if pa.types.is_map(wanted):
        return [(found.key_type, wanted.key_type), (found.item_type, wanted.item_type)]
    if pa.types.is_list(wanted):
        return [(found.value_type, wanted.value_type)]
    return []


def _kind(arrow_type: ArrowType) -> str:
    return next((kind for matches, kind in _KINDS if matches(arrow_type)), "of an unknown type")


def _is_large_or_fixed(arrow_type: ArrowType) -> bool:
    return any(
        matches(arrow_type)
        for matches in (
            pa.types.is_large_string,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_string_view,
            pa.types.is_binary_view,
        )
    )


def _cast(array: Any, field: Any) -> Any:
    try:
        # Only nanoseconds may lose digits; an unsafe cast of other units could overflow.
        finer = pa.types.is_timestamp(array.type) and array.type.unit == "ns"
        result = array.cast(field.type, safe=not finer)
    except pa.ArrowException as error:
        raise Unfit(f"{field.name}: {error}") from None
    if pa.types.is_floating(field.type) and _overflows(array, result):
        raise Unfit(f"{field.name}: a number is beyond a FLOAT")
    return result


def _overflows(before: Any, after: Any) -> bool:
    if before.type == after.type:
        return False
    return bool(pc.sum(pc.is_inf(before)).as_py() != pc.sum(pc.is_inf(after)).as_py())
