"""Values of any record, made from its type definition: the same in every run.

Every field differs from its default, so that all of them show in the bytes. A value follows from
its field's name alone: what is added beside it changes nothing.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
from msgspec import inspect

_NOTHING = msgspec.NODEFAULT


class NoSample(Exception):
    """A kind of value that samples cannot be made of yet: teach `_made` to."""


def sample_of(kind: Any, name: str = "") -> Any:
    """A value of a type; of a union the first kind that is not None."""
    return _made(inspect.type_info(kind), name, _NOTHING)


def defaults_of(kinds: list[Any]) -> dict[str, Any]:
    """What the fields of all records that these types consist of mean when they are left out."""
    found: dict[str, Any] = {}
    seen: set[type] = set()
    for kind in kinds:
        _collect(inspect.type_info(kind), found, seen)
    return dict(sorted(found.items()))


def _made(form: inspect.Type, name: str, default: Any) -> Any:
    made: Any = None
    match form:
        case inspect.StructType(cls=cls, fields=fields):
            filled = {field.name: _made(field.type, field.name, field.default) for field in fields}
            made = cls(**{key: value for key, value in filled.items() if value is not None})
        case inspect.UnionType(types=types):
            made = _made(next(t for t in types if not _is_none(t)), name, default)
        case inspect.TupleType(item_types=items):
            made = tuple(_made(item, name, _NOTHING) for item in items)
        case inspect.VarTupleType(item_type=item):
            made = tuple(_items(item, name))
        case inspect.ListType(item_type=item):
            made = _items(item, name)
        case inspect.DictType(key_type=key, value_type=value):
            made = {_made(key, name, _NOTHING): _made(value, name, _NOTHING)}
        case inspect.Metadata(type=inner):
            made = _made(inner, name, default)
        case inspect.AnyType():
            pass  # Bytes that travel beside the message.
        case _:
            made = _scalar(form, name, default)
    return made


def _scalar(form: inspect.Type, name: str, default: Any) -> Any:
    candidates: list[Any]
    match form:
        case inspect.BoolType():
            candidates = [True, False]
        case inspect.IntType():
            number = 1 + zlib.crc32(name.encode()) % 99
            candidates = [number, number + 1]
        case inspect.FloatType():
            candidates = [0.5, 0.25]
        case inspect.StrType():
            candidates = [name, f"{name}-1"]
        case inspect.BytesType():
            candidates = [name.encode(), b"1"]
        case inspect.EnumType(cls=cls):
            candidates = list(cls)
        case inspect.LiteralType(values=values):
            candidates = list(values)
        case _:
            raise NoSample(f"{name}: {form}")
    return next(value for value in candidates if value != default)


def _items(item: inspect.Type, name: str) -> list[Any]:
    """One item; where an item may also be None, that too."""
    items = [_made(item, name, _NOTHING)]
    optional = isinstance(item, inspect.UnionType) and any(map(_is_none, item.types))
    return [*items, None] if optional else items


def _is_none(form: inspect.Type) -> bool:
    return isinstance(form, inspect.NoneType)


def _collect(form: inspect.Type, found: dict[str, Any], seen: set[type]) -> None:
    """Walk through a type."""
    match form:
        case inspect.StructType(cls=cls, fields=fields):
            if cls in seen:
                return
            seen.add(cls)
            for field in fields:
                if not field.required:
                    found[f"{cls.__name__}.{field.name}"] = _default(field)
                _collect(field.type, found, seen)
        case inspect.UnionType(types=inner) | inspect.TupleType(item_types=inner):
            for each in inner:
                _collect(each, found, seen)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            _collect(item, found, seen)
        case inspect.DictType(key_type=key, value_type=value):
            _collect(key, found, seen)
            _collect(value, found, seen)


def _default(field: inspect.Field) -> Any:
    made = field.default_factory() if field.default is _NOTHING else field.default
    return msgspec.to_builtins(made)
