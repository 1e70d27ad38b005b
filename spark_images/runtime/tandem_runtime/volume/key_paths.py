"""Maps the keys of a volume to file paths, and back.

`("chunk", LaneId("split-0.k3x", 2), 7)` is `chunk/split-0.k3x~2/7`. Each key is one
file. The first part of a key is its kind, which determines the types of the other parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tandem_runtime.protocol.effects import Key
from tandem_runtime.protocol.types import LaneId


def _lane(text: str) -> LaneId:
    split, _, number = text.rpartition("~")
    return LaneId(split, int(number))


_KINDS: dict[str, tuple[Callable[[str], object], ...]] = {
    "book": (),
    "void": (),
    "lanes": (),
    "forgot": (),
    "verified": (),
    "entry": (int,),
    "lane": (_lane,),
    "copy": (_lane,),
    "chunk": (_lane, int),
    "header": (int,),
    "generation": (int,),
    "outbox": (int,),
    "kept": (int,),
}


def path_of(key: Key) -> str:
    """The path of a key, relative to the directory of all keys."""
    return "/".join(_text(part) for part in key)


def key_at(path: str) -> Key | None:
    """The key with this path; None for any other file."""
    kind, *texts = path.split("/")
    parsers = _KINDS.get(kind)
    if parsers is None or len(parsers) != len(texts):
        return None
    try:
        return (kind, *(parse(text) for parse, text in zip(parsers, texts, strict=True)))
    except ValueError:
        return None


def _text(part: object) -> str:
    if isinstance(part, LaneId):
        return f"{part.split}~{part.number}"
    return str(cast("str | int", part))
