"""Builds the data frame that Spark runs from a pipeline."""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (its usual name)
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from tandem_core.model.fields.spec_kinds import SqlQuery
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import PythonQuery, Stream
from tandem_runtime.spark.epochs.inbox import WATERMARK_COLUMN

DIGEST_COLUMN = "_digest"
"""The last column of Spark's result: a hash of the row."""

_TICK_COLUMN = "_tick"
_QUERY_MODULE = "_tandem_query"


@dataclass(frozen=True, slots=True)
class Origin:
    """The channel and the inbox from which a query's streams read."""

    channel: str
    inbox: Path
    base: int = 0
    """The epoch before the first one; ignored with a checkpoint."""


class QueryRefused(Exception):
    """The query itself cannot be run; a retry does not help."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def build_query(session: SparkSession, pipeline: Pipeline, origin: Origin) -> DataFrame:
    """Build the data frame of the user's query, without hidden columns.

    Streams become temporary views, which SQL reads by name, and data frames for a Python function.

    Raises:
        QueryRefused: the result of a Python function is not a data frame.
        Exception: any error of Spark or the user's code.
    """
    frames = {
        stream.name: stream_frame(session, stream, origin) for stream in pipeline.spec.streams
    }
    program = pipeline.spec.query.program
    match program:
        case SqlQuery(text):
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
            return session.sql(text)
        case PythonQuery():
            return _from_python(program, frames)


def stream_frame(session: SparkSession, stream: Stream, origin: Origin) -> DataFrame:
    """Build the data frame of one stream: its columns, in the order of its schema.

    For a stream with event time the watermark is the header's. The only watermark operator reads
    the hidden column; the filter removes the tick row; the event-time column is marked with the
    stream's delay. Filter and column are nondeterministic on purpose, so that no optimizer rule
    moves an operator of the user's query below the watermark operator.
    """
    source = (
        session.readStream.format("tandem")
        .schema(_source_ddl(stream))
        .option("stream", stream.name)
        .option("channel", origin.channel)
        .option("inbox", str(origin.inbox))
        .option("base", origin.base)
        .load()
    )
    if stream.watermark is None:
        return source
    marked = (
        source.withColumn(_TICK_COLUMN, F.col(WATERMARK_COLUMN).isNotNull())
        .withColumn(
            WATERMARK_COLUMN,
            F.coalesce(WATERMARK_COLUMN, F.expr("timestamp'0001-01-01 00:00:00'")),
        )
        .withWatermark(WATERMARK_COLUMN, "0 seconds")
        .where(f"NOT {_TICK_COLUMN} OR spark_partition_id() < 0")
    )
    event_time = stream.watermark.column
    marked_time = F.expr(f"if(spark_partition_id() < 0, null, {_name(event_time)})").alias(
        event_time, metadata={"spark.watermarkDelayMs": stream.watermark.delay.milliseconds}
    )
    return marked.select(
        *(marked_time if name == event_time else F.col(_name(name)) for name in stream.schema.names)
    )


def with_digest(result: DataFrame) -> DataFrame:
    """Add a hash of each row as the last column.

    Raises:
        QueryRefused: two columns have the same name.
    """
    names = [name.lower() for name in result.columns]
    for name in result.columns:
        if names.count(name.lower()) > 1:
            raise QueryRefused(
                f"the result has two columns named {name}", "give one of them another name with AS"
            )
    hashed = [_hashable(field.name, field.dataType) for field in result.schema.fields]
    return result.select("*", F.xxhash64(*hashed).alias(DIGEST_COLUMN))


def streams_read(query: DataFrame) -> set[str]:
    """Return the streams that a query reads; it need not read all of them."""
    leaves = query._jdf.queryExecution().analyzed().collectLeaves()
    sources = [leaves.apply(position) for position in range(leaves.size())]
    return {
        source.extraOptions().get("stream")
        for source in sources
        if source.getClass().getSimpleName() == "StreamingRelationV2"
    }


def keeps_shaped_state(query: DataFrame) -> bool:
    """Whether a query has state variables of its own, which only RocksDB supports."""
    return "TransformWithState" in query._jdf.queryExecution().analyzed().toString()


def _hashable(name: str, kind: DataType) -> Column:
    column = F.col(_name(name))
    return F.to_json(column) if _has_no_hash(kind) else column


def _has_no_hash(kind: DataType) -> bool:
    match kind:
        case MapType() | VariantType():
            return True
        case ArrayType():
            return _has_no_hash(kind.elementType)
        case StructType():
            return any(_has_no_hash(field.dataType) for field in kind.fields)
        case _:
            return False


def _source_ddl(stream: Stream) -> str:
    # The tick row has no values, so all columns of the source are nullable.
    columns = [replace(column, nullable=True, comment=None) for column in stream.schema.columns]
    ddl = [column.text() for column in columns]
    if stream.watermark:
        ddl.append(f"{WATERMARK_COLUMN} TIMESTAMP")
    return ", ".join(ddl)


def _name(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _from_python(program: PythonQuery, frames: Mapping[str, DataFrame]) -> DataFrame:
    build = _function(Path(program.file), program.function)
    result = build(dict(frames))
    if not isinstance(result, DataFrame):
        raise QueryRefused(
            f"{program.function} in {program.file} returned {type(result).__name__}",
            "return a DataFrame made of the streams",
        )
    return result


def _function(file: Path, name: str) -> Callable[[dict[str, DataFrame]], object]:
    """Load a user's file as a module; Python workers receive its functions by value."""
    spec = importlib.util.spec_from_file_location(_QUERY_MODULE, file)
    if spec is None or spec.loader is None:
        raise QueryRefused(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_QUERY_MODULE] = module
    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    spec.loader.exec_module(module)
    try:
        return cast("Callable[[dict[str, DataFrame]], object]", getattr(module, name))
    except AttributeError:
        raise QueryRefused(f"{file} defines no function {name}") from None
