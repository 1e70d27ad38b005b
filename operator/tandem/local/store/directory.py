"""The directory of a pipeline on one machine, and its files."""

import fcntl
import json
import os
import secrets
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tandem.local.store import files
from tandem_core.model.pipeline import Refusal, parse_status
from tandem_core.model.states import Phase
from tandem_core.model.status import Status

_PRIVATE = 0o600
_LOOK_SECONDS = 0.5


class DirectoryRefused(Exception):
    """The directory cannot be used for this pipeline; the message says why and what to do."""


class DirectoryInUse(DirectoryRefused):
    """Another `tandem run` works in the directory."""


@dataclass(frozen=True, slots=True)
class Directory:
    """Paths in the directory; the constructor creates no file."""

    path: Path

    @property
    def pipeline(self) -> Path:
        """The manifest as it is run: defaults filled in, paths absolute."""
        return self.path / "pipeline.json"

    @property
    def uid_file(self) -> Path:
        """The pipeline's identity, which sinks remember."""
        return self.path / "uid"

    @property
    def token_file(self) -> Path:
        """The secret that every call between members carries."""
        return self.path / "token"

    @property
    def check(self) -> Path:
        """The result of the query check before the first start."""
        return self.path / "check.json"

    @property
    def intent(self) -> Path:
        """The intent."""
        return self.path / "intent"

    @property
    def members(self) -> Path:
        """The supervisor's record of members and their volumes."""
        return self.path / "members.json"

    @property
    def status(self) -> Path:
        """The status, at most a second old while the pipeline runs."""
        return self.path / "status.json"

    @property
    def events(self) -> Path:
        """Events, one JSON document on each line."""
        return self.path / "events.jsonl"

    @property
    def dead_letters(self) -> Path:
        """Rows that did not fit their schema, one file for each stream."""
        return self.path / "dead-letter"

    @property
    def requests(self) -> Path:
        """Requests of commands to the supervisor."""
        return self.path / "requests"

    @property
    def supervisor_log(self) -> Path:
        """The supervisor's decisions, with their reasons."""
        return self.log_of("supervisor")

    def card_of(self, volume: str) -> Path:
        """The file in which the process on a volume publishes its address."""
        return self.path / "peers" / f"{volume}.json"

    def gone_mark(self, volume: str) -> Path:
        """A file that exists if a volume is gone for good."""
        return self.path / "gone" / volume

    def volume(self, volume: str) -> Path:
        """The files that a member keeps across restarts of its process."""
        return self.path / "volumes" / volume

    def log_of(self, member: str) -> Path:
        """The output of a member's processes."""
        return self.path / "logs" / f"{member}.log"

    def console_of(self, sink: str) -> Path:
        """The directory for the rows of a console sink."""
        return self.path / "console" / sink

    def uid(self) -> str:
        """The pipeline's identity."""
        return self.uid_file.read_text().strip()

    def token(self) -> str:
        """The secret of the pipeline's members."""
        return self.token_file.read_text().strip()


@contextmanager
def locked(directory: Directory) -> Iterator[None]:
    """Lock a directory against other supervisors; creates it if it does not exist.

    Raises:
        DirectoryInUse: another supervisor uses it.
        DirectoryRefused: it cannot be created or written.
    """
    try:
        directory.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _PRIVATE)
    except OSError as error:
        why = f"{directory.path} cannot be used: {error.strerror}"
        raise DirectoryRefused(f"{why}; name another directory with --dir") from error
    try:
        if not _lock_soon(lock):
            raise DirectoryInUse(
                f"another `tandem run` uses {directory.path}; stop it first, or name another "
                "directory with --dir"
            )
        yield
    finally:
        os.close(lock)


def _lock_soon(lock: int) -> bool:
    """Lock at once, or after a process that only tests the lock (`is_supervised`)."""
    deadline = time.monotonic() + _LOOK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS / 20)
        else:
            return True


def is_supervised(directory: Directory) -> bool:
    """Whether a supervisor uses the directory at the moment."""
    try:
        lock = os.open(directory.path / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def make(directory: Directory) -> None:
    """Make the files of a new pipeline, all but its manifest.

    Raises:
        DirectoryRefused: the directory holds other files.
    """
    foreign = [found.name for found in directory.path.iterdir() if found.name not in _OWN]
    if foreign:
        raise DirectoryRefused(
            f"{directory.path} holds other files ({min(foreign)}); name a new or empty "
            "directory with --dir"
        )
    for name in ("peers", "gone", "volumes", "logs"):
        (directory.path / name).mkdir(exist_ok=True)
    files.write(directory.uid_file, uuid.uuid4().hex.encode(), _PRIVATE)
    files.write(directory.token_file, secrets.token_urlsafe(32).encode(), _PRIVATE)


_OWN = {"lock", "peers", "gone", "volumes", "logs", "uid", "token", ".uid.new", ".token.new"}
"""Files that an interrupted preparation may leave behind."""


def read_status(directory: Directory) -> Status | None:
    """Return the last status that was written; None if it is missing or unreadable."""
    try:
        parsed = parse_status(json.loads(directory.status.read_text()))
    except (OSError, ValueError):
        return None
    return None if isinstance(parsed, Refusal) else parsed


def is_completed(directory: Directory) -> bool:
    """Whether the pipeline of the directory has delivered everything."""
    status = read_status(directory)
    return status is not None and status.phase is Phase.COMPLETED


def give_up_volume(directory: Directory, volume: str) -> None:
    """Mark a volume as gone for good, then remove it. Idempotent."""
    directory.gone_mark(volume).touch()
    directory.card_of(volume).unlink(missing_ok=True)
    shutil.rmtree(directory.volume(volume), ignore_errors=True)


def remove(directory: Directory) -> None:
    """Remove a directory in which nothing has run."""
    shutil.rmtree(directory.path, ignore_errors=True)
