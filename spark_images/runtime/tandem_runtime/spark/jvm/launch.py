"""Starts a JVM that ends with this process, and a Spark session in it."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tandem_core.model.spec import Spark
from tandem_runtime.spark.jvm.java import archive_path, class_path, find_java, flags

_MIB = 2**20

# The minimum heap that Spark accepts without settings meant for its own tests, with some margin.
_LEAST_HEAP = 512 * _MIB

# Measured at the default of 1 GiB: classes, code and threads of the JVM take about 250 MiB, the
# Python process about 150 MiB, and Arrow's buffers are outside the heap too.
_OUTSIDE_HEAP = 512 * _MIB

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting that passes further flags to the JVM."""

STATE_PARTITIONS = "spark.sql.shuffle.partitions"
"""The setting for the number of state partitions; a checkpoint keeps that of its first batch."""


class LaunchFailed(Exception):
    """The JVM did not start; its error messages are on the standard error stream."""


@dataclass(frozen=True, slots=True)
class Jvm:
    """A running JVM: its process, and the port and secret of its Py4J server."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str


@dataclass(frozen=True, slots=True)
class SparkDriver:
    """A Spark session and its JVM."""

    session: SparkSession
    jvm: Jvm

    def stop(self) -> None:
        """Kill the JVM without waiting for Spark's shutdown.

        Checkpoints stay intact. Another driver may be started afterwards.
        """
        self._silence_disconnect()
        self.jvm.process.kill()
        self._forget_context()

    def leave(self) -> None:
        """End the JVM gracefully, which takes seconds."""
        self._silence_disconnect()
        with suppress(Py4JError, OSError):
            self.session.sparkContext._jvm.System.exit(0)  # type: ignore[union-attr]
        self._forget_context()

    def _silence_disconnect(self) -> None:
        """Keep PySpark from printing an error when the JVM closes its connections."""
        server = self.session.sparkContext._accumulatorServer
        server.handle_error = _ignore_error  # type: ignore[method-assign]
        server.shutdown()

    def _forget_context(self) -> None:
        """Make PySpark forget the context of the ended JVM; it supports one at a time."""
        self.jvm.process.communicate()
        SparkContext._gateway._gateway_client.is_connected = False  # type: ignore[union-attr]
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None


def heap_bytes(memory: int) -> int:
    """Return the size of the heap for a replica's memory.

    One eighth of the memory above 1 GiB is left to buffers and Python workers, which grow with it.
    """
    extra = max(0, memory - 1024 * _MIB)
    return max(_LEAST_HEAP, memory - _OUTSIDE_HEAP - extra // 8)


def settings(spark: Spark) -> dict[str, str]:
    """Return Spark's settings; the user's entries override the framework's.

    The framework's own must be equal in both twins. The number of state partitions equals that of
    the cores: another one costs about 11 ms per epoch and helps only if a core is free for it. It
    is part of a checkpoint and cannot change for an existing one.
    """
    own = {
        "spark.master": f"local[{spark.cores}]",
        "spark.app.name": "tandem",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Each batch allocates new pages and broadcasts some settings; the defaults allocate and
        # clear megabytes for a few hundred rows.
        "spark.buffer.pageSize": "1m",
        "spark.broadcast.blockSize": "256k",
        "spark.broadcast.compress": "false",
        # Shuffle files are removed when their objects are collected, which is rare by default.
        "spark.cleaner.periodicGC.interval": "5min",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        STATE_PARTITIONS: str(spark.cores),
        "spark.sql.debug.maxToStringFields": "10000",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.multipleWatermarkPolicy": "min",
        "spark.sql.streaming.pollingDelay": "1ms",
        "spark.sql.streaming.minBatchesToRetain": "100",
        # A batch runs again only after a restart, which reads its state from files.
        "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
        "spark.sql.streaming.stopTimeout": "10s",
        # A copy of the state replays the changes since the last snapshot.
        "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution"
        ".streaming.checkpointing.FileSystemBasedCheckpointFileManager",
        "spark.hadoop.fs.file.impl": "dev.tandem.spark.QuietFileSystem",
    }
    return {**own, **dict(spark.conf)}


def state_partitions(spark: Spark) -> int:
    """Return how many state partitions a new checkpoint gets."""
    return int(settings(spark)[STATE_PARTITIONS])


def native_thread(session: SparkSession) -> int:
    """Return the system's id of the JVM's thread that works for the calling thread."""
    mover = session.sparkContext._jvm.dev.tandem.spark.StateMover  # type: ignore[union-attr]
    thread: int = mover.nativeThread()
    return thread


def start_driver(spark: Spark, scratch: Path) -> SparkDriver:
    """Start a JVM and a session. Blocks for some seconds.

    Args:
        spark: cores, memory and settings.
        scratch: directory for temporary files of Spark and Java; emptied first.

    Raises:
        NoJava: there is no Java, or the Java module was not built.
        LaunchFailed: the JVM ended before it answered.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    entries = settings(spark)
    java = find_java()
    options = [
        *flags(archive_path(java)),
        f"-Xmx{heap_bytes(spark.memory.count)}",
        f"-Djava.io.tmpdir={scratch}",
        f"-XX:ErrorFile={scratch.parent}/jvm-crash-%p.log",
        *shlex.split(entries.pop(JAVA_OPTIONS, "")),
    ]
    jvm = start_jvm(java, options, scratch)
    return SparkDriver(_session(jvm, entries), jvm)


def start_jvm(java: Path, options: list[str], scratch: Path) -> Jvm:
    """Start the JVM and wait until it answers.

    Its standard input is a pipe from this process: it ends when this process does, for any reason.
    It ignores signals from the terminal or the process group, so that it ends with this process and
    not before. Its standard output goes to the error stream.
    """
    script = 'trap "" INT TERM HUP; exec "$@" 3>&1 1>&2'
    command = [str(java), *options, "dev.tandem.spark.Driver", "/dev/fd/3"]
    process = subprocess.Popen(  # noqa: S603  (the command is made here)
        ["/bin/sh", "-c", script, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(scratch),
    )
    with cast("IO[bytes]", process.stdout) as handover:
        answer = handover.readline().split()
    if not answer:
        process.communicate()
        raise LaunchFailed(f"the JVM exited with code {process.returncode} before it answered")
    return Jvm(process, int(answer[0]), answer[1].decode())


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment of the JVM and its Python workers, independent of the machine."""
    foreign = ("SPARK_", "PYSPARK_")
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
    return {
        **inherited,
        "CLASSPATH": os.pathsep.join(map(str, class_path())),
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }


def _ignore_error(request: object, client_address: object) -> None:
    """Ignore an error of a connection."""
    del request, client_address


def _session(jvm: Jvm, entries: Mapping[str, str]) -> SparkSession:
    # PySpark reads these only from the environment. The seed makes Python's hashes, and so the
    # order of sets, equal in the workers of both twins.
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONHASHSEED="0")
    gateway = _gateway(jvm)
    conf = SparkConf(loadDefaults=False, _jvm=gateway.jvm)
    conf.setAll(list(entries.items()))
    context = gateway.jvm.dev.tandem.spark.TrustingContext.start(conf._jconf)
    return SparkSession(SparkContext(conf=conf, gateway=gateway, jsc=context))


def _gateway(jvm: Jvm) -> Any:
    contact = {"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret}
    os.environ.update(contact)
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in contact:
            del os.environ[name]
