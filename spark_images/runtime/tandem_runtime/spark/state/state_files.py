"""Selects the files that a state store needs to be restored at a version.

A store writes one file of changes for each version and an occasional snapshot: HDFS-backed stores
`<n>.delta` and `<n>.snapshot`, RocksDB `<n>.changelog` and `<n>.zip`. Version n + 1 is the state
after batch n.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

_VERSIONED = re.compile(r"(\d+)(?:_[^.]+)?\.(delta|changelog|snapshot|zip)")
_WHOLE = {"snapshot", "zip"}
_DEFAULT_STORE = "default"


class _StoreInfo(TypedDict):
    """A store, as listed in the metadata of its operator."""

    storeName: str
    numPartitions: int


@dataclass(frozen=True, slots=True)
class VersionedFile:
    """A file of a store, with its version."""

    name: str
    version: int
    is_whole: bool
    """Whether it is a snapshot, not a file of changes."""


def versioned(names: Iterable[str]) -> list[VersionedFile]:
    """Return the files that belong to a version; others belong to all or are temporary."""
    matches = [(name, _VERSIONED.fullmatch(name)) for name in names]
    return [
        VersionedFile(name, int(match[1]), match[2] in _WHOLE)
        for name, match in matches
        if match is not None
    ]


def needed(files: Iterable[VersionedFile], oldest: int, newest: int) -> list[VersionedFile]:
    """Return the files that restore every version from `oldest` to `newest`, and no newer ones.

    These are the last snapshot at or before `oldest`, if there is one, and all files after it.
    """
    known = [file for file in files if file.version <= newest]
    base = max(
        (file.version for file in known if file.is_whole and file.version <= oldest), default=0
    )
    return [
        file for file in known if file.version > base or (file.is_whole and file.version == base)
    ]


def can_restore(files: Iterable[VersionedFile], version: int) -> bool:
    """Whether a version can be restored: from a snapshot or from empty, with all changes since."""
    known = [file for file in files if file.version <= version]
    base = max((file.version for file in known if file.is_whole), default=0)
    changes = {file.version for file in known if not file.is_whole}
    return all(number in changes for number in range(base + 1, version + 1))


def stores(checkpoint: Path) -> list[Path]:
    """Return the directories of all stores of the query's stateful operators.

    Raises:
        FileNotFoundError: an operator has no metadata.
    """
    state = checkpoint / "state"
    operators = (
        [path for path in state.iterdir() if path.name.isdecimal()] if state.exists() else []
    )
    return [store for operator in sorted(operators) for store in _stores_of(operator)]


def _stores_of(operator: Path) -> list[Path]:
    found: list[Path] = []
    for store in _store_infos(operator / "_metadata"):
        for partition in range(store["numPartitions"]):
            directory = operator / str(partition)
            name = store["storeName"]
            found.append(directory if name == _DEFAULT_STORE else directory / name)
    return found


def _store_infos(metadata: Path) -> list[_StoreInfo]:
    """Read the operator's metadata: one file, or in version 2 one for each change."""
    changes = [path for path in (metadata / "v2").glob("*") if path.name.isdecimal()]
    latest = max(changes, key=lambda path: int(path.name), default=metadata / "metadata")
    _, _, document = latest.read_text(encoding="utf-8").partition("\n")
    infos: list[_StoreInfo] = json.loads(document)["stateStoreInfo"]
    return infos
