"""Queries in Python: state of one's own, functions by value, the same hashes in every worker."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.harness import Replica, pipeline, stream

from tandem_runtime.spark.epochs.failure import EngineError

Make = Callable[..., Replica]


PAYMENTS = stream("payments", "user STRING, amount BIGINT, at TIMESTAMP", "user")
RECORDS = Path(__file__).parents[2] / "examples" / "records.py"


def test_state_in_python_survives_restart(replica: Make, tmp_path: Path) -> None:
    query = {"python": {"file": str(RECORDS), "function": "build"}}
    records = pipeline(query, PAYMENTS, mode="update")
    one = replica(records, tmp_path / "checkpoint")
    first = one.run(1, {"payments": [("a", 3, None), ("b", 5, None), ("a", 1, None)]})
    assert first.rows == [("a", 3, 1), ("b", 5, 1)]
    assert one.run(2, {"payments": [("a", 2, None), ("b", 9, None)]}).rows == [("b", 9, 2)]
    one.stop()
    again = replica(records, tmp_path / "checkpoint")
    assert again.run(3, {"payments": [("a", 4, None)]}).rows == [("a", 4, 2)]


def test_functions_of_user_file_reach_workers(replica: Make, tmp_path: Path) -> None:
    file = tmp_path / "query.py"
    file.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from pyspark.sql.functions import udf\n"
        "@dataclass\n"
        "class Doubler:\n"
        "    factor: int = 2\n"
        "    def __call__(self, x: int) -> int:\n"
        "        return x * self.factor\n"
        "DOUBLER = Doubler()\n"
        "twice = udf(lambda x: DOUBLER(x), 'bigint')\n"
        "name = udf(lambda x: str(hash(x)), 'string')\n"
        "def build(streams):\n"
        "    p = streams['payments']\n"
        "    return p.select('user', twice('amount').alias('n'), name('user').alias('h'))\n"
    )
    query = {"python": {"file": str(file), "function": "build"}}
    rows = replica(pipeline(query, PAYMENTS)).run(1, {"payments": [("a", 21, None)]}).rows
    with_seed = {**os.environ, "PYTHONHASHSEED": "0"}
    ask = [sys.executable, "-c", "print(hash('a'))"]
    same = subprocess.run(ask, env=with_seed, capture_output=True, text=True, check=True)
    assert rows == [("a", 42, same.stdout.strip())]


def test_exception_of_user_function_is_users_failure(replica: Make, tmp_path: Path) -> None:
    file = tmp_path / "query.py"
    file.write_text(
        "from pyspark.sql.functions import udf\n"
        "def build(streams):\n"
        "    wrong = udf(lambda x: 1 // 0, 'int')\n"
        "    return streams['payments'].select(wrong('amount').alias('n'))\n"
    )
    one = replica(pipeline({"python": {"file": str(file), "function": "build"}}, PAYMENTS))
    one.begin(1, {"payments": [("a", 21, None)]})
    one.await_(lambda told: told.failure is not None)
    assert one.told.failure is not None
    assert one.told.failure.is_users
    assert "ZeroDivisionError" in one.told.failure.message


@pytest.mark.parametrize(
    "text",
    ["def build(streams):\n    return 1\n", "def build(streams):\n    raise KeyError('x')\n"],
)
def test_function_that_returns_no_frame_is_refused(
    replica: Make, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "query.py"
    file.write_text(text)
    with pytest.raises(EngineError) as refused:
        replica(pipeline({"python": {"file": str(file), "function": "build"}}, PAYMENTS))
    assert refused.value.failure.is_users
