"""Golden bytes: every value that travels or lies on a volume, as this release writes it.

`python -m tests.wire.golden` writes those of the present version anew; read the difference before
keeping it. A folder of a released version is never written again: its values have to be readable
for ever.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np
from tests.wire.samples import defaults_of, sample_of
from tests.wire.tokens import from_lines, to_lines

from tandem_core.contract.intent import Intent
from tandem_core.contract.intent_text import intent_text, read_intent_text
from tandem_core.contract.records import decode, encode
from tandem_core.contract.reports import (
    Card,
    MemberRefusal,
    MemberReport,
    MergeState,
    ReplicaState,
    SplitState,
    decode_card,
    decode_refusal,
    decode_report,
    encode_report,
)
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import from_bytes, to_bytes
from tandem_runtime.environment.lease_register import place_of, with_place
from tandem_runtime.environment.pod_base import PeersAnswer
from tandem_runtime.protocol.log.entries import Entry
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    END_OF_TIME,
    Chunk,
    Header,
    Mark,
    Note,
    Position,
    RegisterState,
)
from tandem_runtime.services.state.birth import Birth
from tandem_runtime.volume.chunks import Head, chunk_bytes, read_note
from tandem_runtime.volume.volume import STORED
from tandem_runtime.wire.flight import Hello
from tandem_runtime.wire.frames import Frame, read_frame

GOLDEN = Path(__file__).parent / "golden"
_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
VERSION: str = tomllib.loads(_PROJECT.read_text())["project"]["version"]

DEFAULTS = "defaults.json"
"""What fields mean that were left out."""

RECORDS: dict[str, Any] = {
    "document/hello": Hello,
    "document/around": PeersAnswer,
    "document/birth": Birth,
    "document/place": RegisterState,
    "document/chunk-head": Head,
}
"""Kinds of records besides messages, entries and what volumes hold."""

REPORTS: dict[str, Any] = {
    "split": SplitState,
    "replica": ReplicaState,
    "merge": MergeState,
}
"""What members report of themselves (`/state`), by their kind."""


class Golden(NamedTuple):
    """A value, how it is written and read, and the file that holds its bytes."""

    file: str
    """Below the version's folder. `.txt`: MessagePack; `.json`: as it is; `.hex`: other bytes."""
    value: Any
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


def goldens() -> Iterator[Golden]:
    """One for each kind, and some by hand where one does not show all forms."""
    for kind in get_args(Frame):
        tag = kind.__struct_config__.tag
        yield Golden(f"message/{tag}.txt", sample_of(kind), encode, _read_message)
    for kind in get_args(Entry):
        yield _record(f"entry/{kind.__name__}", sample_of(kind), Entry)
    for key, kind in STORED.items():
        yield _record(f"stored/{key}", sample_of(kind, key), kind)
    for name, kind in RECORDS.items():
        yield _record(name, sample_of(kind), kind)
    for name, part in REPORTS.items():
        report = sample_of(MemberReport).replace(part=sample_of(part))
        yield Golden(f"report/{name}.json", report, _write_report, decode_report)
    refusal = sample_of(MemberRefusal)
    yield Golden("report/refusal.json", refusal, _write_report, decode_refusal)
    yield Golden("document/card.json", sample_of(Card), _write_report, decode_card)
    yield _record("entry/Header.by-hand", _header(), Entry)
    yield Golden("document/intent.json", sample_of(Intent), _write_intent, read_intent_text)
    yield Golden("document/lease.json", sample_of(RegisterState), _write_lease, _read_lease)
    yield Golden("document/chunk-without-rows.hex", sample_of(Note), _write_chunk, read_note)
    yield Golden("document/function.hex", _function(), to_bytes, from_bytes)


def kinds() -> list[Any]:
    """All types whose bytes are golden."""
    documents = [*RECORDS.values(), Intent, MemberReport, *REPORTS.values(), MemberRefusal, Card]
    return [*get_args(Frame), *get_args(Entry), *STORED.values(), *documents]


def defaults_text() -> str:
    """What fields mean that are left out, as the file says it."""
    return json.dumps(defaults_of(kinds()), indent=1) + "\n"


def as_text(file: str, form: bytes) -> str:
    """Bytes as their file holds them."""
    if file.endswith(".json"):
        return form.decode()
    return to_lines(form) if file.endswith(".txt") else form.hex() + "\n"


def as_bytes(file: str, text: str) -> bytes:
    """The bytes that a file holds."""
    if file.endswith(".json"):
        return text.encode()
    return from_lines(text) if file.endswith(".txt") else bytes.fromhex(text)


def write_all() -> None:
    """Write the folder of the present version anew."""
    folder = GOLDEN / VERSION
    for old in folder.rglob("*.*"):
        old.unlink()
    for golden in goldens():
        path = folder / golden.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_text(golden.file, golden.write(golden.value)))
    (folder / DEFAULTS).write_text(defaults_text())


def _record(name: str, value: Any, kind: Any) -> Golden:
    return Golden(f"{name}.txt", value, encode, lambda form: decode(form, kind))


def _read_message(form: bytes) -> Any:
    return read_frame(memoryview(form))


def _header() -> Header:
    """Positions of all three forms, and times that take eight bytes."""
    positions: dict[str, Position] = {
        "files": ("part-7.json", 120, None),
        "generator": 2**40,
        "queue": "5f",
    }
    header: Header = sample_of(Header)
    return header.replace(
        marks=tuple((name, Mark(place, 1_700_000_000_000)) for name, place in positions.items()),
        watermarks=(("ended", END_OF_TIME), ("silent", BEGINNING_OF_TIME)),
        final=False,
    )


def _write_intent(intent: Intent) -> bytes:
    return intent_text(intent).encode()


def _write_report(report: MemberReport | MemberRefusal) -> bytes:
    return msgspec.json.format(encode_report(report), indent=1) + b"\n"


def _write_lease(place: RegisterState) -> bytes:
    lease = with_place({"metadata": {"name": "p-register"}}, place)
    return msgspec.json.format(msgspec.json.encode(lease), indent=1) + b"\n"


def _read_lease(form: bytes) -> RegisterState:
    return place_of(json.loads(form))


def _write_chunk(note: Note) -> bytes:
    return bytes(chunk_bytes(Chunk(note, ())))


def _function() -> RoutingFunction:
    hot = np.array([7, 2**63], dtype=np.uint64)
    return RoutingFunction(("pair-0", "pair-1"), (4, 5), hot, np.array([1, 0], dtype=np.uint16))


if __name__ == "__main__":
    write_all()
