"""Arrow types of a stream's columns.

| DDL | Arrow |
|---|---|
| BOOLEAN | bool |
| TINYINT, SMALLINT, INT, BIGINT | int8, int16, int32, int64 |
| FLOAT, DOUBLE | float32, float64 |
| STRING, BINARY | utf8, binary |
| DATE | date32 |
| TIMESTAMP | timestamp in microseconds, UTC |
| TIMESTAMP_NTZ | timestamp in microseconds without a zone |
| DECIMAL(p,s) | decimal128(p, s) |
| ARRAY, MAP, STRUCT | list, map, struct |

NOT NULL becomes a field that is not nullable, also within structs.
"""

from typing import Any

import pyarrow as pa

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

ArrowType = Any
ArrowSchema = Any

TIMESTAMP = pa.timestamp("us", "UTC")

_SIMPLE = {
    Simple.BOOLEAN: pa.bool_(),
    Simple.TINYINT: pa.int8(),
    Simple.SMALLINT: pa.int16(),
    Simple.INT: pa.int32(),
    Simple.BIGINT: pa.int64(),
    Simple.FLOAT: pa.float32(),
    Simple.DOUBLE: pa.float64(),
    Simple.STRING: pa.string(),
    Simple.BINARY: pa.binary(),
    Simple.DATE: pa.date32(),
    Simple.TIMESTAMP: TIMESTAMP,
    Simple.TIMESTAMP_NTZ: pa.timestamp("us"),
}


def arrow_schema(schema: Schema) -> ArrowSchema:
    """The Arrow schema of a stream's rows."""
    return pa.schema([_field(column) for column in schema.columns])


def arrow_type(kind: DataType) -> ArrowType:
    """The Arrow type of a column."""
    match kind:
        case Simple():
            return _SIMPLE[kind]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(arrow_type(element))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([_field(field) for field in fields])


def contains(kind: DataType, *wanted: object) -> bool:
    """Whether a type is, or has anywhere within it, one of the wanted types or classes."""
    if kind in wanted or type(kind) in wanted:
        return True
    match kind:
        case Array(element):
            return contains(element, *wanted)
        case Map(key, value):
            return contains(key, *wanted) or contains(value, *wanted)
        case Struct(fields):
            return any(contains(field.type, *wanted) for field in fields)
        case _:
            return False


def no_rows(schema: ArrowSchema) -> Any:
    """A record batch of this schema without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _field(column: Column) -> Any:
    return pa.field(column.name, arrow_type(column.type), nullable=column.nullable)
