"""Explains errors of Spark, and those of a user's Python file, in plain words.

Spark identifies some errors by a condition and others only by their message, so patterns match
both. Unknown errors keep Spark's words.
"""

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tandem_core.model.fields.problems import suggestion
from tandem_runtime.spark.checks.refusals import Finding, Reason

_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_CONDITION = re.compile(r"^\s*\[[A-Z_.0-9]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$", re.DOTALL)
_MISSING_COLUMN = (
    "ATTRIBUTE_NOT_SUPPORTED",
    "UNRESOLVED_COLUMN",
    "UNRESOLVED_FIELD",
    "UNRESOLVED_USING_COLUMN",
)
_COLUMN_FIELDS = ("objectName", "colName", "fieldName", "attr_name")
_QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class SparkError:
    """An error of Spark: its condition, message and parameters."""

    condition: str
    message: str
    parameters: Mapping[str, str] = field(default_factory=dict)


# A pattern over "<condition> <message>", what is wrong, and what to do instead.
_UNSUPPORTED: Sequence[tuple[str, str, str]] = (
    (
        r"STREAMING_OUTPUT_MODE.*append.*aggregations without watermark",
        "outputMode append delivers a group once it is complete, and no watermark completes these",
        "use outputMode: update, or group by window(…) over the stream's watermark column itself: "
        "a time that is computed, or comes out of Python, does not carry the watermark",
    ),
    (
        r"STREAMING_OUTPUT_MODE.*update.*session window",
        "sessions cannot be delivered while they may still grow",
        "use outputMode: append",
    ),
    (
        r"Stream-stream (\w+) join .* without a watermark",
        "an outer join of streams has no bound in time",
        "declare watermarks for both streams and bound the time in the ON clause, such as "
        "r.at BETWEEN l.at AND l.at + INTERVAL 5 MINUTES; else no row could ever leave the state",
    ),
    (
        r"join between two streaming .* only in Append",
        "this kind of join of streams works only with outputMode append",
        "use outputMode: append, or an inner join",
    ),
    (
        r"LeftAnti|Except on a streaming|Intersect of streaming|without equality predicate",
        "this kind of join or set operation does not work between streams",
        "use an inner, left, right or full outer join, or a left semi join, on the streams' keys",
    ),
    (
        r"INVALID_SUBQUERY_EXPRESSION\.STREAMING_QUERY",
        "a subquery inside an expression (EXISTS, IN, a single value) reads a stream",
        "join the streams on their keys; LEFT SEMI JOIN says what EXISTS does",
    ),
    (
        r"NON_TIME_WINDOW_NOT_SUPPORTED",
        "window functions (OVER …) need all rows of a partition, and a stream has no last one",
        "group by window(<watermark column>, '1 minute') and the key, or keep state of your own "
        "with applyInPandasWithState or transformWithState",
    ),
    (
        r"Sorting is not supported",
        "a stream cannot be sorted: it has no last row",
        "leave ORDER BY out and let the reader of the results sort them",
    ),
    (
        r"Distinct aggregations are not supported",
        "DISTINCT inside an aggregate is not supported over streams",
        "use approx_count_distinct, or size(collect_set(…)) where values are few",
    ),
    (
        r"Limits are not supported|Offset is not supported",
        "LIMIT works only with outputMode append, OFFSET not at all",
        "leave it out and let the reader of the results cut them",
    ),
    (
        r"dropDuplicatesWithinWatermark is not supported|Event-time timeout not supported without",
        "this needs event time, and the stream has no watermark",
        "declare spec.streams[].watermark with the column and the delay",
    ),
    (
        r"applyInPandasWithState in (\w+) mode is not supported with (\w+) output mode",
        "applyInPandasWithState has another output mode than the pipeline",
        "give it the value of spec.query.outputMode",
    ),
    (
        r"possible 'correctness' issue|with aggregation on a streaming|after aggregation on",
        "one stateful operation over another works only with outputMode append",
        "use outputMode: append, or one stateful operation",
    ),
    (
        r"MULTIPLE_EVENT_TIME_COLUMNS",
        "after a join two columns carry a watermark, and the next stateful operation takes one",
        "keep one of them and turn the other into a plain time: "
        "timestamp_micros(unix_micros(column))",
    ),
    (
        r"group aggregate pandas UDF",
        "a stream cannot be aggregated by a pandas function",
        "use Spark's aggregates, or applyInPandasWithState",
    ),
    (
        r"Union between streaming and batch",
        "UNION of a stream with a static table would deliver the table in every epoch",
        "make the table a stream of the pipeline",
    ),
    (
        r"joins? with .*static",
        "an outer join with a table must keep the stream's side",
        "put the stream on the left of a LEFT JOIN",
    ),
    (
        r"must be executed with writeStream|CALL_ON_STREAMING|immediate result|pivot is not",
        "the query asks for the rows of a stream at once (count, collect, show, pivot, …)",
        "return the data frame as it is; the framework runs it",
    ),
)


def explain(error: SparkError, streams: Mapping[str, Sequence[str]], place: str = "") -> Finding:
    """Explain an error of Spark. `streams` has the columns of each stream.

    `place` is the line of a Python file that failed; for SQL, Spark's message has the place.
    """
    at = place or _line(error.message)
    known = (
        _missing_name(error, streams, at) or _complete_mode(error, at) or _unsupported(error, at)
    )
    if known is not None:
        return known
    if error.condition.startswith("PARSE_"):
        near = error.parameters.get("error", "")
        detail = error.parameters.get("hint", "").lstrip(": ")
        message = f"{at}syntax error{f' near {near}' if near else ''}"
        return Finding(
            Reason.SQL_SYNTAX,
            f"{message}: {detail}" if detail else message if near else f"{at}{_plain(error)}",
            "write one SELECT in Spark's SQL",
        )
    return Finding(
        Reason.INVALID_QUERY, f"{at}{_plain(error)}", "change the query as the message says"
    )


def explain_exception(error: BaseException, file: Path) -> Finding:
    """Explain an exception that a user's Python file raised, with its line."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        message = f"{file.name}, line {error.lineno}: {kind}: {error.msg}"
    else:
        message = f"{place_in(error, file)}{kind}: {error}"
    return Finding(
        Reason.PYTHON_RAISED,
        message.rstrip(": "),
        "the function gets a data frame for each stream, before any row comes; it must return "
        "without raising",
    )


def place_in(error: BaseException, file: Path) -> str:
    """Return the innermost line of a file in an exception's traceback."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == file.resolve()
    ]
    return f"{file.name}, line {lines[-1]}: " if lines else f"{file.name}: "


def _missing_name(
    error: SparkError, streams: Mapping[str, Sequence[str]], at: str
) -> Finding | None:
    parameters = error.parameters
    if error.condition.startswith(_MISSING_COLUMN):
        name = next(parameters[field] for field in _COLUMN_FIELDS if field in parameters)
        columns = [column for columns in streams.values() for column in columns]
        guess = suggestion(_last(name), columns)
        listed = "; ".join(f"{stream} has {', '.join(names)}" for stream, names in streams.items())
        return Finding(Reason.MISSING_COLUMN, f"{at}there is no column {name}{guess}", listed)
    if error.condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = parameters["relationName"]
        guess = suggestion(_last(name), streams)
        return Finding(
            Reason.MISSING_TABLE,
            f"{at}there is no table {name}{guess}",
            f"tables are named as the streams: {', '.join(streams)}",
        )
    if error.condition.startswith("UNRESOLVED_ROUTINE"):
        name = parameters["routineName"]
        hint = "use a function of Spark's SQL, or a Python query with functions of your own"
        return Finding(Reason.MISSING_FUNCTION, f"{at}there is no function {name}", hint)
    return None


def _complete_mode(error: SparkError, at: str) -> Finding | None:
    if "mode of function should be append or update" not in error.message:
        return None
    hint = "use append or update: complete would deliver everything again in every epoch"
    return Finding(Reason.COMPLETE_MODE, f"{at}{_plain(error)}", hint)


def _unsupported(error: SparkError, at: str) -> Finding | None:
    whole = f"{error.condition} {error.message}"
    for pattern, wrong, instead in _UNSUPPORTED:
        if re.search(pattern, whole):
            return Finding(Reason.UNSUPPORTED, f"{at}{wrong}", instead)
    return None


def _last(name: str) -> str:
    """Return the last part of a quoted name such as `` `p`.`amount` ``."""
    parts = _QUOTED.findall(name)
    return parts[-1] if parts else name


def _line(message: str) -> str:
    found = _PLACE.search(message)
    return f"line {found[1]}, position {int(found[2]) + 1}: " if found else ""


def _plain(error: SparkError) -> str:
    """Return Spark's message without codes and without the plan that may follow."""
    text = _STATE.sub("", _CONDITION.sub("", error.message.strip()))
    return text.partition(";\n")[0].strip()
