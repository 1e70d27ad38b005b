"""Creates a class archive, which makes the JVM start faster.

`python -m tandem_runtime.spark.jvm.class_archive` creates the one for this Java and these jars in
the user's cache, once. It is optional.
"""

import sys
import tempfile
from pathlib import Path
from typing import cast

import pyarrow as pa

from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.model.spec import Spark
from tandem_runtime.spark.epochs.engine import Engine
from tandem_runtime.spark.epochs.failure import EngineFailure
from tandem_runtime.spark.jvm.java import archive_path, find_java
from tandem_runtime.spark.jvm.launch import JAVA_OPTIONS, start_driver

_KEPT = 3

# Maintenance would run after Spark has ended, while the archive is written, and print a stack
# trace.
_NO_MAINTENANCE = ("spark.sql.streaming.stateStore.maintenanceInterval", "1h")

# Loads the classes that most queries need: event time, a stateful aggregate, a join.
_TYPICAL = {
    "apiVersion": "tandem.dev/v1alpha1",
    "kind": "StreamPipeline",
    "metadata": {"name": "archive"},
    "spec": {
        "streams": [
            {
                "name": name,
                "schema": f"{name}_key STRING, amount DECIMAL(10,2), {name}_at TIMESTAMP",
                "key": [f"{name}_key"],
                "watermark": {"column": f"{name}_at", "delay": "10s"},
                "source": {"http": {}},
            }
            for name in ("l", "r")
        ],
        "query": {
            "sql": "SELECT l_key, window(l_at, '1 minute') AS minute, count(*) AS n "
            "FROM l JOIN r ON l_key = r_key AND l_at = r_at "
            "GROUP BY l_key, window(l_at, '1 minute')",
            "outputMode": "append",
        },
        "sinks": [{"name": "none", "console": {}}],
    },
}


def main() -> None:
    """Create the archive unless it exists; print its path."""
    sys.stdout.write(f"{make_archive()}\n")


def make_archive() -> Path:
    """Create the archive unless it exists. Takes half a minute.

    Raises:
        NoJava, LaunchFailed: the JVM cannot be started.
        OSError: the cache cannot be written.
    """
    archive = archive_path(find_java())
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        fresh = Path(scratch, "fresh.jsa")
        spark = Spark(conf=((JAVA_OPTIONS, f"-XX:ArchiveClassesAtExit={fresh}"), _NO_MAINTENANCE))
        driver = start_driver(spark, Path(scratch, "spark"))
        engine = Engine(_pipeline(), Path(scratch, "inbox"), _NoEvents(), session=driver.session)
        engine.boot()
        # The JVM writes the archive only when it ends gracefully.
        driver.leave()
        fresh.replace(archive)
    _forget_old(archive.parent)
    return archive


def _forget_old(directory: Path) -> None:
    """Remove all but the newest archives: every change of a jar leaves one of 170 MB behind."""
    archives = sorted(directory.glob("*.jsa"), key=lambda path: path.stat().st_mtime)
    for path in archives[:-_KEPT]:
        path.unlink(missing_ok=True)


def _pipeline() -> Pipeline:
    return cast("Pipeline", parse_pipeline(_TYPICAL))


class _NoEvents:
    """Receives no events: no epoch runs after the warm-up."""

    def result(self, epoch: int, payload: pa.Buffer, size: int, digest: int, rows: int) -> None:
        """Never called."""

    def committed(self, epoch: int) -> None:
        """Never called."""

    def progress(self, late_dropped: int, batch_ms: float) -> None:
        """Never called."""

    def failed(self, error: EngineFailure) -> None:
        """Never called."""


if __name__ == "__main__":
    main()
