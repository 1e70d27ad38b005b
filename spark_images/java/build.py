"""Builds the Java module: `python spark_images/java/build.py`.

It compiles against PySpark's jars, so it needs a JDK and PySpark, and neither Maven nor a network.
It does nothing if sources and PySpark are unchanged since the last build.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
JAR = HERE.parent / "runtime" / "tandem_runtime" / "spark" / "jars" / "tandem-spark.jar"
STAMP = JAR.with_suffix(".built-from")

# Spark 4 runs on Java 17 and newer.
RELEASE = "17"

# A fixed time makes builds of the same content reproducible.
BEGINNING_OF_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class CannotBuild(Exception):
    """The build needs a tool or package that is missing; the message says what to do."""


def main() -> None:
    """Build if needed; print whether the jar was built."""
    try:
        built = build()
    except CannotBuild as problem:
        sys.exit(str(problem))
    sys.stdout.write(f"{'built' if built else 'up to date'}: {JAR}\n")


def build() -> bool:
    """Build the jar unless it is up to date; return whether it was built."""
    made_from = _digest()
    if JAR.exists() and STAMP.exists() and STAMP.read_text() == made_from:
        return False
    JAR.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=JAR.parent) as scratch:
        classes = Path(scratch) / "classes"
        _compile(classes)
        fresh = Path(scratch) / JAR.name
        _pack(fresh, (classes, HERE / "resources"))
        fresh.replace(JAR)
    STAMP.write_text(made_from)
    return True


def _digest() -> str:
    digest = hashlib.sha256(f"pyspark {version('pyspark')} release {RELEASE}".encode())
    for path in (*_sources(), *_files(HERE / "resources")):
        digest.update(f"\0{path.relative_to(HERE)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compile(classes: Path) -> None:
    command = [
        *(_javac(), "--release", RELEASE, "-d", str(classes)),
        *("-classpath", f"{_spark_jars()}/*", "-nowarn", "-proc:none"),
        *map(str, _sources()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise CannotBuild(f"the Java module does not compile:\n{done.stderr}")


def _javac() -> str:
    home = os.environ.get("JAVA_HOME")
    in_home = Path(home, "bin", "javac") if home else None
    found = str(in_home) if in_home and in_home.exists() else shutil.which("javac")
    if found is None:
        raise CannotBuild(
            "building the Java module needs a Java compiler, javac, in $JAVA_HOME/bin or in the "
            "path; on Debian or Ubuntu: apt-get install openjdk-17-jdk-headless"
        )
    return found


def _spark_jars() -> Path:
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise CannotBuild("building the Java module needs PySpark: pip install 'tandem[spark]'")
    return Path(package.origin).parent / "jars"


def _pack(jar: Path, roots: tuple[Path, ...]) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for root in roots:
            for path in _files(root):
                name = path.relative_to(root).as_posix()
                archive.writestr(zipfile.ZipInfo(name, BEGINNING_OF_ZIP_TIME), path.read_bytes())


def _sources() -> list[Path]:
    return [path for path in _files(HERE / "src") if path.suffix == ".java"]


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
