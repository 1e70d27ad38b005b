"""The check with Spark itself: what is refused, what is accepted, and what a fingerprint tells."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.model.spec import Spark
from tandem_runtime.spark.checks.check import check_query
from tandem_runtime.spark.checks.plan_fingerprint import fingerprint
from tandem_runtime.spark.checks.refusals import Doubt, Finding, QueryVerdict, Reason
from tandem_runtime.spark.jvm.launch import start_driver
from tandem_runtime.spark.query import Origin, build_query

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    driver = start_driver(Spark(), tmp_path_factory.mktemp("spark") / "scratch")
    yield driver.session
    driver.stop()
    if driver.jvm.process.stdin:
        driver.jvm.process.stdin.close()


def stream(name: str, key: str, watermark: bool) -> dict[str, Any]:
    return {
        "name": name,
        "schema": f"{key} STRING, amount BIGINT, at TIMESTAMP",
        "key": [key],
        "source": {"files": {"path": "data", "format": "json"}},
        **({"watermark": {"column": "at", "delay": "10s"}} if watermark else {}),
    }


STREAMS = (
    stream("payments", "user", watermark=True),
    stream("refunds", "payer", watermark=True),
    stream("visits", "user", watermark=False),
)


def pipeline(program: dict[str, Any], mode: str, text: str) -> Pipeline:
    """A pipeline over those streams that its query names; over payments if it names none."""
    streams = [one for one in STREAMS if one["name"] in text] or list(STREAMS[:1])
    manifest = {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "checked"},
        "spec": {
            "streams": streams,
            "query": {**program, "outputMode": mode},
            "sinks": [{"name": "out", "console": {}}],
        },
    }
    found = parse_pipeline(manifest)
    assert isinstance(found, Pipeline), found
    return found


def sql_pipeline(sql: str, mode: str = "append") -> Pipeline:
    # A manifest is wrong if its text does not name every stream.
    text = sql if "payments" in sql or "visits" in sql else f"{sql} -- payments"
    return pipeline({"sql": text}, mode, text)


def check_sql(session: SparkSession, sql: str, mode: str = "append") -> QueryVerdict:
    return check_query(session, sql_pipeline(sql, mode))


def built_fingerprint(session: SparkSession, sql: str) -> str:
    """The fingerprint alone, without a check."""
    origin = Origin("check", Path("/nonexistent"))
    return fingerprint(build_query(session, sql_pipeline(sql), origin))


def check_python(
    session: SparkSession, file: Path, body: str, mode: str = "append"
) -> QueryVerdict:
    lines = [
        "from pyspark.sql import functions as F",
        "def build(streams):",
        "    payments, refunds, visits = map(streams.get, ('payments', 'refunds', 'visits'))",
        "    spark = next(iter(streams.values())).sparkSession",
        *(f"    {line}" for line in body.splitlines()),
    ]
    file.write_text("\n".join(lines))
    program = {"python": {"file": str(file), "function": "build"}}
    return check_query(session, pipeline(program, mode, body))


def only(verdict: QueryVerdict) -> Finding:
    (finding,) = verdict.refused
    assert finding.message
    assert finding.hint
    return finding


@pytest.mark.parametrize(
    ("sql", "reason", "named"),
    [
        ("SELECT user,\ncurrent_timestamp() AS t FROM payments", Reason.WALL_CLOCK, "line 2: "),
        ("SELECT user FROM payments WHERE at < now()", Reason.WALL_CLOCK, "now()"),
        ("SELECT user, unix_timestamp() AS t FROM payments", Reason.WALL_CLOCK, "unix_timestamp("),
        ("SELECT user, current_date AS d FROM payments", Reason.WALL_CLOCK, "current_date()"),
        ("SELECT user, localtimestamp() AS d FROM payments", Reason.WALL_CLOCK, "localtimestamp()"),
        ("SELECT user, current_time() AS d FROM payments", Reason.WALL_CLOCK, "current_time("),
        ("SELECT user, to_timestamp('now') AS t FROM payments", Reason.WALL_CLOCK, "'now'"),
        ("SELECT user, DATE'today' AS t FROM payments", Reason.WALL_CLOCK, "DATE'today'"),
        ("SELECT user, rand() AS r FROM payments", Reason.RANDOMNESS, "rand()"),
        ("SELECT user, uuid() AS r FROM payments", Reason.RANDOMNESS, "uuid()"),
        ("SELECT user, shuffle(array(1, 2)) AS r FROM payments", Reason.RANDOMNESS, "shuffle("),
        ("SELECT user FROM payments TABLESAMPLE (9 PERCENT)", Reason.RANDOMNESS, "sampling"),
        ("SELECT monotonically_increasing_id() AS i FROM payments", Reason.PLACEMENT, "id()"),
        ("SELECT input_file_name() AS f FROM payments", Reason.PLACEMENT, "input_file_name()"),
        ("SELECT spark_partition_id() AS p FROM payments", Reason.PLACEMENT, "SPARK_PARTITION_ID"),
        ("SELECT count(*) AS n FROM payments", Reason.GLOBAL_AGGREGATE, "count(1)"),
        (
            "SELECT amount, count(*) AS n FROM payments GROUP BY amount",
            Reason.GROUPING_NOT_KEYED,
            "payments.user",
        ),
        (
            "SELECT u, count(*) AS n FROM (SELECT upper(user) AS u FROM payments) GROUP BY u",
            Reason.GROUPING_NOT_KEYED,
            "payments.user",
        ),
        (
            "SELECT user, amount, count(*) AS n FROM visits GROUP BY ROLLUP (user, amount)",
            Reason.GROUPING_NOT_KEYED,
            "visits.user",
        ),
        ("SELECT DISTINCT amount FROM payments", Reason.GROUPING_NOT_KEYED, "DISTINCT"),
        (
            "SELECT user FROM payments WATERMARK at DELAY OF INTERVAL 5 SECONDS",
            Reason.OWN_WATERMARK,
            "payments.at",
        ),
        (
            "SELECT user, payer FROM payments p JOIN refunds r ON p.amount = r.amount",
            Reason.JOIN_NOT_KEYED,
            "refunds.payer",
        ),
        ("SELECT usr FROM payments", Reason.MISSING_COLUMN, '"user"'),
        ("SELECT user FROM payment", Reason.MISSING_TABLE, '"payments"'),
        ("SELECT summ(amount) AS s FROM payments", Reason.MISSING_FUNCTION, "`summ`"),
        ("SELECT user\nFROM payments)", Reason.SQL_SYNTAX, "line 2, position 14: "),
        ("CREATE TABLE t (a INT)", Reason.NOT_A_QUERY, "CreateTable"),
        ("SELECT 1 AS one", Reason.NOT_STREAMING, "streams"),
        ("SELECT user, user FROM payments", Reason.DUPLICATE_COLUMN, "user"),
        ("SELECT user AS _epoch FROM payments", Reason.RESERVED_COLUMN, "_epoch"),
        ("SELECT user FROM payments ORDER BY user", Reason.UNSUPPORTED, "sorted"),
        (
            "SELECT user FROM payments p WHERE EXISTS "
            "(SELECT 1 FROM refunds r WHERE r.payer = p.user)",
            Reason.UNSUPPORTED,
            "subquery",
        ),
        (
            "SELECT user, row_number() OVER (PARTITION BY user ORDER BY at) AS r FROM payments",
            Reason.UNSUPPORTED,
            "OVER",
        ),
        ("SELECT user, count(*) AS n FROM payments GROUP BY user", Reason.UNSUPPORTED, "append"),
        (
            "SELECT user, count(*) AS n FROM payments "
            "GROUP BY user, window(at + INTERVAL 1 HOUR, '1 minute')",
            Reason.UNSUPPORTED,
            "append",
        ),
        (
            "SELECT user, payer FROM payments LEFT JOIN refunds ON user = payer",
            Reason.UNSUPPORTED,
            "bound in time",
        ),
    ],
)
def test_unsupported_sql_is_refused(
    session: SparkSession, sql: str, reason: Reason, named: str
) -> None:
    finding = only(check_sql(session, sql))
    assert finding.reason == reason
    assert named in finding.message


@pytest.mark.parametrize(
    ("body", "reason", "named"),
    [
        ("x = 1\nreturn {}['a']", Reason.PYTHON_RAISED, "query.py, line 6: KeyError: 'a'"),
        ("return payments.select('usr')", Reason.MISSING_COLUMN, "query.py, line 5: "),
        ("return payments.usr", Reason.MISSING_COLUMN, '"user"'),
        ("return 3", Reason.NOT_A_DATA_FRAME, "int"),
        ("return spark.range(3)", Reason.NOT_STREAMING, "streams"),
        ("return payments.count()", Reason.UNSUPPORTED, "query.py, line 5: "),
        ("return payments.withWatermark('at', '5 seconds')", Reason.OWN_WATERMARK, "at"),
        ("return payments.select(F.current_timestamp().alias('t'))", Reason.WALL_CLOCK, "current"),
        (
            "import time\nreturn payments.select(F.lit(time.monotonic()).alias('t'))",
            Reason.UNSTABLE_QUERY,
            "each time",
        ),
        (
            "import sys\nsys.built = getattr(sys, 'built', 0) + 1\n"
            "assert sys.built == 1, 'again'\nreturn payments",
            Reason.PYTHON_RAISED,
            "again",
        ),
        (
            "return visits.groupBy('user').applyInPandasWithState("
            "print, 'user STRING', 'n BIGINT', 'append', 'ProcessingTimeTimeout')",
            Reason.PROCESSING_TIME,
            "applyInPandasWithState",
        ),
        (
            "return visits.groupBy('user').applyInPandasWithState("
            "print, 'user STRING', 'n BIGINT', 'complete', 'NoTimeout')",
            Reason.COMPLETE_MODE,
            "mode",
        ),
        (
            "from pyspark.sql.streaming import StatefulProcessor\n"
            "class Counter(StatefulProcessor):\n"
            "    init = handleInputRows = close = print\n"
            "return visits.groupBy('user').transformWithState("
            "Counter(), 'user STRING', 'Complete', 'None')",
            Reason.COMPLETE_MODE,
            "transformWithState",
        ),
        ("return visits.dropDuplicates(['amount'])", Reason.GROUPING_NOT_KEYED, "visits.user"),
        (
            "return visits.join(spark.read.text(__file__), F.col('value') == F.col('user'))",
            Reason.CHANGING_TABLE,
            "text",
        ),
        (
            "other = spark.readStream.format('rate').load()\n"
            "return visits.join(other, F.col('value') == F.col('amount'))",
            Reason.FOREIGN_STREAM,
            "rate",
        ),
        (
            "return payments.join(refunds, F.expr('user = payer'))"
            ".select('user', payments.at.alias('a'), refunds.at.alias('b'))"
            ".dropDuplicates(['user', 'a'])",
            Reason.UNSUPPORTED,
            "two columns carry a watermark",
        ),
    ],
)
def test_unsupported_python_is_refused(
    session: SparkSession, tmp_path: Path, body: str, reason: Reason, named: str
) -> None:
    finding = only(check_python(session, tmp_path / "query.py", body))
    assert finding.reason == reason
    assert named in finding.message


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        (
            "WITH some AS (SELECT user AS u, at FROM payments WHERE amount > 0) "
            "SELECT u, window(at, '2 minutes', '1 minute') AS w, count(*) AS n FROM some "
            "GROUP BY 1, 2",
            "append",
        ),
        (
            "SELECT p.user, r.amount FROM payments p, refunds r, visits v "
            "WHERE p.user = r.payer AND v.user = p.user",
            "append",
        ),
        ("SELECT a.user FROM payments a JOIN payments b ON a.user = b.user", "append"),
        (
            "SELECT who, count(*) AS n FROM (SELECT user AS who FROM payments UNION ALL "
            "SELECT payer FROM refunds) GROUP BY who",
            "update",
        ),
        (
            "SELECT user, name FROM visits JOIN VALUES ('a', 'Ann'), ('b', 'Bob') AS t(id, name) "
            "ON user = id WHERE amount IN (SELECT * FROM VALUES (1), (2))",
            "append",
        ),
        (
            "SELECT user, amount, count(*) AS n FROM visits "
            "GROUP BY GROUPING SETS ((user, amount), (user))",
            "update",
        ),
    ],
)
def test_query_keyed_by_stream_key_is_accepted(session: SparkSession, sql: str, mode: str) -> None:
    verdict = check_sql(session, sql, mode)
    assert not verdict.refused
    assert not verdict.warnings
    assert verdict.fingerprint


def test_python_list_may_be_joined(session: SparkSession, tmp_path: Path) -> None:
    body = "return visits.join(spark.createDataFrame([('a', 1)], 'user STRING, n INT'), 'user')"
    assert not check_python(session, tmp_path / "query.py", body).refused


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_accepted(
    session: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    example = parse_pipeline(yaml.safe_load(path.read_text()))
    assert isinstance(example, Pipeline)
    assert not check_query(session, example).refused


def test_doubts_are_reported_as_warnings(session: SparkSession) -> None:
    sql = "SELECT user, first(amount) AS a, sum(amount / 2) AS b FROM visits GROUP BY user"
    verdict = check_sql(session, sql, "update")
    assert not verdict.refused
    found = {finding.reason for finding in verdict.warnings}
    assert found == {Doubt.ORDER_DEPENDENT, Doubt.FLOATING_POINT}


def test_fingerprint_distinguishes_queries(session: SparkSession) -> None:
    def taken(what: str, where: str, window: str, source: str = "payments p") -> str:
        grouping = f"GROUP BY user, window(at, '{window}')"
        text = " ".join(["SELECT user,", what, "AS x FROM", source, "WHERE", where, grouping])
        return built_fingerprint(session, text)

    base = taken("sum(amount)", "amount > 1", "1 minute")
    assert base == taken("sum(amount)", "amount > 1", "1 minute", "payments AS other")
    others = {
        taken("max(amount)", "amount > 1", "1 minute"),
        taken("sum(amount * 100)", "amount > 1", "1 minute"),
        taken("sum(amount)", "amount > 2", "1 minute"),
        taken("sum(amount)", "amount > 1", "2 minutes"),
        taken("sum(amount)", "user IN ('#1', '#2')", "1 minute"),
        taken("sum(amount)", "user IN ('#1', '#3')", "1 minute"),
    }
    assert len(others) == 6
    assert base not in others


def test_fingerprint_distinguishes_streams_and_literal_rows(session: SparkSession) -> None:
    def taken(join: str) -> str:
        return built_fingerprint(session, f"SELECT * FROM payments {join}")  # noqa: S608

    found = [
        taken("JOIN (SELECT user AS u FROM visits) ON user = u"),
        taken("JOIN (SELECT payer AS u FROM refunds) ON user = u"),
        taken("JOIN VALUES ('a') AS t(u) ON user = u"),
        taken("JOIN VALUES ('b') AS t(u) ON user = u"),
        taken("WHERE user IN (SELECT * FROM VALUES ('a'))"),
        taken("WHERE user IN (SELECT * FROM VALUES ('b'))"),
    ]
    assert len(set(found)) == 6


def test_fingerprint_covers_code_of_python_query(session: SparkSession, tmp_path: Path) -> None:
    def taken(body: str) -> str:
        function = f"double = F.udf(lambda x: {body}, 'BIGINT')\n"
        text = f"{function}return visits.select('user', double('amount').alias('d'))"
        return check_python(session, tmp_path / "query.py", text).fingerprint

    assert taken("2 * x") == taken("2*x")
    assert taken("2 * x") != taken("3 * x")
