"""Schemas of streams as Arrow sees them, in the types that Spark maps its own to."""

import pyarrow as pa

from tandem.model.ddl import Array, DataType, Decimal, Map, Schema, Simple, Struct

TIMESTAMP = pa.timestamp("us", tz="UTC")

_SIMPLE: dict[Simple, pa.DataType] = {
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


def arrow_schema(schema: Schema) -> pa.Schema:
    """Give the Arrow schema of a stream's rows, columns in order.

    All columns may be null there, whatever the DDL says: a tick row has no values.
    """
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in schema.columns])


def arrow_type(kind: DataType) -> pa.DataType:
    """Give the Arrow type of a DDL type."""
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
            return pa.struct(
                [pa.field(field.name, arrow_type(field.type), field.nullable) for field in fields]
            )
