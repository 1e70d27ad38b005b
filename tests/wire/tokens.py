"""MessagePack as text that diffs well: a line for each token, its bytes and what they say."""

from __future__ import annotations

from typing import Any

import msgspec

_SEPARATOR = "  # "
_MAP, _ARRAY = "map", "array"

_SIZED = {  # bytes of the length that follows
    0xC4: 1, 0xC5: 2, 0xC6: 4,  # bytes
    0xD9: 1, 0xDA: 2, 0xDB: 4,  # text
}  # fmt: skip
_NUMBERS = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8} | {
    0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
}  # fmt: skip
_ARRAYS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}


def to_lines(form: bytes) -> str:
    """Bytes of MessagePack as text."""
    lines: list[str] = []
    end = _walk(form, 0, 0, lines)
    assert end == len(form), "something follows the value"
    return "".join(f"{line}\n" for line in lines)


def from_lines(text: str) -> bytes:
    """The bytes again."""
    return bytes.fromhex("".join(line.partition(_SEPARATOR)[0] for line in text.splitlines()))


def to_plain(form: bytes) -> Any:
    """Bytes of MessagePack as maps and lists, whatever their keys are."""
    return _plain(form, 0)[0]


def _plain(form: bytes, at: int) -> tuple[Any, int]:
    head, items, what = _token(form, at)
    if not what:
        return msgspec.msgpack.decode(form[at : at + head]), at + head
    at += head
    values = []
    for _ in range(items):
        value, at = _plain(form, at)
        values.append(value)
    if what == _ARRAY:
        return values, at
    return {repr(k): v for k, v in zip(values[::2], values[1::2], strict=True)}, at


def _walk(form: bytes, at: int, depth: int, lines: list[str]) -> int:
    """Add the lines of the value that begins here; where it ends."""
    head, items, what = _token(form, at)
    said = what or repr(msgspec.msgpack.decode(form[at : at + head]))
    lines.append(f"{'  ' * depth}{form[at : at + head].hex()}{_SEPARATOR}{said}")
    at += head
    for _ in range(items):
        at = _walk(form, at, depth + 1, lines)
    return at


def _token(form: bytes, at: int) -> tuple[int, int, str]:
    """How long a token is, how many values belong to it, and what it is if it has such."""
    kind = form[at]
    if 0x80 <= kind <= 0x8F:
        return 1, 2 * (kind & 0xF), _MAP
    if 0x90 <= kind <= 0x9F:
        return 1, kind & 0xF, _ARRAY
    if 0xA0 <= kind <= 0xBF:
        return 1 + (kind & 0x1F), 0, ""
    if kind in _SIZED:
        size = _SIZED[kind]
        return 1 + size + int.from_bytes(form[at + 1 : at + 1 + size]), 0, ""
    for table, width, name in ((_MAPS, 2, _MAP), (_ARRAYS, 1, _ARRAY)):
        if kind in table:
            count = int.from_bytes(form[at + 1 : at + 1 + table[kind]])
            return 1 + table[kind], width * count, name
    return 1 + _NUMBERS.get(kind, 0), 0, ""
