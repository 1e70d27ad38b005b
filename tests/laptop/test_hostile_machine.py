"""A machine without room on the disk, and one without Java.

A port that is in use cannot be met with: every process takes one that the system chooses.
"""

import os
import time
from pathlib import Path
from typing import Any

from tests.examples.recount import Books, counts_per_key
from tests.laptop.harness import Document, Run
from tests.laptop.output import Output

from tandem.local.store.directory import Directory
from tandem_core.model.pipeline import Refusal, parse_pipeline
from tandem_runtime.sources.generator.partition import generated

ROWS = 40_000
COUNTS = "SELECT user, count(*) AS n, sum(amount) AS total FROM payments GROUP BY user"
DISK = 96 * 2**20

OWN_MOUNTS = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-Ur", "--mount"]
"""A small disk that only the pipeline sees, and that is gone with it."""


def manifest() -> Document:
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "counts"},
        "spec": {
            "streams": [
                {
                    "name": "payments",
                    "schema": "user STRING, amount BIGINT",
                    "key": ["user"],
                    "source": {"generator": {"rowsPerSecond": 2000, "keys": 200, "rows": ROWS}},
                }
            ],
            "query": {"sql": COUNTS, "outputMode": "update"},
            "pairs": {"count": 1, "replicas": 1},
            "sinks": [{"name": "out", "files": {"path": "out", "format": "parquet"}}],
        },
    }


def payments() -> Any:
    parsed = parse_pipeline(manifest())
    assert not isinstance(parsed, Refusal)
    return generated(parsed.spec.streams[0], 0, ROWS)


def test_full_disk_is_reported_and_survived(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    script = f'mount -t tmpfs -o size={DISK} none {state} && exec "$@"'
    output = Output(tmp_path / "out")
    with Run(
        tmp_path, manifest(), state=state, wrapper=[*OWN_MOUNTS, "sh", "-c", script, "sh"]
    ) as run:
        inside = Path(f"/proc/{run.supervisor.pid}/root{state}")
        run.directory = Directory(inside)
        run.until(lambda: output.last() >= 3, 120, "some epochs are delivered")
        ballast = inside / "ballast"
        run.until(lambda: fills(ballast) and is_told(run.said), 60, "it is told")
        run.until(lambda: fills(ballast) and stands_still(output), 60, "delivery stops")
        ballast.unlink()
        assert run.supervisor.wait(120) == 0
    counts_per_key(Books({"payments": payments()}, output.table()))


def is_told(said: Path) -> bool:
    return "No space left on device" in said.read_text()


def stands_still(output: Output) -> bool:
    return time.time() - output.deliveries()[-1].at > 3


def fills(path: Path) -> bool:
    """Take all room that is left, also what was given free since; true, so that it goes on."""
    with path.open("ab", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return True


def test_missing_java_is_reported_with_remedy(tmp_path: Path) -> None:
    nowhere = tmp_path / "bin"
    nowhere.mkdir()
    with Run(tmp_path, manifest(), environment={"PATH": str(nowhere), "JAVA_HOME": ""}) as run:
        code = run.supervisor.wait(50)
    assert code == 1
    assert "Java 17" in run.said.read_text()
    assert not run.directory.path.exists()
