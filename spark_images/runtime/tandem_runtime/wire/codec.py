"""The protocol's values as bytes, on the wire and on a volume.

MessagePack, with an extension for each kind of value that the protocol knows: tuples, the named
tuples of its modules (by class name), the book. Nothing else can be read, so bytes of a stranger
cannot make anything but these values. Payloads are bytes here; large ones travel beside a message
(`tandem_runtime.wire.flight`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, cast

import msgpack

from tandem_runtime.protocol import book, data, joining, messages, muster, records

_TUPLE, _NAMED, _BOOK, _FROZENSET = 1, 2, 3, 4

_MODULES: tuple[ModuleType, ...] = (book, data, joining, messages, muster, records)


def _named_tuples() -> dict[str, type]:
    """Every named tuple that the protocol's modules define, by its name."""
    found: dict[str, type] = {}
    for module in _MODULES:
        for name, value in vars(module).items():
            named = isinstance(value, type) and issubclass(value, tuple)
            if named and hasattr(value, "_fields") and found.setdefault(name, value) is not value:
                raise TypeError(f"two kinds of values are called {name}")
    return found


_KINDS = _named_tuples()


class Undecodable(ValueError):
    """Bytes that are not a value of the protocol."""


def encode(value: object) -> bytes:
    """Write a value of the protocol as bytes.

    Raises:
        TypeError: some part of it is of a kind that the protocol does not have.
    """
    return cast("bytes", msgpack.packb(value, default=_pack, strict_types=True, use_bin_type=True))


def decode(form: bytes | memoryview) -> Any:
    """Read what `encode` wrote.

    Raises:
        Undecodable: it is something else, or of another version of the protocol.
    """
    try:
        return msgpack.unpackb(form, ext_hook=_unpack, strict_map_key=False, use_list=False)
    except (ValueError, TypeError, KeyError, msgpack.exceptions.UnpackException) as problem:
        raise Undecodable(f"{len(form)} bytes are no value of the protocol: {problem}") from problem


def _pack(value: object) -> object:
    if isinstance(value, tuple):
        if type(value) is tuple:
            return msgpack.ExtType(_TUPLE, _items(value))
        name = type(value).__name__
        if _KINDS.get(name) is not type(value):
            raise TypeError(f"{name} is no value of the protocol")
        return msgpack.ExtType(_NAMED, _items((name, *value)))
    if isinstance(value, book.Book):
        slots = [getattr(value, slot) for slot in book.Book.__slots__]
        return msgpack.ExtType(_BOOK, _items((book.Book.__slots__, *slots)))
    if isinstance(value, frozenset):
        return msgpack.ExtType(_FROZENSET, _items(sorted(value)))
    if isinstance(value, dict | list | str | int | float | bytes | bool):
        # A subclass, such as a word of an enumeration, travels as what it is made of.
        return next(kind(value) for kind in _PLAIN if isinstance(value, kind))
    raise TypeError(f"{type(value).__name__} is no value of the protocol")


_PLAIN: tuple[Any, ...] = (dict, list, str, int, float, bytes)


def _items(values: Any) -> bytes:
    return encode(list(values))


def _unpack(code: int, form: bytes) -> object:
    # Lists are read as tuples; `Book.seats` alone holds lists.
    values = decode(form)
    if code == _TUPLE:
        return values
    if code == _NAMED:
        return _KINDS[values[0]](*values[1:])
    if code == _FROZENSET:
        return frozenset(values)
    if code == _BOOK:
        return _book(values)
    raise Undecodable(f"extension {code} is unknown")


def _book(values: tuple[Any, ...]) -> book.Book:
    restored = book.Book()
    slots, contents = values[0], values[1:]
    if set(slots) != set(book.Book.__slots__):
        raise Undecodable("the book is of another version")
    for slot, content in zip(slots, contents, strict=True):
        setattr(restored, slot, content)
    restored.seats = {pair: list(seats) for pair, seats in restored.seats.items()}
    return restored
