import ctypes
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tandem.routing.codec import to_bytes
from tandem.routing.function import RoutingFunction
from tandem.routing.keys import hash_keys
from tandem_runtime.protocol.data import Chunk, LaneId, Mark, Note
from tandem_runtime.protocol.effects import Key
from tandem_runtime.volume.chunks import HASH, read_note, read_rows, share_of
from tandem_runtime.volume.keys import key_at, path_of
from tandem_runtime.volume.volume import Volume, VolumeDistrusted, VolumeInUse

LANE = LaneId("split-0.k3", 2)
NOTE = Note(300, (("payments/0", Mark(("a.json", 17), 5, rows=3)),))


def rows(first: int, count: int) -> pa.RecordBatch:
    users = [f"user-{n}" for n in range(first, first + count)]
    batch = pa.record_batch({"user": users, "amount": list(range(first, first + count))})
    return batch.append_column(HASH, pa.array(hash_keys(batch, ["user"]), pa.uint64()))


def volume_at(directory: Path) -> Volume:
    volume = Volume(directory / "split-0.k3")
    volume.claim()
    return volume


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    claimed = volume_at(tmp_path)
    yield claimed
    claimed.release()


@pytest.mark.parametrize(
    "key", [("book",), ("entry", 12), ("lane", LANE), ("chunk", LANE, 7), ("outbox", 3)]
)
def test_a_path_names_its_key(key: Key) -> None:
    assert key_at(path_of(key)) == key


@pytest.mark.parametrize("path", ["chunk/x", "entry/.7.new", "other/7", "book/1"])
def test_other_files_are_no_keys(path: str) -> None:
    assert key_at(path) is None


def test_what_was_written_is_there_after_a_restart(volume: Volume) -> None:
    volume.write(("entry", 1), ((1, 0), "x"))
    volume.write(("entry", 2), ((1, 0), "y"))
    volume.write(("entry", 1), ((1, 0), "z"))
    volume.erase(("entry", 2))
    volume.write(("outbox", 5), b"bytes")
    volume.write(("chunk", LANE, 7), Chunk(NOTE, (("payments", rows(0, 3)),)))
    assert Volume(volume.directory).contents() == {
        ("entry", 1): ((1, 0), "z"),
        ("outbox", 5): (),
        ("chunk", LANE, 7): Chunk(NOTE, None),
    }
    assert volume.buffer(("outbox", 5)).to_pybytes() == b"bytes"


def test_every_start_counts_one_more(tmp_path: Path) -> None:
    numbers = []
    for _ in range(2):
        volume = volume_at(tmp_path)
        numbers.append(volume.incarnation)
        volume.release()
    assert numbers == [1, 2]


def test_a_second_process_is_refused(volume: Volume) -> None:
    code = (
        "import sys, pathlib; from tandem_runtime.volume.volume import Volume; "
        "Volume(pathlib.Path(sys.argv[1])).claim()"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, volume.directory], capture_output=True, text=True, check=False
    )
    assert VolumeInUse.__name__ in other.stderr


def test_a_volume_of_another_boot_is_trusted_only_if_left_in_good_order(tmp_path: Path) -> None:
    volume = volume_at(tmp_path)
    volume.leave_clean()
    volume.release()
    (volume.directory / "boot").write_text("another")
    volume_at(tmp_path).release()
    (volume.directory / "boot").write_text("another")
    with pytest.raises(VolumeDistrusted):
        volume_at(tmp_path)


def test_a_disk_that_does_not_take_everything_leaves_no_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = volume_at(tmp_path)
    broken = SimpleNamespace(syncfs=lambda _: -1)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: broken)
    volume.leave_clean()
    volume.release()
    (volume.directory / "boot").write_text("another")
    with pytest.raises(VolumeDistrusted):
        volume_at(tmp_path)


def test_a_chunk_keeps_the_order_of_rows_of_each_stream(volume: Volume) -> None:
    payload = (("a", rows(0, 2)), ("b", rows(9, 1)), ("a", rows(2, 2)))
    volume.write(("chunk", LANE, 1), Chunk(NOTE, payload))
    form = volume.buffer(("chunk", LANE, 1))
    assert read_note(form) == NOTE
    found = {
        stream: [amount for batch in batches for amount in batch.column("amount").to_pylist()]
        for stream, batches in read_rows(form)
    }
    assert found == {"a": [0, 1, 2, 3], "b": [9]}


def test_the_shares_of_all_pairs_make_up_the_chunk(volume: Volume) -> None:
    volume.write(("chunk", LANE, 1), Chunk(NOTE, (("a", rows(0, 500)),)))
    form = volume.buffer(("chunk", LANE, 1))
    function = RoutingFunction.plain(["pair-0", "pair-1", "pair-2"])
    shares = []
    for pair in function.pairs:
        part = b"".join(share_of(form, (to_bytes(function), pair)))
        assert read_note(part) == NOTE
        ((_, batches),) = read_rows(part)
        amounts = [x for batch in batches for x in batch.column("amount").to_pylist()]
        assert amounts == sorted(amounts)
        shares.append(amounts)
    assert sorted(np.concatenate(shares)) == list(range(500))
    assert all(shares)


def test_a_single_pair_gets_the_chunk_as_it_is(volume: Volume) -> None:
    volume.write(("chunk", LANE, 1), Chunk(NOTE, (("a", rows(0, 5)),)))
    form = volume.buffer(("chunk", LANE, 1))
    select = (to_bytes(RoutingFunction.plain(["pair-0"])), "pair-0")
    assert share_of(form, select)[0] is form
