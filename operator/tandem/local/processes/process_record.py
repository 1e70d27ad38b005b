"""The supervisor's record of members and their volumes, written before it acts.

A supervisor may be killed between any two steps. The next one reads the record, finishes discarding
volumes that were given up, and starts all members on the volumes they had.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One place: its volume and, while it runs, its process."""

    volume: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """All places. Immutable."""

    entries: Mapping[str, ProcessEntry] = field(default_factory=dict)
    given_up: tuple[str, ...] = ()
    """Discarded volumes, which may not have been removed yet."""
    lead: str | None = None
    """The place of the last known lead."""

    def entry(self, name: str) -> ProcessEntry:
        """Return the entry of a place; an empty one if the place never ran."""
        return self.entries.get(name, ProcessEntry())

    def on_volume(self, name: str, volume: str | None) -> "ProcessRecord":
        """Return the record with a place on this volume, without a process yet."""
        return self._with(name, ProcessEntry(volume))

    def running(self, name: str, pid: int | None) -> "ProcessRecord":
        """Return the record with the process of a place, or with none."""
        return self._with(name, replace(self.entry(name), pid=pid))

    def giving_up(self, volume: str) -> "ProcessRecord":
        """Return the record with a volume marked as discarded."""
        return replace(self, given_up=(*self.given_up, volume))

    def removed(self, volume: str) -> "ProcessRecord":
        """Return the record without a discarded volume, once it is removed."""
        return replace(self, given_up=tuple(each for each in self.given_up if each != volume))

    def without(self, name: str) -> "ProcessRecord":
        """Return the record without a place."""
        entries = {each: entry for each, entry in self.entries.items() if each != name}
        return replace(self, entries=entries)

    def led_by(self, name: str | None) -> "ProcessRecord":
        """Return the record with another lead."""
        return replace(self, lead=name)

    def at_rest(self) -> "ProcessRecord":
        """Return the record with no processes."""
        return replace(self, entries={n: ProcessEntry(e.volume) for n, e in self.entries.items()})

    def _with(self, name: str, entry: ProcessEntry) -> "ProcessRecord":
        return replace(self, entries={**self.entries, name: entry})


def to_json(roll: ProcessRecord) -> str:
    """Return the content of the record's file."""
    members = {
        name: {"volume": entry.volume, "pid": entry.pid} for name, entry in roll.entries.items()
    }
    document = {"members": members, "givenUp": list(roll.given_up), "lead": roll.lead}
    return json.dumps(document, indent=1)


def from_json(text: str) -> ProcessRecord:
    """Parse the content of a record's file.

    Raises:
        ValueError: it is not what `to_json` writes.
    """
    document: Any = json.loads(text)
    try:
        entries = {
            name: ProcessEntry(entry["volume"], entry["pid"])
            for name, entry in document["members"].items()
        }
        return ProcessRecord(entries, tuple(document["givenUp"]), document["lead"])
    except (AttributeError, KeyError, TypeError) as problem:
        raise ValueError(f"not a record of processes: {problem!r}") from problem
