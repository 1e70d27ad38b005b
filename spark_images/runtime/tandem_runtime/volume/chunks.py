"""A chunk as bytes: its note, then segments of rows as Arrow.

| bytes | content |
|---|---|
| 4 | length of the head, little endian |
| n | the head: the note, and of each segment its stream, source partition, first position, first ordinal, number of rows, and the length of its Arrow stream |
| | for each segment, at the next multiple of 64: an Arrow IPC stream |

All rows of a source partition in a chunk are one segment, in the order of reading. A sealed chunk
has the hash of its key beside each row, so that a reader's share can be cut out without hashing
again. A share has the same segments with fewer rows, and no hashes.
"""  # noqa: E501

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import pyarrow as pa

from tandem_core.contract.records import Record, Undecodable, decode, encode
from tandem_core.routing.function import OwnedKeys
from tandem_core.routing.function_codec import from_bytes
from tandem_runtime.protocol.effects import Select
from tandem_runtime.protocol.row_order import by_position, row_ends
from tandem_runtime.protocol.types import Chunk, Header, Note, Position, Segment

HASH = "_hash"
"""Column with the hash of each row's key."""

_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64
_END_OF_STREAM = 8
"""Bytes that end an Arrow stream."""

Rows = tuple[str, Any]
"""The name of a stream, and rows of it as a record batch with the column `HASH`."""
Buffer = Any


class SegmentHead(Record):
    """Describes one segment in a chunk's head; its rows are `length` bytes of Arrow."""

    stream: str
    partition: str
    position: Position
    ordinal: int
    rows: int
    length: int


class Head(Record):
    """The part before a chunk's rows: its note, and a description of its segments."""

    note: Note
    segments: tuple[SegmentHead, ...]


class StoredSegment(NamedTuple):
    """A segment of a chunk or of a share: where it belongs, and its rows without their hashes."""

    stream: str
    partition: str
    position: Position
    ordinal: int
    rows: int
    """Rows that the sealed chunk has of the partition; a share may hold fewer."""
    batches: list[Any]


def chunk_bytes(chunk: Chunk) -> Buffer:
    """Encode a chunk; returns its payload if that is encoded already."""
    if isinstance(chunk.payload, pa.Buffer | bytes):
        return chunk.payload
    sealed: dict[tuple[str, str], StoredSegment] = {}
    for segment in cast("tuple[Segment, ...]", chunk.payload):
        if segment.rows:
            _put(sealed, segment)
    return _written(chunk.note, list(sealed.values()))


def read_note(form: Buffer) -> Note:
    """The note of a chunk; only the head has to be there.

    Raises:
        Undecodable: the bytes do not begin like a chunk.
    """
    return _head(form)[0]


def read_segments(form: Buffer) -> Iterator[StoredSegment]:
    """The segments of a chunk or of a share; zero copy."""
    for segment in _stored(form):
        batches = [_without_hashes(batch) for batch in segment.batches]
        yield segment._replace(batches=batches)


def epoch_rows(forms: Iterable[Buffer], header: Header) -> dict[str, list[Any]]:
    """The rows of an epoch's chunks: the record batches by stream, in order of partition, position.

    Raises:
        RowsOutOfPlace: some are missing or come twice.
    """
    found: dict[str, list[Any]] = {}
    read = (each for form in forms for each in read_segments(form))
    for segment in by_position(read, row_ends(header)):
        found.setdefault(segment.stream, []).extend(segment.batches)
    return found


def share_of(form: Buffer, select: Select | None) -> Buffer:
    """The part of a chunk that belongs to one pair, in the form of a chunk; None: everything."""
    if select is None:
        return form
    share = share_named(select.function.form, select.label)
    if share is None:
        return form
    kept = [
        segment._replace(batches=[held(batch, share) for batch in segment.batches])
        for segment in _stored(form)
    ]
    return _written(read_note(form), kept)


@functools.lru_cache(maxsize=64)
def share_named(function: bytes, pair: str) -> OwnedKeys | None:
    """The share of a pair; None if it owns all keys."""
    routing = from_bytes(function)
    return routing.share_of(pair) if len(routing.pairs) > 1 else None


def held(batch: Any, share: OwnedKeys) -> Any:
    """The rows of a share, without their hashes."""
    hashes = batch.column(HASH).to_numpy()
    return _without_hashes(batch).filter(pa.array(share.holds(hashes)))


def _without_hashes(batch: Any) -> Any:
    return batch.drop_columns([HASH]) if HASH in batch.schema.names else batch


def _put(sealed: dict[tuple[str, str], StoredSegment], segment: Segment) -> None:
    """Append rows to their partition's segment."""
    stream, batch = cast("Rows", segment.payload)
    at = (stream, segment.partition)
    before = sealed.get(at)
    if before is None:
        sealed[at] = StoredSegment(
            stream=stream,
            partition=segment.partition,
            position=segment.position,
            ordinal=segment.ordinal,
            rows=segment.rows,
            batches=[batch],
        )
    else:
        before.batches.append(batch)
        sealed[at] = before._replace(rows=before.rows + segment.rows)


def _written(note: Note, segments: Sequence[StoredSegment]) -> Buffer:
    """Encode rows into one buffer without a copy: all lengths are computed beforehand."""
    lengths = [_stream_length(segment.batches) for segment in segments]
    described = tuple(
        SegmentHead(
            stream=each.stream,
            partition=each.partition,
            position=each.position,
            ordinal=each.ordinal,
            rows=each.rows,
            length=length,
        )
        for each, length in zip(segments, lengths, strict=True)
    )
    head = encode(Head(note, described))
    places = list(_places(_LENGTH.size + len(head), lengths))
    whole = pa.allocate_buffer(places[-1] + lengths[-1] if places else _LENGTH.size + len(head))
    with pa.FixedSizeBufferWriter(whole) as writer:
        writer.write(_LENGTH.pack(len(head)) + head)
        for segment, place in zip(segments, places, strict=True):
            writer.write(bytes(place - writer.tell()))
            with pa.ipc.new_stream(writer, segment.batches[0].schema) as stream:
                for batch in _not_empty(segment.batches):
                    stream.write_batch(batch)
    return whole


def _stream_length(batches: Sequence[Any]) -> int:
    rows = sum(pa.ipc.get_record_batch_size(batch) for batch in _not_empty(batches))
    return int(batches[0].schema.serialize().size + rows + _END_OF_STREAM)


def _not_empty(batches: Iterable[Any]) -> Iterator[Any]:
    return (batch for batch in batches if batch.num_rows)


def _places(at: int, lengths: Iterable[int]) -> Iterator[int]:
    """The offset of each Arrow stream, the first one at or after `at`."""
    for length in lengths:
        at += -at % _ALIGNMENT
        yield at
        at += length


def _head(form: Buffer) -> tuple[Note, tuple[SegmentHead, ...], int]:
    view = memoryview(form)
    if len(view) < _LENGTH.size:
        raise Undecodable(f"{len(view)} bytes are too few for a chunk")
    (length,) = _LENGTH.unpack(view[: _LENGTH.size])
    end = _LENGTH.size + length
    if len(view) < end:
        raise Undecodable(f"a chunk's head of {length} bytes is cut off")
    head = decode(view[_LENGTH.size : end], Head)
    return head.note, head.segments, end


def _stored(form: Buffer) -> Iterator[StoredSegment]:
    whole = form if isinstance(form, pa.Buffer) else pa.py_buffer(form)
    _, segments, end = _head(whole)
    places = _places(end, [segment.length for segment in segments])
    for each, place in zip(segments, places, strict=True):
        yield StoredSegment(
            stream=each.stream,
            partition=each.partition,
            position=each.position,
            ordinal=each.ordinal,
            rows=each.rows,
            batches=list(pa.ipc.open_stream(whole.slice(place, each.length))),
        )
