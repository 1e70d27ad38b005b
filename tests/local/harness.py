"""Runs a supervisor over stub members in a process of its own, and looks at what it does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tandem.local.processes.children import mark_of, marked_processes
from tandem.local.processes.process_record import ProcessRecord, from_json
from tandem.local.store.directory import Directory
from tandem_core.model.pipeline import parse_status
from tandem_core.model.states import MemberState, PairState
from tandem_core.model.status import MemberStatus, Status

RUN = Path(__file__).with_name("stub_run.py")

MANIFEST = """\
apiVersion: tandem.dev/v1alpha1
kind: StreamPipeline
metadata: {name: stubs}
spec:
  streams:
  - name: payments
    schema: user STRING, amount BIGINT
    key: [user]
    source: {generator: {rowsPerSecond: 10, keys: 10}}
  query: {sql: SELECT user FROM payments}
  splits: {count: 2}
  pairs: {count: 1, spares: SPARES}
  sinks: [{name: out, console: {}}]
"""


def wait_for(condition: Callable[[], object], seconds: float = 150.0) -> None:
    """Wait until it holds; fails loudly if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


class Run:
    """One supervisor."""

    def __init__(self, home: Path, *arguments: str, spares: int = 0) -> None:
        self.manifest = home / "stubs.yaml"
        if not self.manifest.exists():
            self.manifest.write_text(MANIFEST.replace("SPARES", str(spares)))
        self.directory = Directory(home / "state")
        self.log = home / "output"
        self.began = time.time_ns()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, RUN, self.manifest, self.directory.path, *arguments],
                stdout=output,
                stderr=output,
            )

    # --- what is to be seen -------------------------------------------------------------------

    def status(self) -> Status:
        if not self.directory.status.exists():
            return Status()
        parsed = parse_status(json.loads(self.directory.status.read_text()))
        assert isinstance(parsed, Status)
        return parsed

    def member(self, name: str) -> MemberStatus:
        return next(member for member in self.status().members if member.name == name)

    def pid(self, name: str) -> int:
        pid = self.member(name).pid
        assert pid is not None
        return pid

    def roll(self) -> ProcessRecord:
        return from_json(self.directory.members.read_text())

    def volume(self, name: str) -> str:
        volume = self.roll().entry(name).volume
        assert volume is not None
        return volume

    def events(self) -> list[tuple[str, str]]:
        if not self.directory.events.exists():
            return []
        lines = map(json.loads, self.directory.events.read_text().splitlines())
        return [(line["event"], line["subject"]) for line in lines]

    def processes(self) -> set[int]:
        """Everything that belongs to the pipeline and is alive."""
        return set(marked_processes(mark_of(self.directory.uid(), self.directory.path)))

    def is_whole(self) -> bool:
        if not self.directory.status.exists():
            return False
        status = self.status()
        working = {MemberState.RUNNING, MemberState.STANDBY}
        return (
            self.directory.status.stat().st_mtime_ns > self.began
            and bool(status.members)
            and all(member.state in working for member in status.members)
            and all(pair.state is PairState.PAIRED for pair in status.pairs)
            and any(member.pid for member in status.members)
        )

    def wait_whole(self) -> None:
        wait_for(lambda: self.is_whole() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def wait_restarted(self, name: str, before: int) -> None:
        wait_for(lambda: self.member(name).pid not in {None, before})

    # --- what is done to it -------------------------------------------------------------------

    def order(self, name: str, what: str) -> None:
        order = self.directory.path / "stub" / f"{name}.do"
        draft = order.with_suffix(".draft")
        draft.write_text(what)
        draft.replace(order)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 150.0) -> int:
        return self.process.wait(seconds)

    def end(self) -> None:
        """Whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.processes() if self.directory.uid_file.exists() else ():
            os.kill(pid, signal.SIGKILL)
