"""The volume of one process: what its machine writes, across restarts.

A `Write` is one step: the bytes go to a temporary name, which is then renamed. Nothing is forced
to the disk, because a lost machine loses its volume anyway and the second copy is elsewhere. So a
volume that was not left in good order is trusted only under the boot in which it was written.
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
"""What lies under each kind of key; chunks and results have forms of their own."""

_OF_THE_LOG = frozenset({"book", "entry"})
"""Kinds of keys of the header log: what cannot be read there must not be passed over."""

_RAW = "outbox"
"""Kind of key whose value is bytes already."""


_log = logging.getLogger(__name__)


class VolumeInUse(Exception):
    """Another process runs on the volume."""


class VolumeDistrusted(Exception):
    """The machine has booted since, and the volume was not left in good order."""


class Volume:
    """Files under one directory. One process at a time (`claim`)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = directory.name
        self.incarnation = 0
        self._keys = directory / "keys"
        self._made: set[str] = set()
        """Directories that are known to exist."""

    # --- one process at a time ----------------------------------------------------------------

    def claim(self) -> None:
        """Take the volume for this process, and count its start.

        Raises:
            VolumeInUse: another process has it.
            VolumeDistrusted: it may have lost what was written.
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
        """Let another process have the volume."""
        os.close(self._lock)

    def leave_clean(self) -> None:
        """Mark that everything is on the disk: the process stops in good order.

        Without the mark, as where the disk fails just now, the volume is trusted until a reboot.
        """
        try:
            _write_out(self.directory)
        except OSError as problem:
            _log.warning("%s is not left in good order: %s", self.directory, problem)
            return
        _replace(self.directory / "clean", b"")

    def refuse(self, why: MemberRefusal) -> None:
        """Leave word why the process that ends now cannot do what was asked of it."""
        self.write_beside(REFUSAL_FILE, encode_report(why))

    def write_beside(self, name: str, content: bytes) -> None:
        """Put a file beside the machine's keys, in one step."""
        _replace(self.directory / name, content)

    # --- keys ---------------------------------------------------------------------------------

    def contents(self) -> dict[Key, object]:
        """What a machine is restarted from. Of chunks only the notes are read.

        Raises:
            UnknownRecord: a part of the header log is a later version's.
            Undecodable: something else cannot be read.
        """
        return {key: value for key in self._stored() if (value := self._read(key)) is not None}

    def write(self, key: Key, value: object) -> None:
        """Put a value under a key, replacing an older one, in one step."""
        path = path_of(key)
        parent = path.rpartition("/")[0]
        if parent not in self._made:
            (self._keys / parent).mkdir(parents=True, exist_ok=True)
            self._made.add(parent)
        _replace(self._keys / path, _form(key, value))

    def erase(self, key: Key) -> None:
        """Remove a key; no harm if it is not there."""
        (self._keys / path_of(key)).unlink(missing_ok=True)

    def buffer(self, key: Key) -> Any:
        """The bytes under a key, mapped and not read.

        Raises:
            FileNotFoundError: they have been erased.
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
    """Write a file in one step: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content)
    temporary.replace(path)


def _write_out(directory: Path) -> None:
    """Force the file system that a directory is on to the disk; others of the machine can wait.

    Raises:
        OSError: the disk did not take it all.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    opened = os.open(directory, os.O_RDONLY)
    try:
        if libc.syncfs(opened):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(opened)
