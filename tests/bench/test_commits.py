"""Two trees side by side: each runs its own code, and the comparison tells what got worse."""

import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.streaming.commits import Full, Load, Runs, Steady, by_member, describe
from bench.streaming.oracle import Verdict, counted_rows
from bench.streaming.tandem_run import Installation
from bench.streaming.trees import Side, make_environment, source_roots
from bench.streaming.waiting import RunFailed

LOAD = Load(tries=3, rows=10, keys=10, pairs=1, rate=5000, seconds=1.0, interval_ms=250)
RIGHT = Verdict(fed=10, delivered=5, epochs=4, missing=0, surplus=0, skipped=0)
FULL = Full(1000.0, {"split": 1.0, "replica": 2.0, "merge": 0.1}, {}, RIGHT)
STEADY = Steady(0.3, 0.5, 0.9, {"split": 0.1, "replica": 0.7, "merge": 0.03}, RIGHT)
LIMITED = ("CPU split", "CPU replica", "CPU merge", "latency p99")


def runs(*full: Full, p99: tuple[float, ...] = (0.5,)) -> Runs:
    side = Side("side", "0" * 40, Installation(Path("tandem")))
    return Runs(side, list(full), [replace(STEADY, p99=each) for each in p99])


def with_cpu(member: str, *values: float) -> list[Full]:
    return [replace(FULL, cpu={**FULL.cpu, member: value}) for value in values]


def judged(base: Runs, new: Runs) -> dict[str, str]:
    """What stands in the table's last column, for each line that has a limit."""
    cells = [line.split("|") for line in describe(base, new, LOAD).splitlines() if "|" in line]
    return {
        name: row[-2].strip()
        for row in cells
        for name in LIMITED
        if row[1].strip().startswith(name)
    }


def test_equal_results_are_within_limits() -> None:
    assert judged(runs(FULL), runs(FULL)) == dict.fromkeys(LIMITED, "yes")


@pytest.mark.parametrize("member", ["split", "replica", "merge"])
@pytest.mark.parametrize(("factor", "said"), [(1.04, "yes"), (1.06, "NO"), (0.5, "yes")])
def test_cpu_time_of_each_member_is_limited(member: str, factor: float, said: str) -> None:
    new = runs(*with_cpu(member, FULL.cpu[member] * factor))
    assert judged(runs(FULL), new) == {
        name: said if name == f"CPU {member}" else "yes" for name in LIMITED
    }


def test_medians_are_compared_instead_of_maxima() -> None:
    new = runs(*with_cpu("split", 1.0, 9.0, 1.0), p99=(0.6, 0.6, 0.1))
    found = judged(runs(FULL), new)
    assert found["CPU split"] == "yes"
    assert found["latency p99"] == "NO"


def test_missing_result_is_reported_as_not_measured() -> None:
    told = describe(runs(FULL), runs(p99=()), LOAD)
    assert judged(runs(FULL), runs(p99=())) == {}
    assert told.count("NOT MEASURED") >= len(LIMITED)


def test_replica_cpu_includes_its_jvm() -> None:
    used = {"split": 1.0, "replica": 0.5, "JVM": 4.0, "merge": 0.25, "supervisor": 7.0}
    assert by_member(used) == {"split": 1.0, "replica": 4.5, "merge": 0.25}


@pytest.mark.parametrize("kind", ["split", "replica", "JVM", "merge"])
def test_unrecognised_member_fails_the_run(kind: str) -> None:
    used = {"split": 1.0, "replica": 0.5, "JVM": 4.0, "merge": 0.25, "supervisor": 7.0}
    del used[kind]
    with pytest.raises(RunFailed, match=kind):
        by_member(used)


def test_rows_are_counted_from_last_result_per_key(tmp_path: Path) -> None:
    assert counted_rows(tmp_path) == 0
    for epoch, counts in enumerate([{"a": 1, "b": 2}, {"a": 4}]):
        result = pa.table({"user": list(counts), "n": list(counts.values())})
        pq.write_table(result, tmp_path / f"{epoch:012d}.parquet")
    assert counted_rows(tmp_path) == 6


def test_environment_imports_code_of_its_own_tree(tmp_path: Path) -> None:
    package = tmp_path / "tree" / "src" / "tandem"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    text = '[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    roots = source_roots(tmp_path / "tree", tomllib.loads(text))
    python = make_environment(tmp_path / "environment", roots)
    code = "import tandem, numpy, importlib.util; print(tandem.__file__)\n"
    code += "print(importlib.util.find_spec('tandem_runtime'))"
    told = subprocess.run(
        [str(python), "-c", code], env={}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told == [str(package / "__init__.py"), "None"]
