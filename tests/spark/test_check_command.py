"""The check as the command that is run before a pipeline starts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tandem_core.contract.exit_codes import REFUSED

QUERY = """
import os
print("from Python")
os.system("echo from a process")

def build(streams):
    raise ValueError("no luck")
"""


def run_check(
    directory: Path, query: dict[str, Any], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    manifest = {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "checked"},
        "spec": {
            "streams": [
                {
                    "name": "payments",
                    "schema": "user STRING, amount BIGINT, at TIMESTAMP",
                    "key": ["user"],
                    "source": {"files": {"path": "data", "format": "json"}},
                }
            ],
            "query": query,
            "sinks": [{"name": "out", "console": {}}],
        },
    }
    document = {"manifest": manifest, "base": str(directory)}
    (directory / "pipeline.json").write_text(json.dumps(document))
    command = [sys.executable, "-m", "tandem_runtime.spark.checks.check", str(directory)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=environment
    )


def test_complete_mode_is_refused(tmp_path: Path) -> None:
    sql = "SELECT user, count(*) AS n FROM payments GROUP BY user"
    done = run_check(tmp_path, {"sql": sql, "outputMode": "complete"})
    assert done.returncode == REFUSED
    (finding,) = json.loads(done.stdout)["refused"]
    assert finding["reason"] == "CompleteMode"
    assert finding["hint"]


def test_standard_output_contains_only_verdict(tmp_path: Path) -> None:
    (tmp_path / "query.py").write_text(QUERY)
    done = run_check(tmp_path, {"python": {"file": "query.py", "function": "build"}})
    assert done.returncode == REFUSED
    answer = json.loads(done.stdout)
    assert set(answer) == {"refused", "warnings", "fingerprint"}
    (finding,) = answer["refused"]
    assert finding["reason"] == "PythonRaised"
    assert "query.py, line 7: ValueError: no luck" in finding["message"]


def test_check_without_java_names_required_version(tmp_path: Path) -> None:
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    done = run_check(tmp_path, {"sql": "SELECT user FROM payments"}, nowhere)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Java 17" in done.stderr
