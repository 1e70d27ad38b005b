"""A chunk as bytes: its note, then the rows of each stream as Arrow.

| bytes | content |
|---|---|
| 4 | length of the head, little endian |
| n | the head: the note, and for each stream its name and the length of its rows |
| | for each stream, at the next multiple of 64: an Arrow IPC stream |

Rows stand in the order in which they came, with the hash of their key beside them, so that a
reader's share can be cut out without looking at keys again.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Sequence
from typing import Any, cast

import pyarrow as pa

from tandem.routing.codec import from_bytes
from tandem.routing.function import Share
from tandem_runtime.protocol.data import Chunk, Note
from tandem_runtime.wire.codec import Undecodable, decode, encode

HASH = "_hash"
"""Column with the hash of each row's key."""

_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64

Rows = tuple[str, Any]
"""The name of a stream, and rows of it as a record batch with the column `HASH`."""
Buffer = Any


def chunk_bytes(chunk: Chunk) -> list[Buffer]:
    """The pieces that a chunk's bytes consist of; one piece if they are known already."""
    if isinstance(chunk.payload, pa.Buffer | bytes):
        return [chunk.payload]
    batches: dict[str, list[Any]] = {}
    for stream, batch in cast("tuple[Rows, ...]", chunk.payload):
        batches.setdefault(stream, []).append(batch)
    return _assembled(chunk.note, {stream: _ipc(rows) for stream, rows in batches.items()})


def read_note(form: Buffer) -> Note:
    """The note of a chunk, of which at least the head is there.

    Raises:
        Undecodable: the bytes do not begin like a chunk.
    """
    return _head(form)[0]


def read_rows(form: Buffer) -> list[tuple[str, list[Any]]]:
    """The rows of a chunk: for each stream its record batches, without the hashes; zero copy."""
    found = []
    for stream, rows in _streams(form):
        batches = [batch.drop_columns([HASH]) for batch in pa.ipc.open_stream(rows)]
        found.append((stream, batches))
    return found


def share_of(form: Buffer, select: object) -> list[Buffer]:
    """The part of a chunk that belongs to one pair, as pieces of a chunk's bytes.

    `select` is (routing function in its canonical form, name of the pair); None is everything.
    """
    if select is None:
        return [form]
    function, pair = cast("tuple[bytes, str]", select)
    share = _share(function, pair)
    if share is None:
        return [form]
    note, _, __ = _head(form)
    kept = {}
    for stream, rows in _streams(form):
        batches = [_held(batch, share) for batch in pa.ipc.open_stream(rows)]
        kept[stream] = _ipc([batch for batch in batches if batch.num_rows] or batches[:1])
    return _assembled(note, kept)


@functools.lru_cache(maxsize=64)
def _share(function: bytes, pair: str) -> Share | None:
    """What a pair owns; None if that is everything."""
    routing = from_bytes(function)
    return routing.share_of(pair) if len(routing.pairs) > 1 else None


def _held(batch: Any, share: Share) -> Any:
    hashes = batch.column(HASH).to_numpy()
    return batch.filter(pa.array(share.holds(hashes)))


def _ipc(batches: Sequence[Any]) -> Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def _assembled(note: Note, streams: dict[str, Buffer]) -> list[Buffer]:
    head = encode((note, tuple((stream, len(rows)) for stream, rows in streams.items())))
    pieces: list[Buffer] = [_LENGTH.pack(len(head)), head]
    length = _LENGTH.size + len(head)
    for rows in streams.values():
        padding = -length % _ALIGNMENT
        pieces += [bytes(padding), rows]
        length += padding + len(rows)
    return pieces


def _head(form: Buffer) -> tuple[Note, tuple[tuple[str, int], ...], int]:
    view = memoryview(form)
    if len(view) < _LENGTH.size:
        raise Undecodable(f"{len(view)} bytes are too few for a chunk")
    (length,) = _LENGTH.unpack(view[: _LENGTH.size])
    end = _LENGTH.size + length
    if len(view) < end:
        raise Undecodable(f"a chunk's head of {length} bytes is cut off")
    note, streams = decode(view[_LENGTH.size : end])
    return note, streams, end


def _streams(form: Buffer) -> Iterable[tuple[str, Buffer]]:
    whole = form if isinstance(form, pa.Buffer) else pa.py_buffer(form)
    _, streams, at = _head(whole)
    for stream, length in streams:
        at += -at % _ALIGNMENT
        yield stream, whole.slice(at, length)
        at += length
