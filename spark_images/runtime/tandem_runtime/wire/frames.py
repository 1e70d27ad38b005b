"""Frames on a stream between two processes: messages, and the bytes that belong to them.

A stream has one column of bytes. Each item on it carries a frame as metadata: either a part (bytes
of the value with a given index, or of one of its files) or the message that ends a sequence of
parts. A value is either bytes (`name` is None) or a tree of files. So a message is read only when
all its values have arrived, and a tree is on the receiver's disk by then, never in its memory.
"""

from __future__ import annotations

import array
import itertools
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pyarrow as pa

from tandem_core.contract.records import Tagged, Undecodable, UnknownRecord, decode, encode
from tandem_runtime.protocol.messages.peers import CopyEntry, FillLog, PeerMessage
from tandem_runtime.protocol.messages.rebuild import Muster, Present

SCHEMA = pa.schema([("data", pa.large_binary())])

PIECE = 4 * 2**20
"""Most bytes of a file in one part."""

Buffer = Any


class FramePart(NamedTuple):
    """Bytes of the value with a number, or of one of its files."""

    number: int
    name: str | None
    data: Buffer


ROOT = "."
"""Name of a tree's own directory. It is sent first, so that an empty tree arrives too."""


class PartFrame(Tagged, tag="Part"):
    """Announces bytes of the value with a number, or of one of its files."""

    number: int
    name: str | None = None


Frame = PartFrame | Muster | Present | PeerMessage

_KNOWN = {kind.__struct_config__.tag for kind in get_args(Frame)}

_LOG_MESSAGES = {kind.__name__ for kind in (CopyEntry, FillLog)}


class UnknownMessage(Undecodable):
    """A message of a kind that a later version added."""


def part_frame(part: FramePart) -> bytes:
    """The metadata of a part."""
    return encode(PartFrame(part.number, part.name))


def message_frame(message: object) -> bytes:
    """The metadata that ends a message."""
    return encode(message)


def batch_of(data: Buffer) -> Any:
    """Wrap bytes as one item of a stream, without copying them."""
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
    offsets = pa.py_buffer(array.array("q", [0, buffer.size]))
    column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, buffer])
    return pa.record_batch([column], schema=SCHEMA)


def bytes_of(batch: Any) -> Buffer:
    """The bytes that an item carries, without copying them."""
    return batch.column(0)[0].as_buffer()


def tree_parts(index: int, root: Path) -> Iterator[FramePart]:
    """Yield a directory, then the files below it; an empty file is one empty part."""
    yield FramePart(index, ROOT, b"")
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = str(path.relative_to(root))
        with path.open("rb") as file:
            for piece in itertools.chain([file.read(PIECE)], iter(lambda: file.read(PIECE), b"")):
                yield FramePart(index, name, piece)


_NUMBERS = itertools.count()
"""Numbers of received trees; a process clears their directory when it starts."""


class Tree:
    """Files that came with a message, below `path`.

    A message may be dropped at any point [11]. So the files are removed once nothing refers to
    their tree any more [12], unless they were moved before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._removal = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)

    def move(self, target: Path) -> None:
        """Move the files to `target`, on the same file system, which must not exist."""
        self.path.replace(target)
        self.path = target
        self._removal.detach()


def read_frame(form: memoryview) -> Any:
    """Decode a frame of a peer.

    Raises:
        UnknownRecord: it carries a part of the header log that cannot be read here.
        UnknownMessage: it is a message of a kind that is not known here.
        Undecodable: it is not a frame.
    """
    try:
        return decode(form, Frame)  # type: ignore[arg-type]
    except Undecodable as problem:
        tag = _tag_of(form)
        if tag in _LOG_MESSAGES:
            raise UnknownRecord(str(problem)) from problem
        if tag and tag not in _KNOWN:
            raise UnknownMessage(tag) from problem
        raise


class _Tag(msgspec.Struct):
    type: str = ""


def _tag_of(form: memoryview) -> str:
    try:
        return decode(form, _Tag).type
    except Undecodable:
        return ""


class Assembly:
    """Assembles the messages of one stream. Trees are written below `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._values: dict[int, Buffer | Tree] = {}

    def take(self, frame: Buffer, data: Buffer | None) -> object | None:
        """Take one item; returns the message, with its payload, once it is complete.

        Raises:
            UnknownMessage: the message is of an unknown kind; the next one can be taken.
            Undecodable: the stream does not hold frames.
        """
        try:
            content = read_frame(memoryview(frame))
        except UnknownMessage:
            self.drop()
            raise
        if not isinstance(content, PartFrame):
            return self._complete(content)
        if data is None:
            raise Undecodable("a part without bytes")
        if content.name is None:
            self._values[content.number] = data
        else:
            self._append(content.number, content.name, data)
        return None

    def drop(self) -> None:
        """Drop the values of an unfinished message, its trees included."""
        self._values = {}

    def _complete(self, message: Any) -> object:
        if self._values:
            values = tuple(self._values[index] for index in range(len(self._values)))
            message = message.replace(payload=values)
            self._values = {}
        result: object = message
        return result

    def _append(self, index: int, name: str, data: Buffer) -> None:
        if index not in self._values:
            self._values[index] = Tree(self._directory / str(next(_NUMBERS)))
        tree = self._values[index]
        if not isinstance(tree, Tree):
            raise Undecodable("a value that is bytes and a tree at once")
        path = (tree.path / name).resolve()
        if not path.is_relative_to(tree.path.resolve()):
            raise Undecodable(f"{name} leads out of the tree")
        if name == ROOT:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)
