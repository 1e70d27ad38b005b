"""Runs Spark's own checks of a streaming query without starting it.

Spark has no public call for this: it checks a streaming query in `start()`, and parts of it only
when it plans the first micro-batch. This module uses the same internal objects.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tandem_core.model.spec import OutputMode

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_STREAMING = "org.apache.spark.sql.execution.streaming"
_DEFAULT_ARGUMENTS = range(12, 17)


def commands_in(session: SparkSession, sql: str) -> list[str]:
    """Return the commands in a text, which `sql()` would run at once.

    Raises:
        ParseException: the text is not SQL.
    """
    jvm = _jvm(session)
    plan = session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    kinds = [
        jvm.java.lang.Class.forName(f"{_LOGICAL}.{name}")
        for name in ("Command", "ParsedStatement", "CompoundBody")
    ]
    return [one.nodeName() for one in _tree(plan) if any(kind.isInstance(one) for kind in kinds)]


def plan_streaming(df: DataFrame, mode: OutputMode) -> None:
    """Check and plan a query as Spark does for its first micro-batch.

    Raises:
        PySparkException: Spark cannot run it as a stream.
    """
    jvm = _jvm(df.sparkSession)
    plan = df._jdf.queryExecution().analyzed()
    output_mode = _output_mode(jvm, mode)
    checker = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"
    _companion(jvm, checker).checkForStreaming(plan, output_mode)
    with_watermark = jvm.java.lang.Class.forName(
        f"{_STREAMING}.operators.stateful.WatermarkSupport"
    )
    for operator in _tree(_planned(df, plan, output_mode)):
        if with_watermark.isInstance(operator):
            operator.watermarkExpressionForEviction()


def writers_of_state(df: DataFrame, mode: OutputMode) -> list[Any]:
    """Return the physical operators of a micro-batch that write state."""
    jvm = _jvm(df.sparkSession)
    writer = jvm.java.lang.Class.forName(f"{_STREAMING}.operators.stateful.StateStoreWriter")
    plan = df._jdf.queryExecution().analyzed()
    return [
        one for one in _tree(_planned(df, plan, _output_mode(jvm, mode))) if writer.isInstance(one)
    ]


def _output_mode(jvm: Any, mode: OutputMode) -> Any:
    return getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()


def _planned(df: DataFrame, plan: Any, output_mode: Any) -> Any:
    """Return the physical plan of a micro-batch; its state store is never opened."""
    jvm = _jvm(df.sparkSession)
    runtime = f"{_STREAMING}.runtime.IncrementalExecution"
    companion = _companion(jvm, runtime)
    no_settings = _companion(jvm, "scala.collection.immutable.Map").empty()
    execution = getattr(jvm, runtime)(
        df.sparkSession._jsparkSession,
        plan,
        output_mode,
        "no checkpoint",
        jvm.java.util.UUID.randomUUID(),
        jvm.java.util.UUID.randomUUID(),
        0,
        _companion(jvm, "scala.None"),
        _companion(jvm, f"{_STREAMING}.checkpointing.OffsetSeqMetadata").apply(0, 0, no_settings),
        _companion(jvm, f"{_STREAMING}.runtime.WatermarkPropagator").noop(),
        False,
        *(getattr(companion, f"$lessinit$greater$default${n}")() for n in _DEFAULT_ARGUMENTS),
    )
    return execution.executedPlan()


def _jvm(session: SparkSession) -> Any:
    return session.sparkContext._jvm


def _companion(jvm: Any, name: str) -> Any:
    """Return the Scala object of that name."""
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def _tree(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for position in range(children.size()):
        yield from _tree(children.apply(position))
