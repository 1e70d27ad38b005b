"""Lists the files of a source's directory: which ones count, their order, their partition.

All regular files count, in subdirectories too, except hidden and temporary ones: those whose name,
or the name of a directory above them, begins with `.` or `_` or ends in `.tmp`, `.part`,
`.partial`, `.crdownload`, `.swp`, `._COPYING_` or `~`. Symbolic links to files are followed, those
to directories are not.

Files are in the order of their names, relative to the directory, by code points. A writer should
rename a file to its final name once it is complete.
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
    """When each was last changed, moved or created, in the file system's nanoseconds."""
    unusable: list[str]
    """Files whose names are not UTF-8, escaped: a position cannot name them."""
    directories: dict[Path, int]
    """Last change of each listed directory, read just before it was listed."""

    def after(self, name: str | None) -> str | None:
        """Return the first file that sorts after a name; after None, the first of all."""
        place = 0 if name is None else bisect_right(self.names, name)
        return self.names[place] if place < len(self.names) else None

    def before(self, name: str) -> list[str]:
        """Return the files that sort before a name."""
        return self.names[: bisect_left(self.names, name)]


NOTHING = Listing([], {}, [], {})


def list_files(
    directory: Path, partition: int, partitions: int, known: Mapping[str, int]
) -> Listing:
    """List the files of a partition in a directory.

    Files in `known` keep the time of change given there: reading names is fast, reading the kind
    and the last change of each file is not.

    Raises:
        OSError: the directory does not exist or cannot be read.
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
    """Whether the directories of a listing have neither gained nor lost a file; fast.

    May miss a change at the moment of the listing: the file system's clock is coarse.
    """
    try:
        return all(
            directory.stat().st_mtime_ns == changed
            for directory, changed in listing.directories.items()
        )
    except OSError:
        return False


def counts(name: str) -> bool:
    """Whether a file or directory of this name is read."""
    return not name.startswith(_HIDDEN) and not name.endswith(_TEMPORARY)


def partition_of(name: str, partitions: int) -> int:
    """Return the partition to which a file belongs; it never changes."""
    return xxhash.xxh64_intdigest(name.encode()) % partitions if partitions > 1 else 0


def _walk(
    directory: Path, prefix: str, directories: dict[Path, int], known: Container[str]
) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield all files that count, with their names; known ones without a check."""
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
    """Return when a file, or the link to it, was last changed or moved; None if it is gone."""
    try:
        itself = entry.stat(follow_symlinks=False).st_ctime_ns
        return max(itself, entry.stat().st_ctime_ns)
    except FileNotFoundError:
        return None
