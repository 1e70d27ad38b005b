"""Checks whether twins may run a query: `python -m tandem_runtime.spark.checks.check DIR`.

Prints only one JSON document on standard output, `{"refused": […], "warnings": […], "fingerprint":
"…"}`, with reason, message and hint of each finding. Exits with 0, or with 3 if the query is
refused; with 1 and no document if there is no Java or the check itself fails. Starts no query: it
builds the query over the pipeline's streams, analyses its plan and discards it.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from tandem_core.contract.exit_codes import REFUSED, STOPPED
from tandem_core.model.fields.problems import Problem, path_text, value_text
from tandem_core.model.fields.spec_kinds import SqlQuery
from tandem_core.model.pipeline import Pipeline, Refusal, parse_pipeline
from tandem_core.model.spec import PythonQuery
from tandem_runtime.spark.checks.column_names import misnamed
from tandem_runtime.spark.checks.determinism import doubts, not_deterministic, special_literals
from tandem_runtime.spark.checks.dry_run import commands_in, plan_streaming
from tandem_runtime.spark.checks.keyed import not_keyed
from tandem_runtime.spark.checks.plan_fingerprint import fingerprint, query_fingerprint
from tandem_runtime.spark.checks.plan_reader import read_plan
from tandem_runtime.spark.checks.refusals import Finding, QueryVerdict, Reason
from tandem_runtime.spark.checks.spark_errors import (
    SparkError,
    explain,
    explain_exception,
    place_in,
)
from tandem_runtime.spark.jvm.java import NoJava
from tandem_runtime.spark.jvm.launch import LaunchFailed, start_driver
from tandem_runtime.spark.query import Origin, QueryRefused, build_query, stream_frame

# The query is never started, so it never requests an epoch.
_NOWHERE = Origin("check", Path("/nonexistent"))
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class _Refused(Exception):
    """Ends the check early: the remaining checks need what failed."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(*findings)
        self.findings = findings


def main(arguments: list[str]) -> int:
    """Check the pipeline of a directory."""
    parser = argparse.ArgumentParser(prog="python -m tandem_runtime.spark.checks.check")
    parser.add_argument("directory", type=Path, help="where pipeline.json is")
    directory = parser.parse_args(arguments).directory.resolve()
    # Keeps the document separate: output of the user's file and of Java goes to standard error.
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        verdict = check_directory(directory)
    except (NoJava, LaunchFailed) as error:
        sys.exit(str(error))
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump(verdict.document(), out)
        out.write("\n")
    return REFUSED if verdict.refused else STOPPED


def check_directory(directory: Path) -> QueryVerdict:
    """Check the pipeline that a directory's `pipeline.json` describes."""
    document = json.loads((directory / "pipeline.json").read_text(encoding="utf-8"))
    pipeline = parse_pipeline(document["manifest"])
    if isinstance(pipeline, Refusal):
        return QueryVerdict(refused=tuple(map(_manifest_finding, pipeline.problems)))
    os.chdir(document["base"])
    with tempfile.TemporaryDirectory(prefix="tandem-check-") as scratch:
        driver = start_driver(pipeline.spec.spark, Path(scratch, "spark"))
        try:
            return check_query(driver.session, pipeline)
        finally:
            driver.stop()


def check_query(session: SparkSession, pipeline: Pipeline) -> QueryVerdict:
    """Check a pipeline's query in a session."""
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True  # its errors become findings
    try:
        df = _build(session, pipeline)
    except _Refused as refused:
        return QueryVerdict(refused=refused.findings)
    frames = {one.name: stream_frame(session, one, _NOWHERE) for one in pipeline.spec.streams}
    plan = read_plan(df, frames)
    keys = {stream.name: stream.key for stream in pipeline.spec.streams}
    found = not_deterministic(plan) + not_keyed(plan, keys) + misnamed(plan)
    # For a refused query these checks would repeat the same findings in other words.
    found = found or _objections(df, pipeline) or _instability(df, session, pipeline)
    return QueryVerdict(
        tuple(found), tuple(doubts(plan)), query_fingerprint(df, pipeline.spec.query)
    )


def _build(session: SparkSession, pipeline: Pipeline) -> DataFrame:
    program = pipeline.spec.query.program
    try:
        if isinstance(program, SqlQuery):
            _check_text(session, program.text)
        df = build_query(session, pipeline, _NOWHERE)
    except PySparkException as error:
        raise _Refused(_explained(error, pipeline)) from None
    except QueryRefused as error:
        hint = error.hint or "define a function that takes the streams and returns a data frame"
        raise _Refused(Finding(Reason.NOT_A_DATA_FRAME, str(error), hint)) from None
    except (Exception, SystemExit) as error:
        if not isinstance(program, PythonQuery):
            raise
        raise _Refused(explain_exception(error, Path(program.file))) from None
    if not df.isStreaming:
        raise _Refused(
            Finding(
                Reason.NOT_STREAMING,
                "the result reads none of the pipeline's streams",
                f"read at least one of them: {', '.join(s.name for s in pipeline.spec.streams)}",
            )
        )
    return df


def _check_text(session: SparkSession, sql: str) -> None:
    if commands := commands_in(session, sql):
        message = f"the text has a command, {', '.join(commands)}"
        raise _Refused(
            Finding(Reason.NOT_A_QUERY, message, "write one SELECT over the streams; sinks write")
        )
    if findings := special_literals(sql):
        raise _Refused(*findings)


def _objections(df: DataFrame, pipeline: Pipeline) -> list[Finding]:
    try:
        plan_streaming(df, pipeline.spec.query.output_mode)
    except PySparkException as error:
        return [_explained(error, pipeline)]
    return []


def _instability(df: DataFrame, session: SparkSession, pipeline: Pipeline) -> list[Finding]:
    try:
        again = _build(session, pipeline)
    except _Refused as refused:
        return list(refused.findings)
    if fingerprint(df) == fingerprint(again):
        return []
    return [
        Finding(
            Reason.UNSTABLE_QUERY,
            "the query differs each time it is built",
            "build it from constants only: no clock, no random numbers, no external data",
        )
    ]


def _explained(error: PySparkException, pipeline: Pipeline) -> Finding:
    program = pipeline.spec.query.program
    place = place_in(error, Path(program.file)) if isinstance(program, PythonQuery) else ""
    seen = SparkError(error.getCondition() or "", str(error), error.getMessageParameters() or {})
    streams = {stream.name: stream.schema.names for stream in pipeline.spec.streams}
    return explain(seen, streams, place)


def _manifest_finding(problem: Problem) -> Finding:
    where = path_text(problem.path)
    complete = where == "spec.query.outputMode" and problem.value == "complete"
    return Finding(
        Reason.COMPLETE_MODE if complete else Reason.INVALID_MANIFEST,
        f"{where}: {value_text(problem.value)}",
        problem.expected,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
