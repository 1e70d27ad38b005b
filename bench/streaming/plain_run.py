"""Runs plain Structured Streaming under a supervisor that notices its death at once."""

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
from bench.streaming.report import ROOT
from bench.streaming.rows import SCHEMA, SQL, STREAM

from tandem_runtime.spark.jvm.launch import heap_bytes

PROGRAM = Path(__file__).with_name("plain_query.py")


class Launch(Enum):
    """How Spark is started."""

    STOCK = "plain Spark, stock launch"
    TUNED = "plain Spark, our launch"


@dataclass(frozen=True)
class Tools:
    """Paths of the programs and libraries of a driver."""

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
    """Parameters of a plain query."""

    launch: Launch
    trigger_ms: int = 0
    """Milliseconds between micro-batches; 0 starts each right after the last."""
    cores: int = 1
    memory: int = 2**30
    """Memory of the whole driver; the heap is derived from it as for a replica."""
    max_files: int = 0
    rocksdb: bool = False
    """Whether the state is kept in RocksDB instead of on the heap, with the stock launch."""
    repartition: int = 0
    """State partitions that the checkpoint gets before the query starts; 0 leaves it alone."""

    def command(self, place: Path, source: Path, tools: Tools = HERE) -> list[str]:
        """The driver's command line."""
        options = [
            *("--input", str(source), "--output", str(place / "out")),
            *("--checkpoint", str(place / "checkpoint")),
            *("--schema", SCHEMA, "--stream", STREAM, "--sql", SQL),
            *("--trigger-ms", str(self.trigger_ms), "--max-files", str(self.max_files)),
            *("--stop-file", str(stop_file(place)), "--repartition", str(self.repartition)),
        ]
        if self.launch is Launch.TUNED:
            tuned = ["--tuned", "--cores", str(self.cores), "--memory", str(self.memory)]
            return [str(tools.python), str(tools.program), *options, *tuned]
        return [str(tools.submit), *self._stock_options(), str(tools.program), *options]

    def _stock_options(self) -> list[str]:
        """Settings that any user would make; with 200 state partitions a batch takes long."""
        provider = f"{_PROVIDERS}.RocksDBStateStoreProvider"
        store = ("--conf", f"spark.sql.streaming.stateStore.providerClass={provider}")
        return [
            *("--master", f"local[{self.cores}]"),
            *(store if self.rocksdb else ()),
            *("--driver-memory", f"{heap_bytes(self.memory) // 2**20}m"),
            *("--conf", f"spark.sql.shuffle.partitions={self.cores}"),
            *("--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.sql.session.timeZone=UTC"),
        ]


_PROVIDERS = "org.apache.spark.sql.execution.streaming.state"


def stop_file(place: Path) -> Path:
    """The file that asks a query, whose files are in `place`, to stop between two batches."""
    return place / "stop"


def environment_of(tools: Tools) -> dict[str, str]:
    """The driver's environment."""
    return {
        "PYSPARK_PYTHON": str(tools.python),
        "PYSPARK_DRIVER_PYTHON": str(tools.python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONWARNINGS": "ignore",
    }


class PlainRun:
    """A driver that is restarted as soon as it ends, until it is stopped."""

    def __init__(self, settings: PlainSettings, place: Path, source: Path) -> None:
        self.output = place / "out"
        self.log = place / "driver.log"
        self._place = place
        self._source = source
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
        """Kill the driver and all its processes."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def restart_with(self, settings: PlainSettings) -> None:
        """Ask the driver to stop between two batches; the next one has other parameters."""
        self._command = settings.command(self._place, self._source)
        stop_file(self._place).touch()

    def stop(self) -> None:
        """Kill the driver and do not restart it."""
        self._stopping = True
        if self._process.poll() is None:
            self.kill()
        self._watcher.join()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **environment_of(HERE), "PYTHONPATH": str(ROOT)}
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
    """Run a plain query whose files are in `place`."""
    place.mkdir(parents=True)
    run = PlainRun(settings, place, source)
    try:
        yield run
    finally:
        run.stop()
