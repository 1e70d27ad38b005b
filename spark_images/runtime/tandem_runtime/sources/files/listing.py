"""The files of a source's directory: which ones count, in which order, in whose partition.

All regular files count, in subdirectories too, except those that are not meant to be read yet or
at all: a name, or the name of a directory on the way, that begins with `.` or `_`, and names that
end in `.tmp`, `.part`, `.partial`, `.crdownload`, `.swp`, `._COPYING_` or `~`. Symbolic links to
files are followed, those to directories are not.

The order is that of the names, relative to the directory, by code points. A file should appear
under its name by a rename once it is complete.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import xxhash

_HIDDEN = (".", "_")
_TEMPORARY = (".tmp", ".part", ".partial", ".crdownload", ".swp", "._COPYING_", "~")


class Listing(NamedTuple):
    """The files of one partition as they were at some moment."""

    names: list[str]
    """In order."""
    changed: dict[str, int]
    """When each was changed, moved or made last, in the file system's nanoseconds."""
    unusable: list[str]
    """Files whose names are not UTF-8, escaped: no position could name them."""
    directories: dict[Path, int]
    """When each directory that was looked into had changed last, just before that."""

    def after(self, name: str | None) -> str | None:
        """The first file that sorts after a name; the first of all after None."""
        place = 0 if name is None else bisect_right(self.names, name)
        return self.names[place] if place < len(self.names) else None

    def before(self, name: str) -> list[str]:
        """The files that sort before a name."""
        return self.names[: bisect_left(self.names, name)]


NOTHING = Listing([], {}, [], {})


def list_files(
    directory: Path, partition: int, partitions: int, known: Mapping[str, int]
) -> Listing:
    """Look into a directory for the files of a partition.

    Files in `known` are taken as they were: reading names is quick, asking for each file's kind and
    change is not.

    Raises:
        OSError: the directory is not there or cannot be read.
    """
    listing = Listing([], {}, [], {})
    for name, entry in _walk(directory, "", listing.directories, known):
        if name in known:
            listing.names.append(name)
            listing.changed[name] = known[name]
            continue
        printable = name.encode(errors="backslashreplace").decode()
        if partition_of(printable, partitions) != partition:
            continue
        if printable != name:
            listing.unusable.append(printable)
        elif (changed := _changed(entry)) is not None:
            listing.names.append(name)
            listing.changed[name] = changed
    listing.names.sort()
    return listing


def is_unchanged(listing: Listing) -> bool:
    """Whether no file has come to or gone from the directories of a listing; quick.

    A change in the very moment of the listing may not be seen: the file system's time has steps.
    """
    try:
        return all(
            directory.stat().st_mtime_ns == changed
            for directory, changed in listing.directories.items()
        )
    except OSError:
        return False


def counts(name: str) -> bool:
    """Whether a file or directory of this name is looked at."""
    return not name.startswith(_HIDDEN) and not name.endswith(_TEMPORARY)


def partition_of(name: str, partitions: int) -> int:
    """The partition to which a file belongs, the same for ever."""
    return xxhash.xxh64_intdigest(name.encode()) % partitions if partitions > 1 else 0


def _walk(
    directory: Path, prefix: str, directories: dict[Path, int], known: Container[str]
) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """All files that count, by their names; those that are known are not looked at."""
    directories[directory] = directory.stat().st_mtime_ns
    with os.scandir(directory) as entries:
        for entry in entries:
            name = prefix + entry.name
            if name in known:
                yield name, entry
                continue
            if not counts(entry.name):
                continue
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk(Path(entry.path), f"{name}/", directories, known)
                elif entry.is_file():
                    yield name, entry


def _changed(entry: "os.DirEntry[str]") -> int | None:
    """When a file, or the link to it, was changed or moved last; None if it is gone."""
    try:
        itself = entry.stat(follow_symlinks=False).st_ctime_ns
        return max(itself, entry.stat().st_ctime_ns)
    except FileNotFoundError:
        return None
