"""Spark's objections in plain words, and what a user's Python file raises."""

from pathlib import Path

import pytest

from tandem_runtime.spark.checks.refusals import Reason
from tandem_runtime.spark.checks.spark_errors import SparkError, explain, explain_exception

STREAMS = {"payments": ("user", "amount", "at"), "refunds": ("payer", "amount")}


def test_missing_column_is_named_with_line_and_nearest_column() -> None:
    message = "[UNRESOLVED_COLUMN] A column … SQLSTATE: 42703; line 2 pos 7;\n'Project ['usr]"
    parameters = {"objectName": "`p`.`usr`", "proposal": "`at`"}
    found = explain(SparkError("UNRESOLVED_COLUMN.WITH_SUGGESTION", message, parameters), STREAMS)
    assert found.reason == Reason.MISSING_COLUMN
    assert found.message.startswith("line 2, position 8: ")
    assert "`p`.`usr`" in found.message
    assert '"user"' in found.message
    assert "refunds has payer, amount" in found.hint


def test_missing_data_frame_attribute_is_reported_as_missing_column() -> None:
    error = SparkError("ATTRIBUTE_NOT_SUPPORTED", "no", {"attr_name": "amonut"})
    found = explain(error, STREAMS, "query.py, line 4: ")
    assert found.reason == Reason.MISSING_COLUMN
    assert found.message.startswith("query.py, line 4: ")
    assert '"amount"' in found.message


def test_missing_table_is_named_with_nearest_stream() -> None:
    error = SparkError("TABLE_OR_VIEW_NOT_FOUND", "line 1 pos 9", {"relationName": "`payment`"})
    found = explain(error, STREAMS)
    assert found.reason == Reason.MISSING_TABLE
    assert '"payments"' in found.message
    assert "payments, refunds" in found.hint


def test_missing_function_is_named() -> None:
    error = SparkError("UNRESOLVED_ROUTINE", "…", {"routineName": "`summ`"})
    found = explain(error, STREAMS)
    assert found.reason == Reason.MISSING_FUNCTION
    assert "`summ`" in found.message


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"error": "'SELEC'", "hint": ""}, "syntax error near 'SELEC'"),
        ({"error": "')'", "hint": ": extra input ')'"}, "syntax error near ')': extra input ')'"),
        ({}, "Empty statement."),
    ],
)
def test_syntax_error_has_line_and_position(parameters: dict[str, str], said: str) -> None:
    message = "\n[PARSE_X] Empty statement. SQLSTATE: 42601 (line 3, pos 20)\n\n== SQL ==\nx"
    found = explain(SparkError("PARSE_X", message, parameters), STREAMS)
    assert found.reason == Reason.SQL_SYNTAX
    assert found.message == f"line 3, position 21: {said}"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION",
            "Invalid streaming output mode: append. This output mode is not supported for "
            "streaming aggregations without watermark on streaming DataFrames/DataSets.",
        ),
        (
            "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION",
            "Invalid streaming output mode: update. This output mode is not supported for "
            "session window streaming aggregations on streaming DataFrames/DataSets.",
        ),
        (
            "_LEGACY_ERROR_TEMP_3102",
            "Stream-stream LeftOuter join between two streaming DataFrame/Datasets is not "
            "supported without a watermark in the join keys, or …",
        ),
        (
            "_LEGACY_ERROR_TEMP_3102",
            "FullOuter join between two streaming DataFrames/Datasets is not supported in Update "
            "output mode, only in Append output mode",
        ),
        (
            "_LEGACY_ERROR_TEMP_3102",
            "LeftAnti joins with a streaming DataFrame/Dataset on the right are not supported",
        ),
        ("INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY", "Invalid subquery: …"),
        ("NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING", "Window function is not supported …"),
        ("_LEGACY_ERROR_TEMP_3102", "Sorting is not supported on streaming DataFrames/Datasets"),
        ("_LEGACY_ERROR_TEMP_3102", "Distinct aggregations are not supported on streaming …"),
        ("_LEGACY_ERROR_TEMP_3102", "Limits are not supported on streaming … in Update …"),
        ("_LEGACY_ERROR_TEMP_3102", "dropDuplicatesWithinWatermark is not supported on streaming"),
        (
            "_LEGACY_ERROR_TEMP_3102",
            "applyInPandasWithState in update mode is not supported with Append output mode on",
        ),
        ("_LEGACY_ERROR_TEMP_3102", "Detected pattern of possible 'correctness' issue due to …"),
        ("MULTIPLE_EVENT_TIME_COLUMNS", "More than one event time columns are available."),
        ("", "Streaming aggregation doesn't support group aggregate pandas UDF"),
        ("_LEGACY_ERROR_TEMP_3102", "Union between streaming and batch DataFrames/Datasets is not"),
        ("_LEGACY_ERROR_TEMP_3063", "pivot is not supported on a streaming DataFrames/Datasets"),
        ("_LEGACY_ERROR_TEMP_3102", "Queries with streaming sources must be executed with "
         "writeStream.start()"),
    ],
)  # fmt: skip
def test_unsupported_streaming_operation_is_explained_with_hint(
    condition: str, message: str
) -> None:
    found = explain(SparkError(condition, message), STREAMS)
    assert found.reason == Reason.UNSUPPORTED
    assert message not in found.message
    assert found.hint


def test_complete_mode_of_python_function_is_refused() -> None:
    message = "The output mode of function should be append or update"
    assert explain(SparkError("", message), STREAMS).reason == Reason.COMPLETE_MODE


def test_unknown_error_is_passed_on_without_its_plan() -> None:
    message = "[AMBIGUOUS_X.Y] Reference `a` is ambiguous. SQLSTATE: 42704; line 1 pos 7;\n'Project"
    found = explain(SparkError("AMBIGUOUS_X.Y", message), STREAMS)
    assert found.reason == Reason.INVALID_QUERY
    assert found.message == "line 1, position 8: Reference `a` is ambiguous."


def raised(code: str, file: Path) -> BaseException:
    """What running a file raises."""
    file.write_text(code)
    try:
        exec(compile(code, str(file), "exec"), {})  # noqa: S102
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the test reads whatever Spark raises
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\n\ndef f():\n    return {}['u']\nf()", "query.py, line 4: KeyError: 'u'"),
        ("import json\njson.loads('')", "query.py, line 2: JSONDecodeError"),
        ("x = (", "query.py, line 1: SyntaxError: '(' was never closed"),
        ("raise SystemExit", "query.py, line 1: SystemExit"),
    ],
)
def test_exception_of_python_file_has_line_in_that_file(
    code: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "query.py"
    found = explain_exception(raised(code, file), file)
    assert found.reason == Reason.PYTHON_RAISED
    assert found.message.startswith(said)


def test_missing_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "query.py"
    found = explain_exception(FileNotFoundError(2, "No such file", str(file)), file)
    assert found.message.startswith("query.py: FileNotFoundError")
