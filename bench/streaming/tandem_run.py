"""Starts, observes, disturbs and ends a pipeline under `tandem run`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from bench.streaming.feeder import now
from bench.streaming.pipelines import Shape, manifest
from bench.streaming.waiting import RunFailed, wait_until

from tandem.local.processes.process_record import from_json
from tandem.local.store.directory import Directory

_GRACE_SECONDS = 40
_SHOWN_LINES = 25


@dataclass(frozen=True)
class Installation:
    """A `tandem` program, and the environment of it and all members."""

    tandem: Path
    environment: Mapping[str, str] | None = None
    """This process's environment if None."""


INSTALLED = Installation(Path(sys.executable).with_name("tandem"))


class TandemRun:
    """One `tandem run`."""

    def __init__(
        self, shape: Shape, place: Path, source: Path, installation: Installation = INSTALLED
    ) -> None:
        self.output = place / "out"
        self.directory = place / "state"
        self.log = place / "run.log"
        file = place / "pipeline.yaml"
        file.write_text(yaml.safe_dump(manifest(shape, source, self.output)))
        command = [str(installation.tandem), "run", str(file), "--dir", str(self.directory)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=place,
                env=installation.environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self._process.pid

    # --- observing ----------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The status as `tandem status -o json` prints it; empty while there is none."""
        try:
            found: dict[str, Any] = json.loads((self.directory / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def events(self) -> list[tuple[float, str]]:
        """Times, in seconds since 1970, and names of all events."""
        try:
            lines = (self.directory / "events.jsonl").read_text().splitlines()
        except OSError:
            return []
        documents = [json.loads(line) for line in lines]
        return [(_seconds(event["at"]), event["event"]) for event in documents]

    def members(self) -> list[dict[str, Any]]:
        """All members."""
        return list(self.status().get("members", ()))

    def member(self, role: str) -> dict[str, Any]:
        """The replica with a role."""
        return next(member for member in self.members() if member.get("role") == role)

    def lead(self) -> str | None:
        """The split that leads, according to the supervisor."""
        return from_json(Directory(self.directory).members.read_text()).lead

    def volume_of(self, name: str) -> Path:
        """The directory of a member's volume."""
        directory = Directory(self.directory)
        roll = from_json(directory.members.read_text())
        return directory.volume(str(roll.entry(name).volume))

    def is_whole(self) -> bool:
        """Whether the pair is paired and both its replicas work."""
        status = self.status()
        replicas = [each for each in status.get("members", ()) if each["kind"] == "replica"]
        pairs = status.get("pairs", ())
        return (
            bool(pairs)
            and all(pair["state"] == "Paired" for pair in pairs)
            and all(replica["state"] == "Running" for replica in replicas)
        )

    def has_warm_spare(self) -> bool:
        """Whether a spare is ready."""
        return any(
            member["kind"] == "spare" and member["state"] == "Standby" for member in self.members()
        )

    # --- waiting ------------------------------------------------------------------------------

    def wait_until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition.

        Raises:
            RunFailed: it does not hold in time, or the run has ended before.
        """

        def holds_or_ended() -> bool:
            return holds() or self._process.poll() is not None

        try:
            wait_until(holds_or_ended, seconds, what)
        except RunFailed as failure:
            raise RunFailed(f"{failure}\n{self.logs()}") from None
        if not holds():
            raise RunFailed(f"ended with {self._process.returncode}: {what}\n{self.logs()}")

    def wait_for_recovery(self, failed: float, seconds: float) -> float:
        """Wait until a failure of the primary has been noticed and the pair has recovered.

        Returns when that was, in seconds since 1970; the status shows it at most a second late.
        """
        self.wait_until(lambda: self._take_over(failed) is not None, seconds, "Failover")
        noticed = self._take_over(failed) or failed
        self.wait_until(
            lambda: self._status_written() > noticed and self.is_whole(), seconds, "whole again"
        )
        return now()

    def _take_over(self, after: float) -> float | None:
        times = (at for at, event in self.events() if event == "Failover" and at > after)
        return next(times, None)

    def _status_written(self) -> float:
        return (self.directory / "status.json").stat().st_mtime

    # --- disturbing ---------------------------------------------------------------------------

    def signal_group(self, pid: int, number: int) -> None:
        """Send a signal to a member and all its processes."""
        os.killpg(pid, number)

    # --- ending -------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run gracefully, or kill it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def logs(self) -> str:
        """The ends of all logs."""
        paths = [self.log, *sorted((self.directory / "logs").glob("*.log"))]
        return "\n".join(f"--- {path.name}\n{_end_of(path)}" for path in paths if path.exists())


@contextmanager
def tandem_run(
    shape: Shape, place: Path, source: Path, installation: Installation = INSTALLED
) -> Iterator[TandemRun]:
    """Run a pipeline whose files are in `place`."""
    place.mkdir(parents=True)
    run = TandemRun(shape, place, source, installation)
    try:
        yield run
    finally:
        run.stop()


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _end_of(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-_SHOWN_LINES:])
