"""The volume of one process: stores what its machine writes, across restarts.

A `Write` is atomic: the bytes go to a temporary file, which is then renamed. Writes are not synced
to the disk, because a lost node loses its volume anyway and the second copy is elsewhere. So a
volume that was not closed cleanly is trusted only until the next boot.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from tandem_core.contract.intent import Generation
from tandem_core.contract.records import Undecodable, UnknownRecord, decode, encode
from tandem_core.contract.reports import REFUSAL_FILE, MemberRefusal, encode_report
from tandem_runtime.protocol.effects import Key
from tandem_runtime.protocol.log.header_log import StoredEntry, StoredLogState
from tandem_runtime.protocol.messages.peers import Version
from tandem_runtime.protocol.replica.outbox import Kept
from tandem_runtime.protocol.split.lane_copies import StoredCopy
from tandem_runtime.protocol.types import Chunk, Header
from tandem_runtime.volume.chunks import chunk_bytes, read_note
from tandem_runtime.volume.key_paths import key_at, path_of

_BOOT = Path("/proc/sys/kernel/random/boot_id")
STORED: dict[str, Any] = {
    "book": StoredLogState,
    "void": bool,
    "lanes": int,
    "forgot": Version,
    "verified": bool,
    "entry": StoredEntry,
    "lane": int,
    "copy": StoredCopy,
    "header": Header,
    "generation": Generation,
    "kept": Kept,
}
"""Type of the value under each kind of key; chunks and results have formats of their own."""

_OF_THE_LOG = frozenset({"book", "entry"})
"""Kinds of keys of the header log, in which an unreadable value must not be skipped."""

_RAW = "outbox"
"""Kind of key whose value is stored as it is."""


_log = logging.getLogger(__name__)


class VolumeInUse(Exception):
    """Another process runs on the volume."""


class VolumeDistrusted(Exception):
    """The node has booted since, and the volume was not closed cleanly."""


class Volume:
    """Files under one directory, used by one process at a time (`claim`)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = directory.name
        self.incarnation = 0
        self._keys = directory / "keys"
        self._made: set[str] = set()
        """Directories that are known to exist."""

    # --- one process at a time ----------------------------------------------------------------

    def claim(self) -> None:
        """Lock the volume for this process, and raise its incarnation.

        Raises:
            VolumeInUse: another process has it.
            VolumeDistrusted: it may have lost writes.
        """
        self._keys.mkdir(parents=True, exist_ok=True)
        # Kept open, and so locked, for the life of the process.
        self._lock = os.open(self.directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise VolumeInUse(f"a process runs on {self.directory} already") from None
        self._check_boot()
        known = self.directory / "incarnation"
        self.incarnation = int(known.read_text() if known.exists() else "0") + 1
        _replace(known, str(self.incarnation).encode())

    def _check_boot(self) -> None:
        boot, clean = self.directory / "boot", self.directory / "clean"
        now = _BOOT.read_text()
        if boot.exists() and boot.read_text() != now and not clean.exists():
            raise VolumeDistrusted(
                f"{self.directory} is of before this machine booted and was not left in good order"
            )
        _replace(boot, now.encode())
        clean.unlink(missing_ok=True)

    def release(self) -> None:
        """Unlock the volume for another process."""
        os.close(self._lock)

    def leave_clean(self) -> None:
        """Sync everything to the disk and mark it: the process stops gracefully.

        Without the mark, as when the sync fails, the volume is trusted only until a reboot.
        """
        try:
            _write_out(self.directory)
        except OSError as problem:
            _log.warning("%s is not left in good order: %s", self.directory, problem)
            return
        _replace(self.directory / "clean", b"")

    def refuse(self, why: MemberRefusal) -> None:
        """Store the reason why the process ends now and cannot continue."""
        self.write_beside(REFUSAL_FILE, encode_report(why))

    def write_beside(self, name: str, content: bytes) -> None:
        """Write a file beside the machine's keys, atomically."""
        _replace(self.directory / name, content)

    # --- keys ---------------------------------------------------------------------------------

    def contents(self) -> dict[Key, object]:
        """The keys and values from which a machine restarts. Of chunks only the notes are read.

        Raises:
            UnknownRecord: a part of the header log is of a later version.
            Undecodable: another value cannot be read.
        """
        return {key: value for key in self._stored() if (value := self._read(key)) is not None}

    def write(self, key: Key, value: object) -> None:
        """Store a value under a key, replacing an older one, atomically."""
        path = path_of(key)
        parent = path.rpartition("/")[0]
        if parent not in self._made:
            (self._keys / parent).mkdir(parents=True, exist_ok=True)
            self._made.add(parent)
        _replace(self._keys / path, _form(key, value))

    def erase(self, key: Key) -> None:
        """Remove a key; does nothing if it does not exist."""
        (self._keys / path_of(key)).unlink(missing_ok=True)

    def buffer(self, key: Key) -> Any:
        """The bytes under a key, mapped into memory.

        Raises:
            FileNotFoundError: the key has been erased.
        """
        with pa.memory_map(str(self._keys / path_of(key))) as file:
            return file.read_buffer()

    def _stored(self) -> Iterator[Key]:
        for parent, _, names in os.walk(self._keys):
            within = os.path.relpath(parent, self._keys)
            for name in names:
                key = key_at(name if within == "." else f"{within}/{name}")
                if key is not None:
                    yield key

    def _read(self, key: Key) -> object:
        path = self._keys / path_of(key)
        if key[0] == "chunk":
            return Chunk(read_note(self.buffer(key)), None)
        kind = cast("str", key[0])
        if kind == _RAW:
            return ()
        try:
            return decode(path.read_bytes(), STORED[kind])
        except Undecodable as problem:
            if kind in _OF_THE_LOG:
                raise UnknownRecord(f"{path}: {problem}") from problem
            raise


def _form(key: Key, value: object) -> Any:
    """A value as bytes."""
    if key[0] == "chunk":
        return chunk_bytes(cast("Chunk", value))
    return value if key[0] == _RAW else encode(value)


def _replace(path: Path, content: Any) -> None:
    """Write a file atomically: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content)
    temporary.replace(path)


def _write_out(directory: Path) -> None:
    """Sync the file system of a directory to the disk, and no other of the machine.

    Raises:
        OSError: the sync failed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    opened = os.open(directory, os.O_RDONLY)
    try:
        if libc.syncfs(opened):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(opened)
