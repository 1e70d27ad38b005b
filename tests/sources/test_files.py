"""Files as a source: order, positions, what appears, vanishes and grows."""

import errno
import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough
from tests.sources.builders import (
    FakeClock,
    column_of,
    files_stream,
    json_lines,
    opened,
    read_now,
    read_to_end,
    rejected_of,
    rows_of,
    write,
)

from tandem_core.contract.partitions import SourceUnsupported, partitions_of
from tandem_core.model.spec import OnError
from tandem_runtime.protocol.types import BEGINNING_OF_TIME, Position
from tandem_runtime.sources.base import SourceFailed, SourceUnavailable
from tandem_runtime.sources.formats.file_readers import MOST_ROWS

USERS = "user STRING"


def users_of(directory: Path, **settings: object) -> list[str]:
    stream = files_stream(directory, schema=USERS, **settings)  # type: ignore[arg-type]
    return column_of(read_to_end(opened(stream)), "user")


# --- order --------------------------------------------------------------------------------------


def test_files_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.json", "a/z.json", "a.json", "B.json.gz"):
        write(tmp_path, name, json_lines([name]))
    assert users_of(tmp_path) == ["B.json.gz", "a.json", "a/z.json", "b.json"]


def test_hidden_and_temporary_files_are_not_read(tmp_path: Path) -> None:
    for name in (".a", "_a", "_d/a", ".d/a", "a.tmp", "a.part", "a~", "a.json._COPYING_"):
        write(tmp_path, name, json_lines([name]))
    write(tmp_path, "a.json", json_lines(["seen"]))
    assert users_of(tmp_path) == ["seen"]


def test_partitions_share_files_and_each_keeps_order(tmp_path: Path) -> None:
    names = [f"{n:03}.json" for n in range(40)]
    for name in names:
        write(tmp_path, name, json_lines([name]))
    stream = files_stream(tmp_path, schema=USERS, partitions=3)
    assert partitions_of(stream) == ("payments/0", "payments/1", "payments/2")
    parts = [
        column_of(read_to_end(opened(stream, partition)), "user")
        for partition in partitions_of(stream)
    ]
    assert all(part == sorted(part) and part for part in parts)
    assert sorted(name for part in parts for name in part) == names


def test_empty_files_and_missing_last_newline_are_accepted(tmp_path: Path) -> None:
    write(tmp_path, "a.json", b"")
    write(tmp_path, "b.json", json_lines(["b"]).rstrip())
    write(tmp_path, "c.json.gz", b"")
    write(tmp_path, "d.json", b"\xef\xbb\xbf" + json_lines(["d"]))
    assert users_of(tmp_path) == ["b", "d"]


def test_empty_bounded_directory_ends_at_once(tmp_path: Path) -> None:
    batch = opened(files_stream(tmp_path)).read(0)
    assert (batch.end, batch.ended, batch.rows.num_rows) == (0, True, 0)


def test_small_files_are_combined_into_one_batch(tmp_path: Path) -> None:
    for n in range(200):
        write(tmp_path, f"{n:03}.json", json_lines([str(n)]))
    assert len(read_to_end(opened(files_stream(tmp_path, schema=USERS)))) == 1


def test_batch_event_time_is_highest_in_milliseconds(tmp_path: Path) -> None:
    times = ["1970-01-01T00:00:01.0019Z", "1970-01-01T00:00:00Z", None]
    write(tmp_path, "a.json", b"".join(json.dumps({"at": t}).encode() + b"\n" for t in times))
    (batch,) = read_to_end(opened(files_stream(tmp_path)))
    assert batch.event_time == 1001
    assert opened(files_stream(tmp_path)).read(batch.end).event_time == BEGINNING_OF_TIME


# --- positions ----------------------------------------------------------------------------------


def content(file_format: str, users: list[str], directory: Path, name: str) -> None:
    match file_format:
        case "json":
            write(directory, f"{name}.json", json_lines(users))
        case "json.gz":
            write(directory, f"{name}.json.gz", json_lines(users))
        case "csv" | "csv.gz":
            lines = b"\nuser\n" + "".join(f"{u}\n" for u in users).encode()
            write(directory, f"{name}.{file_format}", lines)
        case "parquet":
            pq.write_table(pa.table({"user": users}), directory / name, row_group_size=7)


@pytest.mark.parametrize("file_format", ["json", "json.gz", "csv", "csv.gz", "parquet"])
def test_new_reader_resumes_at_any_position(tmp_path: Path, file_format: str) -> None:
    content(file_format, [f"a{n}" for n in range(50)], tmp_path, "a")
    content(file_format, [f"b{n}" for n in range(30)], tmp_path, "b")
    # A slow pace makes small batches.
    stream = files_stream(
        tmp_path, schema=USERS, file_format=file_format.partition(".")[0], rate=100
    )
    batches = read_to_end(opened(stream))
    expected = column_of(batches, "user")
    assert len(batches) > 10
    assert expected == [f"a{n}" for n in range(50)] + [f"b{n}" for n in range(30)]
    for place, batch in enumerate(batches):
        rest = column_of(read_to_end(opened(stream), batch.position), "user")
        assert rest == column_of(batches[place:], "user")


def test_position_decoded_as_list_is_accepted(tmp_path: Path) -> None:
    write(tmp_path, "a.json", json_lines(["a"]))
    source = opened(files_stream(tmp_path, schema=USERS, bounded=False))
    position = json.loads(json.dumps(read_now(source, 0)[-1].end))
    batch = source.read(position)
    assert batch.end == batch.position == position


@thorough(25)
@given(
    users=st.lists(st.text(max_size=30), min_size=1, max_size=40),
    ends=st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    rate=st.integers(20, 400),
)
def test_text_is_read_equally_in_one_batch_and_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, users: list[str], ends: bytes, rate: int
) -> None:
    directory = tmp_path_factory.mktemp("files")
    lines = [json.dumps({"user": user}, ensure_ascii=False).encode() for user in users]
    write(directory, "a.json", ends.join(lines))
    stream = files_stream(directory, schema=USERS, rate=rate)
    position: Position = 0
    found: list[str] = []
    while True:
        batch = opened(stream).read(position)
        found += batch.rows.column("user").to_pylist()
        position = batch.end
        if batch.ended:
            break
    assert found == users


def test_rate_is_kept_and_shared_by_partitions(tmp_path: Path) -> None:
    write(tmp_path, "a.json", json_lines(range(1000)).replace(b": ", b': "').replace(b"}", b'"}'))
    clock = FakeClock()
    source = opened(files_stream(tmp_path, schema=USERS, rate=100), clock=clock)
    batches = read_to_end(source)
    assert len(column_of(batches, "user")) == 1000
    assert 9.5 < clock.time < 10.5
    assert max(batch.rows.num_rows for batch in batches) <= 25
    halves = files_stream(tmp_path, schema=USERS, rate=100, partitions=2)
    clock = FakeClock()
    for partition in partitions_of(halves):
        read_to_end(opened(halves, partition, clock))
    assert 19 < clock.time < 21


# --- rows that do not fit -----------------------------------------------------------------------


def test_rejected_rows_have_offsets_and_do_not_stop_reading(tmp_path: Path) -> None:
    write(tmp_path, "a.json", b'{"user": "a"}\n{"user": 5}\nbroken\n{"user": "b"}\n')
    batches = read_to_end(opened(files_stream(tmp_path, schema=USERS)))
    assert column_of(batches, "user") == ["a", "b"]
    assert [(r.file, r.offset, r.row) for r in rejected_of(batches)] == [
        ("a.json", 14, '{"user": 5}'),
        ("a.json", 26, "broken"),
    ]


def test_rejected_rows_are_truncated(tmp_path: Path) -> None:
    write(tmp_path, "a.json", b"x" * 100_000 + b"\n")
    (rejected,) = rejected_of(read_to_end(opened(files_stream(tmp_path, schema=USERS))))
    assert rejected.row == "x" * 1024


@pytest.mark.parametrize(("line", "lines"), [(b"x", 100_000), (b"x" * 1000, 10_000)])
def test_batch_is_bounded_even_if_no_row_fits(
    tmp_path: Path, line: bytes, lines: int
) -> None:  # [12]
    write(tmp_path, "a.json", (line + b"\n") * lines)
    batches = read_to_end(opened(files_stream(tmp_path, schema=USERS)))
    assert len(rejected_of(batches)) == lines
    for batch in batches:
        assert len(batch.rejected) <= 2 * MOST_ROWS
        assert sum(len(rejected.row or "") for rejected in batch.rejected) < 5 * 2**20
    assert len(batches) > 1


def test_on_error_fail_raises_at_rejected_row(tmp_path: Path) -> None:
    write(tmp_path, "a.json", b'{"user": "a"}\n{"user": 5}\n')
    stream = files_stream(tmp_path, schema=USERS, on_error=OnError.FAIL)
    source = opened(stream)
    for _ in range(2):
        with pytest.raises(SourceFailed, match=r"a\.json at 14: .*5"):
            source.read(0)


def vanishes(directory: Path) -> str:
    (directory / "b.json").unlink()
    return "b.json"


def comes_late(directory: Path) -> str:
    tick(directory)
    return write(directory, "0.json", json_lines(["late"])).name


def has_no_usable_name(directory: Path) -> str:
    (directory / os.fsdecode(b"b\xff.json")).write_bytes(json_lines(["b"]))
    return "b\\udcff.json"


@pytest.mark.parametrize("happens", [vanishes, comes_late, has_no_usable_name])
def test_on_error_fail_skips_no_file(tmp_path: Path, happens: Callable[[Path], str]) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path, f"{name}.json", json_lines([name]))
    source = opened(files_stream(tmp_path, schema=USERS, rate=20, on_error=OnError.FAIL))
    first = source.read(0)
    assert first.rows.column("user").to_pylist() == ["a"]
    file = happens(tmp_path)
    for _ in range(2):
        with pytest.raises(SourceFailed, match=re.escape(file)):
            read_to_end(source, first.end)


@pytest.mark.parametrize("gzipped", [False, True])
def test_overlong_line_is_rejected_and_rest_read(tmp_path: Path, gzipped: bool) -> None:
    limit = 8 * 2**20
    longest = b'{"user": "' + b"x" * (limit - 12) + b'"}'
    too_long = b'{"user": "' + b"y" * (limit - 11) + b'"}'
    assert (len(longest), len(too_long)) == (limit, limit + 1)
    lines = [b'{"user": "a"}', longest, too_long, too_long * 3, b'{"user": "b"}', too_long]
    write(tmp_path, "a.json.gz" if gzipped else "a.json", b"\n".join(lines))
    batches = read_to_end(opened(files_stream(tmp_path, schema=USERS)))
    assert [len(user) for user in column_of(batches, "user")] == [1, limit - 12, 1]
    offsets = [sum(len(line) + 1 for line in lines[:n]) for n in (2, 3, 5)]
    assert [rejected.offset for rejected in rejected_of(batches)] == offsets
    assert all(len(r.row or "") == 1024 for r in rejected_of(batches))


def test_csv_file_without_usable_header_is_rejected_as_whole(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"x,y\n1,2\n")
    write(tmp_path, "b.csv", b"user\nb\n")
    batches = read_to_end(opened(files_stream(tmp_path, schema=USERS, file_format="csv")))
    assert column_of(batches, "user") == ["b"]
    assert [(r.file, r.offset) for r in rejected_of(batches)] == [("a.csv", None)]


def test_csv_refuses_nested_columns_on_open(tmp_path: Path) -> None:
    with pytest.raises(SourceUnsupported):
        opened(files_stream(tmp_path, schema="a ARRAY<INT>", file_format="csv"))


def test_damaged_gzip_file_is_rejected_and_next_file_read(tmp_path: Path) -> None:
    whole = gzip.compress(json_lines(f"user-{n * 7919 % 10_007}" for n in range(5000)))
    (tmp_path / "a.json.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.json.gz").write_bytes(b"no gzip at all")
    damaged = bytearray(whole)
    damaged[-6] ^= 0xFF
    (tmp_path / "c.json.gz").write_bytes(damaged)
    write(tmp_path, "d.json", json_lines(["d"]))
    batches = read_to_end(opened(files_stream(tmp_path, schema=USERS)))
    assert column_of(batches, "user")[-1] == "d"
    files = [r.file for r in rejected_of(batches) if r.offset is None]
    assert files == ["a.json.gz", "b.json.gz", "c.json.gz"]


# --- what appears, vanishes and grows -----------------------------------------------------------


def test_missing_directory_is_unavailable_until_created(tmp_path: Path) -> None:
    source = opened(files_stream(tmp_path / "later", schema=USERS))
    with pytest.raises(SourceUnavailable, match="later"):
        source.read(0)
    write(tmp_path / "later", "a.json", json_lines(["a"]))
    assert column_of(read_to_end(source), "user") == ["a"]


def test_watched_directory_yields_new_files_and_waits_briefly(tmp_path: Path) -> None:
    clock = FakeClock()
    stream = files_stream(tmp_path, schema=USERS, bounded=False)
    source = opened(stream, clock=clock)
    nothing = source.read(0)
    assert (nothing.end, nothing.ended) == (0, False)
    assert sum(clock.waited) == pytest.approx(0.2)
    position: Position = 0
    for name in ("a", "b"):
        write(tmp_path, f"{name}.json", json_lines([name]))
        batches = read_now(source, position)
        position = batches[-1].end
        assert column_of(batches, "user") == [name]
        assert not any(batch.ended for batch in batches)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_only_whole_lines_of_growing_file_are_read(tmp_path: Path, name: str) -> None:
    text = json_lines(["a", "b", "c"])
    whole = gzip.compress(text) if name.endswith(".gz") else text
    path = tmp_path / name
    source = opened(files_stream(tmp_path, schema=USERS, bounded=False))
    position: Position = 0
    users: list[str] = []
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size]) if size == 0 else append(path, whole[size - 1 : size])
        batch = source.read(position)
        position = batch.end
        users += batch.rows.column("user").to_pylist()
        assert not batch.rejected
        assert users == ["a", "b", "c"][: len(users)]
    users += column_of(read_now(source, position), "user")
    assert users == ["a", "b", "c"]


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_unterminated_last_line_is_read_once_file_has_settled(tmp_path: Path) -> None:
    write(tmp_path, "a.json", json_lines(["a"]).rstrip())
    clock = FakeClock()
    source = opened(files_stream(tmp_path, schema=USERS, bounded=False), clock=clock)
    batch = source.read(0)
    while batch.rows.num_rows == 0:
        batch = source.read(batch.end)
        assert clock.time < 10
    assert clock.time >= 2
    assert batch.rows.column("user").to_pylist() == ["a"]


def test_unterminated_last_line_is_read_once_later_file_exists(tmp_path: Path) -> None:
    write(tmp_path, "a.json", json_lines(["a"]).rstrip())
    write(tmp_path, "b.json", json_lines(["b"]))
    batches = read_now(opened(files_stream(tmp_path, schema=USERS, bounded=False)), 0)
    assert column_of(batches, "user") == ["a", "b"]


def test_file_that_vanishes_before_open_is_rejected(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path, f"{name}.json", json_lines([name]))
    stream = files_stream(tmp_path, schema=USERS, rate=20)
    source = opened(stream)
    first = source.read(0)
    assert first.rows.column("user").to_pylist() == ["a"]
    (tmp_path / "b.json").unlink()
    batches = read_to_end(source, first.end)
    assert column_of(batches, "user") == ["c"]
    assert [(r.file, r.offset) for r in rejected_of(batches)] == [("b.json", None)]


def test_vanished_file_is_rejected_even_after_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path, f"{name}.json", json_lines([name]))
    source = opened(files_stream(tmp_path, schema=USERS, rate=20))
    first = source.read(0)
    (tmp_path / "b.json").unlink()
    open_path = Path.open

    def broken(path: Path, mode: str) -> Any:
        if path.name == "c.json":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_path(path, mode)

    with monkeypatch.context() as patch, pytest.raises(SourceUnavailable):
        patch.setattr(Path, "open", broken)
        source.read(first.end)
        source.read(first.end)
    batches = read_to_end(source, first.end)
    assert column_of(batches, "user") == ["c"]
    assert [r.file for r in rejected_of(batches)] == ["b.json"]


def test_file_that_vanishes_while_open_is_read_to_its_end(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", json_lines(f"a{n}" for n in range(50)))
    source = opened(files_stream(tmp_path, schema=USERS, rate=200))
    first = source.read(0)
    path.unlink()
    batches = [first, *read_to_end(source, first.end)]
    assert column_of(batches, "user") == [f"a{n}" for n in range(50)]
    assert not rejected_of(batches)


def test_file_that_vanished_between_readers_is_rejected_and_next_one_read(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, "a.json", json_lines(f"a{n}" for n in range(50)))
    write(tmp_path, "b.json", json_lines(["b"]))
    stream = files_stream(tmp_path, schema=USERS, rate=200)
    first = opened(stream).read(0)
    path.unlink()
    batches = read_to_end(opened(stream), first.end)
    assert column_of(batches, "user") == ["b"]
    assert [(r.file, r.offset) for r in rejected_of(batches)] == [("a.json", None)]


@pytest.mark.parametrize("restarted", [False, True])
def test_late_file_is_rejected_once(tmp_path: Path, restarted: bool) -> None:
    stream = files_stream(tmp_path, schema=USERS, bounded=False)
    write(tmp_path, "a.json", json_lines(["a"]))
    write(tmp_path, "c.json", json_lines(["c"]))
    source = opened(stream)
    position = read_now(source, 0)[-1].end
    tick(tmp_path)
    write(tmp_path, "b.json", json_lines(["b"]))
    write(tmp_path, "d.json", json_lines(["d"]))
    batches = read_now(opened(stream) if restarted else source, position)
    assert column_of(batches, "user") == ["d"]
    assert [(r.file, r.offset) for r in rejected_of(batches)] == [("b.json", None)]


def test_file_that_grows_after_it_was_passed_is_rejected(tmp_path: Path) -> None:
    stream = files_stream(tmp_path, schema=USERS, bounded=False)
    write(tmp_path, "a.json", json_lines(["a"]))
    write(tmp_path, "b.json", json_lines(["b"]))
    position = read_now(opened(stream), 0)[-1].end
    tick(tmp_path)
    append(tmp_path / "a.json", json_lines(["more"]))
    batches = read_now(opened(stream), position)
    assert [(r.file, r.offset) for r in rejected_of(batches)] == [("a.json", None)]


def test_passed_files_are_not_rejected_after_restart(tmp_path: Path) -> None:
    for n in range(20):
        write(tmp_path, f"{n:02}.json", json_lines([str(n)]))
    stream = files_stream(tmp_path, schema=USERS, bounded=False)
    position = read_now(opened(stream), 0)[-1].end
    assert not rejected_of(read_now(opened(stream), position))


def tick(directory: Path) -> None:
    """Let the file system's clock go on: its steps may be some milliseconds."""
    probe = directory / ".probe"
    probe.write_bytes(b"")
    before = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns <= before:
        os.utime(probe)


def test_file_replaced_by_shorter_one_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", json_lines(["a", "b"]))
    stream = files_stream(tmp_path, schema=USERS)
    position = read_to_end(opened(stream))[-1].end
    path.write_bytes(json_lines(["a"]))
    assert [r.file for r in rejected_of(read_to_end(opened(stream), position))] == ["a.json"]


def test_undecodable_file_name_is_rejected(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.json")).write_bytes(json_lines(["a"]))
    batches = read_to_end(opened(files_stream(tmp_path, schema=USERS)))
    assert [r.file for r in rejected_of(batches)] == ["a\\udcff.json"]
    assert rows_of(batches) == []


def test_reading_again_from_earlier_position_gives_same_rows(tmp_path: Path) -> None:
    write(tmp_path, "a.json", json_lines(f"a{n}" for n in range(50)))
    source = opened(files_stream(tmp_path, schema=USERS, rate=200))
    first = source.read(0)
    source.read(first.end)
    assert source.read(0).rows.slice(0, 5) == first.rows.slice(0, 5)
    source.close()
