"""After a wanted change: `python -m tests.wire.golden`."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.wire.golden import (
    DEFAULTS,
    GOLDEN,
    VERSION,
    Golden,
    as_bytes,
    as_text,
    defaults_text,
    goldens,
)
from tests.wire.samples import defaults_of, sample_of
from tests.wire.tokens import from_lines, to_lines, to_plain

from tandem_core.contract.records import Record

GOLDENS = {golden.file: golden for golden in goldens()}
VERSIONS = sorted(GOLDEN.iterdir())
"""The folder of the present version, and those of all that were released."""


def files_of(folder: Path) -> set[str]:
    """The golden files of a version."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.*") if path.is_file()}
    return found - {DEFAULTS}


def expected_form(golden: Golden) -> bytes:
    return as_bytes(golden.file, (GOLDEN / VERSION / golden.file).read_text())


@pytest.mark.parametrize("golden", GOLDENS.values(), ids=GOLDENS)
def test_current_build_writes_golden_bytes(golden: Golden) -> None:
    written = as_text(golden.file, golden.write(golden.value))
    assert written == (GOLDEN / VERSION / golden.file).read_text()


@pytest.mark.parametrize("golden", GOLDENS.values(), ids=GOLDENS)
def test_current_build_reads_golden_bytes(golden: Golden) -> None:
    read = golden.read(expected_form(golden))
    assert golden.write(read) == expected_form(golden)
    assert type(read) is type(golden.value)
    if isinstance(read, msgspec.Struct):
        assert read == golden.value


def test_every_kind_has_golden_file_and_every_file_a_kind() -> None:
    assert files_of(GOLDEN / VERSION) == set(GOLDENS)


def test_defaults_match_golden_file() -> None:
    assert defaults_text() == (GOLDEN / VERSION / DEFAULTS).read_text()


# --- what released versions wrote ---------------------------------------------------------------


def keeps(older: Any, newer: Any) -> bool:
    """Whether everything that an older version wrote is still there; more may be."""
    if isinstance(older, dict) and isinstance(newer, dict):
        return all(key in newer and keeps(value, newer[key]) for key, value in older.items())
    if isinstance(older, list) and isinstance(newer, list):
        return len(older) == len(newer) and all(map(keeps, older, newer))
    return bool(older == newer)


def plain(file: str, form: bytes) -> Any:
    """Bytes as maps and lists."""
    if file.endswith(".json"):
        return msgspec.json.decode(form)
    return form if file.endswith(".hex") else to_plain(form)


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_files_of_released_versions_are_read_in_full(folder: Path) -> None:
    for file in sorted(files_of(folder)):
        form = as_bytes(file, (folder / file).read_text())
        golden = GOLDENS[file]
        again = golden.write(golden.read(form))
        assert keeps(plain(file, form), plain(file, again)), file


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_defaults_of_released_versions_are_unchanged(folder: Path) -> None:
    older = json.loads((folder / DEFAULTS).read_text())
    assert keeps(older, json.loads(defaults_text()))


# --- how samples are made and shown -------------------------------------------------------------


class Inner(Record):
    held: bool = True


class Outer(Record):
    name: str
    seats: list[Inner | None]
    at: int | str | None = 3
    by: dict[int, tuple[Inner, ...]] = msgspec.field(default_factory=dict)


def test_sample_fills_every_field_with_non_default() -> None:
    sample: Outer = sample_of(Outer)
    assert sample.name == "name"
    assert sample.seats == [Inner(held=False), None]
    assert isinstance(sample.at, int)
    assert sample.at != 3
    assert list(sample.by.values()) == [(Inner(held=False),)]


def test_defaults_are_found_in_all_parts_of_record() -> None:
    assert defaults_of([Outer]) == {"Inner.held": True, "Outer.at": 3, "Outer.by": {}}


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, -1, 200, 2**40, -(2**62), 0.5, None, True]},
        "x" * 40,
        b"\0" * 300,
        list(range(20)),
        {str(n): n for n in range(20)},
    ],
)
def test_line_form_of_bytes_round_trips(value: object) -> None:
    form = msgspec.msgpack.encode(value)
    assert from_lines(to_lines(form)) == form


def test_comparison_detects_changed_or_missing_values_and_allows_added_ones() -> None:
    older = msgspec.msgpack.encode({"a": [1, {"b": 2}]})

    def kept_by(value: object) -> bool:
        return keeps(to_plain(older), to_plain(msgspec.msgpack.encode(value)))

    assert kept_by({"a": [1, {"b": 2, "c": 3}], "d": 4})
    assert not kept_by({"a": [1, {"b": 3}]})
    assert not kept_by({"a": [1, {}]})
    assert not kept_by({"a": [1]})
