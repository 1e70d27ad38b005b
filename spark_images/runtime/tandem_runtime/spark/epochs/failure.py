"""Explains why a query failed or did not start."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tandem_runtime.spark.checks.refusals import Finding, Reason
from tandem_runtime.spark.checks.spark_errors import SparkError, explain
from tandem_runtime.spark.state.checkpoint import OTHER_QUERY

Columns = Mapping[str, Sequence[str]]

# Conditions under which a retry, perhaps on another volume, may help.
_NOT_OF_THE_QUERY = ("INTERNAL_ERROR", "CANNOT_", "FAILED_READ_FILE", "UNABLE_TO_ACQUIRE_MEMORY")
_CHANGED_STATE = (
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
)
_REDEFINED_WATERMARK = "Redefining watermark"


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """The cause of a failure, as far as it is known."""

    kind: str
    """One word: the reason of a refusal, Spark's error condition, or the class of the error."""
    message: str
    hint: str = ""
    is_users: bool = False
    """Whether the cause lies in the query or the rows, so that a retry does not help."""


class EngineError(Exception):
    """The engine failed while a caller waited for it."""

    def __init__(self, failure: EngineFailure) -> None:
        super().__init__(f"{failure.kind}: {failure.message}")
        self.failure = failure


def failure_of_query(event: Mapping[str, Any], streams: Columns) -> EngineFailure:
    """Explain the end of a query from the event of the JVM.

    Args:
        event: `type` and `message` of the error, and Spark's `condition` and `parameters`, if any.
        streams: the columns of each stream.
    """
    condition, message = event["condition"] or "", event["message"]
    if _REDEFINED_WATERMARK in message:
        hint = "leave withWatermark out: the stream's watermark stands in the manifest"
        return EngineFailure("RedefinedWatermark", message, hint, is_users=True)
    if not condition or condition.startswith(_NOT_OF_THE_QUERY):
        return EngineFailure(_word(condition) or event["type"].rpartition(".")[2], message)
    return _of_spark(SparkError(condition, message, event["parameters"]), streams)


def failure_of_exception(error: Exception, streams: Columns) -> EngineFailure:
    """Explain an error while building or starting the query."""
    kind = type(error).__name__
    if isinstance(error, Py4JError | OSError):
        return EngineFailure(kind, str(error))
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if isinstance(error, PySparkException) and condition is not None:
        parameters = error.getMessageParameters() or {}
        return _of_spark(SparkError(condition, str(error), parameters), streams)
    return EngineFailure(kind, str(error), getattr(error, "hint", ""), is_users=True)


def _of_spark(error: SparkError, streams: Columns) -> EngineFailure:
    if error.condition.startswith(_CHANGED_STATE):
        hint = f"the query has changed under its state: {OTHER_QUERY}"
        return EngineFailure(_word(error.condition), error.message, hint, is_users=True)
    finding = explain(error, streams)
    known = finding.reason is not Reason.INVALID_QUERY
    kind = str(finding.reason) if known else _word(error.condition)
    return EngineFailure(kind, finding.message, finding.hint, is_users=True)


def failure_of_findings(findings: Sequence[Finding]) -> EngineFailure:
    """Combine the findings for which a query is refused into one failure."""
    first, *others = findings
    more = [f"{each.message} ({each.hint})" for each in others]
    message = "; ".join([first.message, *more])
    return EngineFailure(str(first.reason), message, first.hint, is_users=True)


def _word(condition: str) -> str:
    """Convert a condition of Spark, such as DIVIDE_BY_ZERO, to a Kubernetes reason."""
    return "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", condition))
