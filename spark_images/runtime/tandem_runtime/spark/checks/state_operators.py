"""Finds the key in the state of a pipeline's query, with Spark's own plan of a micro-batch."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import OutputMode
from tandem_runtime.spark.checks.dry_run import writers_of_state
from tandem_runtime.spark.checks.key_places import KeyPlace, StateOperator, find_key_places
from tandem_runtime.spark.checks.plan_reader import read_expressions, read_plan
from tandem_runtime.spark.query import Origin, build_query, stream_frame, with_digest

_NOWHERE = Origin("places", Path("/nonexistent"))


def key_places(session: SparkSession, pipeline: Pipeline) -> tuple[KeyPlace, ...]:
    """Find the key in the state of each operator of a checked query.

    Raises:
        UnknownKeyPlace: an operator's state is not known to hold the key.
    """
    df = build_query(session, pipeline, _NOWHERE)
    frames = {one.name: stream_frame(session, one, _NOWHERE) for one in pipeline.spec.streams}
    keys = {stream.name: stream.key for stream in pipeline.spec.streams}
    operators = state_operators(with_digest(df), pipeline.spec.query.output_mode)
    return find_key_places(read_plan(df, frames), keys, operators)


def state_operators(df: DataFrame, mode: OutputMode) -> list[StateOperator]:
    """Return the stateful operators that Spark makes of a query, by their numbers."""
    found = [_state_operator(writer) for writer in writers_of_state(df, mode)]
    return sorted(found, key=lambda one: one.number)


def _state_operator(writer: Any) -> StateOperator:
    read = _PARTITIONED_BY.get(writer.getClass().getSimpleName(), _unknown)
    partitioned_by = tuple(map(read_expressions, read(writer)))
    number = writer.stateInfo().get().operatorId()
    return StateOperator(number, writer.shortName(), partitioned_by)


def _key_expressions(writer: Any) -> list[Any]:
    return [writer.keyExpressions()]


def _unknown(writer: Any) -> list[Any]:
    del writer
    return []


# By Spark's name of the class, for each side of a join: what it partitions rows and state by.
_PARTITIONED_BY: Mapping[str, Callable[[Any], list[Any]]] = {
    "FlatMapGroupsInPandasWithStateExec": lambda writer: [writer.groupingAttributes()],
    "SessionWindowStateStoreSaveExec": lambda writer: [writer.keyWithoutSessionExpressions()],
    "StateStoreSaveExec": _key_expressions,
    "StreamingDeduplicateExec": _key_expressions,
    "StreamingDeduplicateWithinWatermarkExec": _key_expressions,
    "StreamingSymmetricHashJoinExec": lambda writer: [writer.leftKeys(), writer.rightKeys()],
}
