"""Runs a pipeline on this machine: prepares its directory, checks the query, supervises it."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path

from rich.console import Console

from tandem.local.display.console import ConsoleTail
from tandem.local.display.display_thread import DisplayThread
from tandem.local.display.table import display_for
from tandem.local.processes.process_manager import Assign, Command
from tandem.local.query_check import CheckCommand, Findings, check_query
from tandem.local.shutdown import End, EndReason, Stop
from tandem.local.store.directory import (
    Directory,
    is_completed,
    locked,
    read_status,
    remove,
)
from tandem.local.store.files import MOST_BYTES
from tandem.local.store.manifest import prepare, read_manifest
from tandem.local.supervisor import Supervisor, SupervisorPorts
from tandem.policy.snapshot import Complaint
from tandem.policy.timeouts import Timeouts
from tandem_core.logs.json_lines import JsonLines
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import ConsoleSink, FilesSink
from tandem_core.model.status import Status

CountRows = Callable[[Pipeline, Directory], int]
"""Counts the rows in the sinks of a pipeline; called when all members have ended."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The data plane's programs: commands of members, assignment of spares, check, row count."""

    command: Command
    assign: Assign
    check: CheckCommand
    count_rows: CountRows


@dataclass(frozen=True, slots=True)
class RunRefused:
    """Twins cannot run the query, or a sink belongs to another pipeline; nothing was started."""

    findings: Findings


def run_pipeline(
    pipeline: Pipeline,
    base: Path,
    directory: Directory,
    programs: Programs,
    console: Console,
    seconds: float | None = None,
    warn: Callable[[Findings], None] = lambda _: None,
    limits: Timeouts | None = None,
) -> End | RunRefused:
    """Run a pipeline, whose paths are absolute, until it ends or for this many seconds.

    The directory of a completed pipeline is left unchanged. A new directory is removed if something
    is refused or cannot be checked. `warn` receives the findings of an accepted query.

    Raises:
        DirectoryRefused: the directory cannot be used.
        CheckFailed: the query could not be checked.
        OSError: the disk is full, or a process of an earlier run does not end.
    """
    with locked(directory):
        is_new = prepare(directory, pipeline, base)
        pipeline = read_manifest(directory).pipeline()
        if is_completed(directory):
            return End(EndReason.COMPLETED, read_status(directory) or Status())
        accepted = False
        try:
            findings = _check(pipeline, directory, programs.check)
            accepted = not findings.refused
        finally:
            if is_new and not accepted:
                remove(directory)
        if findings.refused:
            return RunRefused(findings)
        warn(findings)
        with _logging_to(directory.supervisor_log), _listening() as stop:
            return _supervise(directory, pipeline, programs, console, stop, seconds, limits)


def _check(pipeline: Pipeline, directory: Directory, command: CheckCommand) -> Findings:
    """Check sinks, then the query; sinks first, since that takes no time."""
    foreign = foreign_sinks(pipeline, directory.uid())
    return Findings(tuple(foreign)) if foreign else check_query(directory, pipeline, command)


def _supervise(
    directory: Directory,
    pipeline: Pipeline,
    programs: Programs,
    console: Console,
    stop: Stop,
    seconds: float | None,
    limits: Timeouts | None,
) -> End:
    tails = [
        ConsoleTail(directory.console_of(sink.name))
        for sink in pipeline.spec.sinks
        if isinstance(sink.target, ConsoleSink)
    ]
    display = DisplayThread(display_for(console, tails))
    ports = SupervisorPorts(
        programs.command,
        programs.assign,
        display,
        partial(programs.count_rows, pipeline, directory),
        limits or Timeouts(),
    )
    try:
        return Supervisor(directory, pipeline, ports, stop).run(seconds)
    finally:
        display.close()


@contextmanager
def _listening() -> Iterator[Stop]:
    """Turn SIGINT, SIGTERM and SIGHUP into requests to stop, instead of ending this process."""
    stop = Stop()
    before = {
        number: signal.signal(number, lambda *_: stop.ask())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Log(RotatingFileHandler):
    """Ignores its own errors: a full disk must not fill the terminal with tracebacks."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        return


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Log decisions to a file of bounded size, one line for each turn that decides something."""
    handler = _Log(path, maxBytes=MOST_BYTES, backupCount=1, delay=True)
    handler.setFormatter(JsonLines())
    log = logging.getLogger("tandem")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()


def foreign_sinks(pipeline: Pipeline, uid: str) -> list[Complaint]:
    """Sinks that belong to another pipeline. Creates nothing: the directory may not be kept."""
    targets = [sink.target for sink in pipeline.spec.sinks]
    paths = [Path(target.path) for target in targets if isinstance(target, FilesSink)]
    return [
        Complaint(
            "ForeignSink",
            f"{path} holds results of another pipeline, or of this one before its state directory "
            "was removed",
            f"name another sink directory in the manifest, or delete {path} if its results are "
            "not needed",
        )
        for path in paths
        if _owner(path) not in {None, uid}
    ]


def _owner(path: Path) -> str | None:
    try:
        return (path / "_tandem" / "uid").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
