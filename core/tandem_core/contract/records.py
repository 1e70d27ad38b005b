"""Typed records: immutable values with named fields, and their encoding as MessagePack or JSON.

A record is encoded as a map of its fields, without those at their default. A field with a default
can therefore be added at any time: older readers skip it, newer readers of older bytes take the
default. Types are checked when bytes are read.
"""

from __future__ import annotations

import threading
from typing import Any, Self, TypeVar, cast, dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _RecordMeta(msgspec.StructMeta):
    """Tells type checkers that records are frozen without every class saying so."""


class Record(msgspec.Struct, metaclass=_RecordMeta, frozen=True, omit_defaults=True):
    """A frozen value, compared and hashed by its fields."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class Tagged(Record, tag=True):
    """A record that is one of several kinds; its bytes name its class."""


T = TypeVar("T")


class Undecodable(ValueError):
    """The bytes do not decode to the expected type."""


class UnknownRecord(Undecodable):
    """The header log has an entry of a kind unknown to this version; it must not be skipped."""


def encode(value: object) -> bytes:
    """Encode a value as MessagePack.

    Raises:
        TypeError: a part of the value cannot be encoded.
    """
    return msgspec.msgpack.encode(value)


def decode(form: bytes | memoryview, kind: type[T]) -> T:
    """Decode what `encode` wrote.

    Raises:
        Undecodable: the bytes are not a `kind`.
    """
    return cast("T", _decoded(form, kind, msgspec.msgpack.Decoder))


def decode_json(form: bytes | str, kind: type[T]) -> T:
    """Decode a JSON document.

    Raises:
        Undecodable: the document is not a `kind`.
    """
    return cast("T", _decoded(form, kind, msgspec.json.Decoder))


def _decoded(form: Any, kind: Any, notation: Any) -> Any:
    try:
        return _decoder(kind, notation).decode(form)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        name = getattr(kind, "__name__", kind)
        raise Undecodable(f"{len(form)} bytes are no {name}: {problem}") from problem


_DECODERS: dict[tuple[Any, Any], Any] = {}
_MAKING = threading.Lock()


def _decoder(kind: Any, notation: Any) -> Any:
    """Return the decoder of a type, creating it once.

    msgspec analyses a type while other threads run. A thread that decodes by the same type
    meanwhile reads incomplete data, and the process crashes.
    """
    decoder = _DECODERS.get((kind, notation))
    if decoder is None:
        with _MAKING:
            decoder = _DECODERS[kind, notation] = notation(kind)
    return decoder
