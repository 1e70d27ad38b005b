"""A partition read again from one position to another gives the rows that were taken in."""

import gzip
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.builders import (
    FakeClock,
    files_stream,
    generator_stream,
    json_lines,
    opened,
    read_now,
    read_to_end,
    rejected_of,
    write,
)

from tandem_core.model.spec import Stream
from tandem_runtime.protocol.types import Mark
from tandem_runtime.sources.base import Batch
from tandem_runtime.sources.files.position import FileDecision, FileVerdict, place_of
from tandem_runtime.sources.formats import text_file
from tandem_runtime.sources.replay import NotReplayable, replay

PARTITION = "payments/0"
SETTLED = 2.5


class Reading:
    """A source read by one process after the other, and all that it gave."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.clock = FakeClock()
        self.batches: list[Batch] = []
        self._source = opened(stream, PARTITION, self.clock)

    @property
    def end(self) -> Any:
        return self.batches[-1].end if self.batches else 0

    def reads(self) -> "Reading":
        """What is there now."""
        read = read_to_end if self.stream.source.bounded else read_now  # type: ignore[union-attr]
        self.batches += read(self._source, self.end)
        return self

    def settles(self) -> "Reading":
        """Nothing happens for a while; an unfinished line is taken as it is."""
        self.clock.wait(SETTLED)
        self.batches += read_now(self._source, self.end)
        return self

    def restarts(self) -> "Reading":
        """Another process goes on, from what the last one told."""
        self._source = opened(self.stream, PARTITION, self.clock)
        return self

    def marks(self) -> Iterator[Mark]:
        """Where it stood after each batch."""
        rows = 0
        yield Mark(position=0, event_time=0)
        for batch in self.batches:
            rows += batch.rows.num_rows
            yield Mark(position=batch.end, event_time=0, rows=rows)

    def rows(self, first: int, last: int) -> list[Any]:
        return [row for batch in self.batches[first:last] for row in batch.rows.to_pylist()]


def check(reading: Reading) -> None:
    """Every stretch between two positions gives what was taken in between them."""
    marks = list(reading.marks())
    for first, start in enumerate(marks):
        for last, end in enumerate(marks[first:], first):
            again = replay(reading.stream, PARTITION, start, end)
            assert [r for b in again for r in b.to_pylist()] == reading.rows(first, last)


def watched(directory: Path, **more: Any) -> Reading:
    directory.mkdir(exist_ok=True)
    return Reading(files_stream(directory, schema="user STRING", bounded=False, **more))


def names(*parts: str) -> bytes:
    return json_lines(parts)


def test_rows_of_several_files_are_replayed(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.json.gz"):
        write(tmp_path, name, names(*(f"{name}-{n}" for n in range(40))))
    slow = files_stream(tmp_path, schema="user STRING", rate=100)
    reading = Reading(slow).reads()
    assert len(reading.batches) > 10
    check(reading)


def test_rows_around_rejected_ones_are_replayed(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        write(tmp_path, name, names("x") + b'{"user": 7}\nnonsense\n\n' + names("y", "z"))
    reading = Reading(files_stream(tmp_path, schema="user STRING", rate=20)).reads()
    assert len(rejected_of(reading.batches)) == 4
    check(reading)


@pytest.mark.parametrize("content", [b"wrong\nx\ny\n", b"\nuser,other\nx,y\nz,w\n"])
@pytest.mark.parametrize("rate", [20, None])
def test_file_rejected_midway_is_replayed(tmp_path: Path, content: bytes, rate: int | None) -> None:
    write(tmp_path, "a.csv", content)
    write(tmp_path, "b.csv", b"user\nx\ny\n")
    stream = files_stream(tmp_path, schema="user STRING", file_format="csv", rate=rate)
    check(Reading(stream).reads())


def test_late_file_is_not_replayed(tmp_path: Path) -> None:
    reading = watched(tmp_path)
    for name in ("b.json", "d.json"):
        write(tmp_path, name, names(name))
    reading.reads()
    write(tmp_path, "a.json", names("late"))
    write(tmp_path, "c.json", names("late too"))
    reading.clock.wait(SETTLED)
    write(tmp_path, "e.json", names("e"))
    reading.reads()
    assert {each.file for each in rejected_of(reading.batches)} == {"a.json", "c.json"}
    check(reading)


def test_late_file_is_not_mistaken_for_earlier_one(tmp_path: Path) -> None:
    reading = watched(tmp_path)
    for name in ("b.json", "d.json"):
        write(tmp_path, name, names(name))
    reading.reads()
    write(tmp_path, "c.json", names("late"))
    reading.clock.wait(SETTLED)
    # A later change: by time alone the late file could have been read.
    write(tmp_path, "e.json", names("e"))
    write(tmp_path, "f.json", names("f"))
    reading.reads().restarts().reads()
    assert place_of(reading.end).decisions == (FileDecision("c.json", -1, FileVerdict.LEFT_OUT),)
    check(reading)
    assert len(rejected_of(reading.batches)) == 1


def test_growth_of_passed_file_is_not_replayed(tmp_path: Path) -> None:
    reading = watched(tmp_path)
    write(tmp_path, "a.json", names("a"))
    write(tmp_path, "b.json", names("b"))
    reading.reads()
    with (tmp_path / "a.json").open("ab") as file:
        file.write(names("too late"))
    reading.clock.wait(SETTLED)
    write(tmp_path, "c.json", names("c"))
    reading.reads()
    assert [each.file for each in rejected_of(reading.batches)] == ["a.json"]
    marks = list(reading.marks())
    again = replay(reading.stream, PARTITION, marks[0], marks[-1])
    assert [row["user"] for batch in again for row in batch.to_pylist()] == ["a", "b", "c"]
    # Where it was not known yet how far the file was read, nobody guesses.
    with pytest.raises(NotReplayable):
        replay(reading.stream, PARTITION, marks[0], marks[1])


def test_growing_last_file_is_replayed(tmp_path: Path) -> None:
    reading = watched(tmp_path)
    write(tmp_path, "a.json", names("a"))
    reading.reads()
    for number in range(3):
        with (tmp_path / "a.json").open("ab") as file:
            file.write(names(f"more {number}"))
        reading.reads()
    check(reading)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("zipped", [False, True])
def test_line_read_before_it_was_complete_is_replayed_as_read(
    tmp_path: Path, *, restart: bool, zipped: bool
) -> None:
    stream = files_stream(tmp_path, schema="user STRING", bounded=False, file_format="csv")
    path = tmp_path / ("a.csv.gz" if zipped else "a.csv")

    def put(text: bytes) -> None:
        path.write_bytes(gzip.compress(text) if zipped else text)

    put(b"user\nwhole\nhal")
    reading = Reading(stream).reads().settles()
    assert reading.rows(0, 99)[-1] == {"user": "hal"}
    if restart:
        reading.restarts()
    put(b"user\nwhole\nhalf\nmore\nhalf aga")
    reading.reads().settles()
    put(b"user\nwhole\nhalf\nmore\nhalf again\n")
    write(tmp_path, "b.csv", b"user\nlast")
    reading.reads().settles()
    assert [row["user"] for row in reading.rows(0, 99)] == [
        "whole", "hal", "f", "more", "half aga", "in", "last",
    ]  # fmt: skip
    check(reading)


def test_unterminated_last_line_adds_nothing_to_position(tmp_path: Path) -> None:
    for number in range(40):
        write(tmp_path, f"{number:02}.json", names(str(number)).rstrip())
    reading = Reading(files_stream(tmp_path, schema="user STRING", rate=20)).reads()
    assert len(reading.rows(0, 99)) == 40
    # Of the last file it is not known yet whether it grows.
    assert len(place_of(reading.end).decisions) <= 1
    check(reading)


@pytest.mark.parametrize("lost", [5, 4000, 9000])
def test_damaged_file_replays_equally_from_any_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    monkeypatch.setattr(text_file, "BLOCK", 5000)
    text = b"".join(names(os.urandom(20).hex()) for _ in range(600))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text)[:-lost])
    write(tmp_path, "b.json", names("b"))
    reading = Reading(files_stream(tmp_path, schema="user STRING", rate=2000))
    reading.batches.append(opened(reading.stream).read(0))
    reading.reads()
    assert rejected_of(reading.batches)
    check(reading)


def _damaged_gzip(directory: Path) -> None:
    (directory / "a.json.gz").write_bytes(gzip.compress(names(*"xyz"))[:-6])


def _damaged_after_an_unfinished_line(directory: Path) -> None:
    text = b"".join(names(os.urandom(20).hex()) for _ in range(600))
    (directory / "a.json.gz").write_bytes(gzip.compress(text)[:-4000])


def _not_parquet(directory: Path) -> None:
    (directory / "a.parquet").write_bytes(b"PAR1 nothing of use")


def _bad_header(directory: Path) -> None:
    write(directory, "a.csv", b"wrong\nx\ny\n")


def _unusable_name(directory: Path) -> None:
    (directory / os.fsdecode(b"a\xff.json")).write_bytes(names("x"))


@pytest.mark.parametrize(
    ("put", "file_format"),
    [
        (_damaged_gzip, "json"),
        (_damaged_after_an_unfinished_line, "json"),
        (_not_parquet, "parquet"),
        (_bad_header, "csv"),
        (_unusable_name, "json"),
    ],
)
def test_file_rejected_as_whole_is_rejected_once_across_readers(
    tmp_path: Path, put: Callable[[Path], None], file_format: str
) -> None:
    reading = watched(tmp_path, file_format=file_format)
    put(tmp_path)
    reading.reads().settles()
    assert len(rejected_of(reading.batches)) == 1
    for _ in range(2):
        reading.restarts().reads().settles()
    assert len(rejected_of(reading.batches)) == 1
    check(reading)


def test_vanished_file_is_rejected_once_across_readers(tmp_path: Path) -> None:
    reading = watched(tmp_path)
    write(tmp_path, "a.json", names("a"))
    reading.reads()
    (tmp_path / "a.json").unlink()
    for _ in range(3):
        reading.restarts().reads()
    assert [each.file for each in rejected_of(reading.batches)] == ["a.json"]
    write(tmp_path, "b.json", names("b"))
    reading.restarts().reads()
    assert [row["user"] for row in reading.rows(0, 99)] == ["a", "b"]
    assert place_of(reading.end).decisions == ()


def test_damage_after_unterminated_line_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    reading = watched(tmp_path)
    path.write_bytes(gzip.compress(names("a") + names("b").rstrip()))
    reading.reads().settles()
    assert not rejected_of(reading.batches)
    path.write_bytes(path.read_bytes() + b"no gzip")
    for _ in range(2):
        reading.restarts().reads().settles()
    assert len(rejected_of(reading.batches)) == 1


def test_parquet_files_are_replayed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        table = pa.table({"user": [f"{name}{n}" for n in range(300)]})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=70)
    (tmp_path / "ab.parquet").write_bytes(b"PAR1 nothing of use")
    stream = files_stream(tmp_path, schema="user STRING", file_format="parquet", rate=1000)
    reading = Reading(stream).reads()
    assert len(reading.batches) > 5
    check(reading)


def test_generated_rows_are_replayed(tmp_path: Path) -> None:  # noqa: ARG001
    stream = generator_stream(rate=1000, rows=900, watermark="at", jitter=500)
    reading = Reading.__new__(Reading)
    reading.stream, reading.batches = stream, read_to_end(opened(stream))
    assert len(reading.batches) > 3
    check(reading)


def _gone(directory: Path) -> None:
    (directory / "b.json").unlink()


def _shorter(directory: Path) -> None:
    (directory / "b.json").write_bytes(names("b"))


def _grown(directory: Path) -> None:
    with (directory / "a.json").open("ab") as file:
        file.write(names("more"))


@pytest.mark.parametrize("change", [_gone, _shorter, _grown])
def test_replay_of_rows_missing_from_source_raises(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    for name in "abc":
        write(tmp_path, f"{name}.json", names(*(f"{name}{n}" for n in range(9))))
    reading = Reading(files_stream(tmp_path, schema="user STRING", rate=100)).reads()
    marks = list(reading.marks())
    change(tmp_path)
    with pytest.raises(NotReplayable):
        replay(reading.stream, PARTITION, marks[0], marks[-1])


def test_files_added_after_reading_are_not_replayed(tmp_path: Path) -> None:
    for name in "bd":
        write(tmp_path, f"{name}.json", names(*(f"{name}{n}" for n in range(9))))
    reading = Reading(files_stream(tmp_path, schema="user STRING", rate=100)).reads()
    for name in "ace":
        write(tmp_path, f"{name}.json", names("came later"))
    check(reading)


def test_moved_files_are_replayed(tmp_path: Path) -> None:
    """As after a restore of the directory, when every file has changed just now."""
    for name in "abc":
        write(tmp_path, f"{name}.json", names(*(f"{name}{n}" for n in range(9))))
    reading = Reading(files_stream(tmp_path, schema="user STRING", rate=100)).reads()
    for name in "abc":
        (tmp_path / f"{name}.json").rename(tmp_path / "moved")
        (tmp_path / "moved").rename(tmp_path / f"{name}.json")
    check(reading)


def test_positions_differ_if_decisions_differ(tmp_path: Path) -> None:
    reading = watched(tmp_path)
    write(tmp_path, "b.json", names("b"))
    reading.reads()
    write(tmp_path, "a.json", names("late"))
    reading.clock.wait(SETTLED)
    reading.reads()
    before, after = (place_of(batch.end) for batch in pairwise_last(reading.batches))
    assert before._replace(decisions=after.decisions) == after != before


def pairwise_last(batches: list[Batch]) -> tuple[Batch, Batch]:
    moved = [b for b in batches if b.end != b.position]
    return list(pairwise(moved))[-1]
