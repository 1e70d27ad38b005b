"""Stores the header log on a member's volume, as a snapshot of its state and a tail of entries.

Lead and buddy keep it in the same form, so that a buddy that takes over has what a lead needs.
Each entry carries the fence under which it was written: after a crash between a new snapshot and
the removal of older entries, those do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from tandem_core.contract.records import Record
from tandem_runtime.protocol.effects import Effect, Erase, Key, Write
from tandem_runtime.protocol.log.entries import Entry
from tandem_runtime.protocol.log.formats import check_entry, check_format
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.log.replicated_log import Fence, LogCopy


class StoredLogState(Record):
    """The snapshot on a volume: the state after the entries through `index`, and its fence."""

    fence: Fence
    index: int
    log_state: LogState = msgspec.field(name="book")


class StoredEntry(Record):
    """An entry on a volume, and the fence under which it was written."""

    fence: Fence
    entry: Entry


SNAPSHOT: Key = ("book",)
VOID: Key = ("void",)
"""Marks a volume from when its member tries to lead by rule (i) until the log is rebuilt."""


class HeaderLog:
    """One member's copy of the header log."""

    __slots__ = ("copy", "entries", "published", "snapshot", "void", "_limit")

    def __init__(self, volume: Mapping[Key, object], limit: int) -> None:
        self._limit = limit
        self.void = VOID in volume
        """Whether this copy must not be continued: it is not the log of the register's members."""
        self.entries: dict[int, Entry] = {}
        """Entries after the snapshot."""
        self.snapshot = LogState()
        self.published = 0
        """The last published entry, as far as the owner has reported."""
        self.copy = LogCopy((0, 0), 0, 0)
        if SNAPSHOT in volume:
            stored = cast("StoredLogState", volume[SNAPSHOT])
            check_format(stored.log_state.format)
            self.snapshot = stored.log_state
            self.copy = LogCopy(stored.fence, stored.index, stored.index)
            self._restore_tail(volume)
        self.published = self.copy.base

    def _restore_tail(self, volume: Mapping[Key, object]) -> None:
        while ("entry", self.copy.through + 1) in volume:
            stored = cast("StoredEntry", volume["entry", self.copy.through + 1])
            if stored.fence != self.copy.fence:
                return
            check_entry(stored.entry)
            self.copy.through += 1
            self.entries[self.copy.through] = stored.entry

    def fold(self) -> LogState:
        """Apply the whole log, published or not: every entry a member holds is final (a)."""
        log_state = self.snapshot.copy()
        for entry in self.entries.values():
            log_state.apply(entry)
        return log_state

    def reset(self, fence: Fence, index: int, log_state: LogState) -> list[Effect]:
        """Replace the log by a snapshot, under a new fence.

        Raises:
            UnreadableFormat: this build could drop parts of it unnoticed.
        """
        check_format(log_state.format)
        stale: list[Effect] = [Erase(("entry", n)) for n in self.entries]
        if self.void:
            stale.append(Erase(VOID))
        self.void = False
        self.snapshot = log_state
        self.entries = {}
        self.copy = LogCopy(fence, index, index)
        self.published = index
        return [Write(SNAPSHOT, StoredLogState(fence, index, log_state)), *stale]

    def declare_void(self) -> list[Effect]:
        """Remember, also across a restart, that this log must not be continued."""
        self.void = True
        return [Write(VOID, True)]

    def redeem(self) -> list[Effect]:
        """Let the log count again: the register names this member buddy."""
        if not self.void:
            return []
        self.void = False
        return [Erase(VOID)]

    def add(self, number: int, entry: Entry) -> list[Effect]:
        """Store the next entry; ignore one that is here already or is ahead of its turn."""
        if not self.copy.accept(number):
            return []
        check_entry(entry)
        self.entries[number] = entry
        return [Write(("entry", number), StoredEntry(self.copy.fence, entry))]

    def compact(self) -> list[Effect]:
        """Fold published entries into the snapshot once there are many [12]."""
        if len(self.entries) <= self._limit:
            return []
        done = [number for number in self.entries if number <= self.published]
        if not done:
            return []
        log_state = self.snapshot.copy()
        for number in done:
            log_state.apply(self.entries.pop(number))
        self.snapshot = log_state
        self.copy.base = done[-1]
        effects: list[Effect] = [
            Write(SNAPSHOT, StoredLogState(self.copy.fence, done[-1], log_state))
        ]
        effects.extend(Erase(("entry", number)) for number in done)
        return effects
