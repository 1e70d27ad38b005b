"""A pipeline under `tandem run`, for tests: started, disturbed, waited for, ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import yaml

from tandem.local.store.directory import Directory
from tandem.local.store.intent_file import read_intent
from tandem.local.store.lookup import signal_member
from tandem_core.contract.intent import Intent

TANDEM = Path(sys.executable).with_name("tandem")
POLL_SECONDS = 0.05
SHOWN_LINES = 40

Document = dict[str, Any]


class Run:
    """`tandem run` in a home of its own: manifest, state and results side by side.

    Whatever it started is ended with the block. When the block fails, logs are printed.
    """

    def __init__(
        self,
        home: Path,
        manifest: Document,
        *,
        state: Path | None = None,
        environment: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """`wrapper` is a command that becomes the one that is put after it."""
        self.home = home
        self.directory = Directory(state or home / "state")
        self.said = home / "run.log"
        self._environment = {**os.environ, **(environment or {})}
        self._wrapper = wrapper
        self._manifest = home / "pipeline.yaml"
        self.write(manifest)
        self._supervisor: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            self.print_logs()
        self._end()

    # --- the supervisor -----------------------------------------------------------------------

    def write(self, manifest: Document) -> None:
        """Write the file of the manifest; the next start reads it."""
        self._manifest.write_text(yaml.safe_dump(manifest, sort_keys=False))

    def start(self) -> None:
        """Start `tandem run`, also again over the same directory."""
        run = [str(TANDEM), "run", self._manifest.name, "--dir", str(self.directory.path)]
        with self.said.open("ab") as log:
            self._supervisor = subprocess.Popen(
                [*self._wrapper, *run],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
            )

    @property
    def supervisor(self) -> subprocess.Popen[bytes]:
        """The process of `tandem run`."""
        assert self._supervisor is not None
        return self._supervisor

    def kill_supervisor(self) -> None:
        """Kill it and wait for its end."""
        self.supervisor.kill()
        self.supervisor.wait()

    def stop_in_good_order(self, limit: float = 60) -> int:
        """What Ctrl-C does; the exit code."""
        self.supervisor.send_signal(signal.SIGINT)
        return self.supervisor.wait(limit)

    def completes(self, limit: float) -> Document:
        """Wait for the end of a bounded pipeline; its last status.

        Raises:
            AssertionError: it ended in another way, or left processes behind.
            subprocess.TimeoutExpired: it has not ended.
        """
        code = self.supervisor.wait(limit)
        assert code == 0, f"exit code {code}"
        status = self.status()
        assert status["phase"] == "Completed", status["phase"]
        assert self.processes() == []
        return status

    # --- looking ------------------------------------------------------------------------------

    def status(self) -> Document:
        """The status as the supervisor last wrote it; empty before the first time."""
        try:
            found: Document = json.loads(self.directory.status.read_text())
        except FileNotFoundError:
            return {}
        return found

    def events(self) -> list[Document]:
        """All events so far."""
        try:
            return [json.loads(line) for line in self.directory.events.read_text().splitlines()]
        except FileNotFoundError:
            return []

    def lead(self) -> str | None:
        """The split that leads, as far as the supervisor knows."""
        found: str | None = self._roll().get("lead")
        return found

    def process_of(self, name: str) -> int | None:
        """The process that was started last for a member."""
        found: int | None = self._roll().get("members", {}).get(name, {}).get("pid")
        return found

    def _roll(self) -> Document:
        try:
            found: Document = json.loads(self.directory.members.read_text())
        except FileNotFoundError:
            return {}
        return found

    def members(self, kind: str) -> list[Document]:
        """The members of a kind that have a process."""
        members = self.status().get("members", [])
        return [each for each in members if each["kind"] == kind and each.get("pid")]

    def whole(self) -> bool:
        """Whether delivery is under way, everybody does their part and every pair is paired."""
        status = self.status()
        members = status.get("members", [])
        replicas = Counter(member.get("pair") for member in members)
        everybody = all(member["state"] in {"Running", "Standby"} for member in members)
        paired = all(
            pair["state"] == ("Paired" if replicas[pair["name"]] > 1 else "Alone")
            for pair in status.get("pairs", [])
        )
        return status.get("phase") == "Running" and everybody and paired

    def until(self, condition: Callable[[], bool], limit: float, what: str) -> float:
        """Wait for a condition while the pipeline runs; the seconds that it took."""
        began = time.monotonic()
        while not condition():
            code = self.supervisor.poll()
            waited = time.monotonic() - began
            assert code is None, f"`tandem run` ended with exit code {code} before: {what}"
            assert waited < limit, f"not within {limit:.0f} s: {what}"
            time.sleep(POLL_SECONDS)
        return time.monotonic() - began

    def processes(self) -> list[int]:
        """Everything alive that belongs to the pipeline's directory, the supervisor included."""
        found = (each for each in psutil.process_iter() if each.pid != os.getpid())
        return [each.pid for each in found if self._is_of_this_run(each)]

    def _is_of_this_run(self, process: psutil.Process) -> bool:
        path = str(self.directory.path.resolve())
        try:
            words = [*process.cmdline(), *process.environ().values()]
            return process.status() != psutil.STATUS_ZOMBIE and any(path in word for word in words)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    # --- changing -----------------------------------------------------------------------------

    def command(self, *words: str, limit: float = 300) -> str:
        """Run another `tandem` command on the directory; what it printed.

        Raises:
            AssertionError: it failed.
        """
        done = subprocess.run(
            [str(TANDEM), *words, "--dir", str(self.directory.path)],
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def scale(self, limit: float = 300, **sizes: int) -> float:
        """Change sizes and wait until that is done; the seconds that it took."""
        began = time.monotonic()
        words = [f"{name}={count}" for name, count in sizes.items()]
        self.command("scale", *words, "--wait", f"{limit:.0f}s", limit=limit + 30)
        return time.monotonic() - began

    def intent(self) -> Intent | None:
        """The intent; None before the first start."""
        return read_intent(self.directory.intent)

    # --- disturbing ---------------------------------------------------------------------------

    def signal(self, target: str, number: int) -> tuple[str, int]:
        """Send a signal to a member's process group as `tandem kill` does; its name and process.

        Raises:
            NotFound: nobody is that, or it does not run at the moment.
        """
        return signal_member(self.directory, target, number)

    # --- the end ------------------------------------------------------------------------------

    def print_logs(self) -> None:
        """The last lines of everything that was said, for the report of a failure."""
        for log in [self.said, *sorted(self.directory.path.glob("logs/*.log"))]:
            if log.exists():
                lines = log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
                print(f"--- {log.name}", *lines, sep="\n")  # noqa: T201 - pytest shows it

    def _end(self) -> None:
        if self._supervisor is not None and self._supervisor.poll() is None:
            self.kill_supervisor()
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
