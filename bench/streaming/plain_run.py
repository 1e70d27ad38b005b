"""Plain Structured Streaming under a supervisor that notices at once when it has died."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pyspark
from bench.streaming.rows import SCHEMA, SQL, STREAM

from tandem_runtime.spark.jvm.launch import heap_bytes

PROGRAM = Path(__file__).with_name("plain_query.py")


class Launch(Enum):
    """How Spark is started."""

    STOCK = "plain Spark, stock launch"
    TUNED = "plain Spark, our launch"


@dataclass(frozen=True)
class Tools:
    """Where a driver finds what it is made of."""

    python: Path
    submit: Path
    program: Path


HERE = Tools(
    python=Path(sys.executable),
    submit=Path(pyspark.__file__).parent / "bin" / "spark-submit",
    program=PROGRAM,
)


@dataclass(frozen=True)
class PlainSettings:
    """What a plain query is told."""

    launch: Launch
    trigger_ms: int = 0
    """Milliseconds between micro-batches; 0 means one after the other."""
    cores: int = 1
    memory: int = 2**30
    """Of the whole driver; the heap is derived from it as for a replica."""
    max_files: int = 0

    def command(self, place: Path, source: Path, tools: Tools = HERE) -> list[str]:
        """The command line of the driver."""
        options = [
            *("--input", str(source), "--output", str(place / "out")),
            *("--checkpoint", str(place / "checkpoint")),
            *("--schema", SCHEMA, "--stream", STREAM, "--sql", SQL),
            *("--trigger-ms", str(self.trigger_ms), "--max-files", str(self.max_files)),
        ]
        if self.launch is Launch.TUNED:
            tuned = ["--tuned", "--cores", str(self.cores), "--memory", str(self.memory)]
            return [str(tools.python), str(tools.program), *options, *tuned]
        return [str(tools.submit), *self._stock_options(), str(tools.program), *options]

    def _stock_options(self) -> list[str]:
        """What any sensible user sets: with 200 state partitions a batch takes many seconds."""
        return [
            *("--master", f"local[{self.cores}]"),
            *("--driver-memory", f"{heap_bytes(self.memory) // 2**20}m"),
            *("--conf", f"spark.sql.shuffle.partitions={self.cores}"),
            *("--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.sql.session.timeZone=UTC"),
        ]


def environment_of(tools: Tools) -> dict[str, str]:
    """What a driver finds in its environment."""
    return {
        "PYSPARK_PYTHON": str(tools.python),
        "PYSPARK_DRIVER_PYTHON": str(tools.python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONWARNINGS": "ignore",
    }


class PlainRun:
    """A driver that is started again as soon as it has ended, until it is stopped."""

    def __init__(self, settings: PlainSettings, place: Path, source: Path) -> None:
        self.output = place / "out"
        self.log = place / "driver.log"
        self._command = settings.command(place, source)
        self._stopping = False
        self._process = self._start()
        self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int:
        """The process that leads the driver's group."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the driver with everything it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill the driver for good."""
        self._stopping = True
        if self._process.poll() is None:
            self.kill()
        self._watcher.join()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **environment_of(HERE)}
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own program
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def _watch(self) -> None:
        while True:
            self._process.wait()
            if self._stopping:
                return
            self._process = self._start()


@contextmanager
def plain_run(settings: PlainSettings, place: Path, source: Path) -> Iterator[PlainRun]:
    """A running plain query whose files are in `place`."""
    place.mkdir(parents=True)
    run = PlainRun(settings, place, source)
    try:
        yield run
    finally:
        run.stop()
