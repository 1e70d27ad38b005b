"""Typed records: immutable values with named fields, and their encoding as MessagePack or JSON.

Encoded, a record is a map of its fields; fields that have their default are left out. So a field
with a default can be added at any time: older readers skip it, newer readers of older bytes take
the default. Types are checked when bytes are read.
"""

from __future__ import annotations

import threading
from typing import Any, Self, TypeVar, cast, dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _RecordMeta(msgspec.StructMeta):
    """Tells type checkers that records are frozen without every class saying so."""


class Record(msgspec.Struct, metaclass=_RecordMeta, frozen=True, omit_defaults=True):
    """A frozen value: compared and hashed by its fields."""

    def replace(self, **changes: Any) -> Self:
        """The same with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class Tagged(Record, tag=True):
    """A record that is one of several kinds: its bytes name its class."""


T = TypeVar("T")


class Undecodable(ValueError):
    """Bytes that are not the value that was expected."""


class UnknownRecord(Undecodable):
    """An entry of the header log of a kind that is not known here: it must not be passed over."""


def encode(value: object) -> bytes:
    """Write a value as bytes.

    Raises:
        TypeError: some part of it has no form.
    """
    return msgspec.msgpack.encode(value)


def decode(form: bytes | memoryview, kind: type[T]) -> T:
    """Read what `encode` wrote.

    Raises:
        Undecodable: it is something else.
    """
    return cast("T", _decoded(form, kind, msgspec.msgpack.Decoder))


def decode_json(form: bytes | str, kind: type[T]) -> T:
    """Read a document of JSON.

    Raises:
        Undecodable: it is something else.
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
    """The decoder of a kind of value, made once.

    msgspec fills in what it knows of a type while other threads run. One that decodes by the same
    type meanwhile reads what is not there yet, and the process dies.
    """
    decoder = _DECODERS.get((kind, notation))
    if decoder is None:
        with _MAKING:
            decoder = _DECODERS[kind, notation] = notation(kind)
    return decoder
