"""Trying a mutant: first the unit tests, then the simulator, always in a copy of the tree."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutation.mutants import Mutant

PROTOCOL = Path("spark_images/runtime/tandem_runtime/protocol")
ROOTS = ("core", "spark_images/runtime", "tools")
COPIED = (
    "core/tandem_core",
    "spark_images/runtime/tandem_runtime",
    "tools/tandem_simulator",
    "tests/protocol",
    "tests/wire",
)
UNIT_TESTS = ("tests/protocol", "tests/wire/test_golden.py")

UNIT, SIMULATION, SURVIVED = "unit tests", "simulation", "survived"

MEMORY = 3 * 2**30
"""A mutant that decides for ever would fill the machine."""
UNIT_SECONDS = 120
SIMULATION_SECONDS = 240


class Workshop:
    """A copy of the tree in which one mutant at a time is tried."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.directory = directory
        for name in COPIED:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / name, directory / name, ignore=ignored)
        for name in ("pyproject.toml", "tests/repeatable.py", "tests/mutation/simulate.py"):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, directory / name)
        # The diagrams of states are compared with the tables.
        shutil.copytree(root / "docs", directory / "docs")
        self._python("-m", "compileall", "-q", *COPIED, seconds=UNIT_SECONDS)

    def try_out(self, mutant: Mutant, schedules: int, seed: int) -> str:
        """What finds the mistake, if anything does."""
        path = self.directory / PROTOCOL / mutant.module
        source, times = path.read_bytes(), path.stat()
        path.write_bytes(mutant.applied(source))
        # Compiled files are compared by whole seconds and size.
        os.utime(path, (times.st_atime + 100, times.st_mtime + 100))
        try:
            if not self._unit_tests_pass(mutant):
                return UNIT
            return SURVIVED if self.simulation_passes(schedules, seed) else SIMULATION
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _unit_tests_pass(self, mutant: Mutant) -> bool:
        module = Path(mutant.module)
        own = Path("tests/protocol") / module.with_name(f"test_{module.name}")
        first = [str(own)] if (self.directory / own).exists() else []
        return (not first or self.unit_tests_pass(*first)) and self.unit_tests_pass()

    def unit_tests_pass(self, *where: str) -> bool:
        """Run unit tests up to the first failure."""
        plugins = ("-p", "no:cacheprovider", "-p", "no:xdist")
        options = ("-x", "-q", "--assert=plain", "--tb=no", "-o", "timeout=20")
        tests = where or UNIT_TESTS
        return self._python("-m", "pytest", *plugins, *options, *tests, seconds=UNIT_SECONDS)

    def simulation_passes(self, schedules: int, seed: int) -> bool:
        """Run simulated schedules up to the first violation."""
        script = "tests/mutation/simulate.py"
        return self._python(script, str(schedules), str(seed), seconds=SIMULATION_SECONDS)

    def where_the_protocol_is(self) -> str:
        """The file that an import in a trial finds."""
        code = "import tandem_runtime.protocol as p, tandem_simulator as s; print(p.__file__)"
        command = [sys.executable, "-B", "-c", code]
        found = subprocess.run(
            command, cwd=self.directory, env=self._environment(), capture_output=True, check=True
        )
        return found.stdout.decode().strip()

    def _python(self, *arguments: str, seconds: int) -> bool:
        """Run something in the copy; taking for ever counts as failing."""
        command = [sys.executable, *([] if "compileall" in arguments else ["-B"]), *arguments]
        try:
            done = subprocess.run(
                command,
                cwd=self.directory,
                env=self._environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
                preexec_fn=_bound_memory,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(str(self.directory / root) for root in ROOTS)
        return {**os.environ, "PYTHONPATH": path}


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
