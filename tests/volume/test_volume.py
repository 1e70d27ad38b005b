import ctypes
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.volume.builders import segment

from tandem_core.contract.records import Undecodable, UnknownRecord
from tandem_runtime.protocol.effects import Key
from tandem_runtime.protocol.types import Chunk, LaneId, Mark, Note
from tandem_runtime.volume.key_paths import key_at, path_of
from tandem_runtime.volume.volume import Volume, VolumeDistrusted, VolumeInUse

LANE = LaneId("split-0.k3", 2)
NOTE = Note(300, (("payments/0", Mark(("a.json", 17), 5, rows=3)),))


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
def test_path_round_trips_to_key(key: Key) -> None:
    assert key_at(path_of(key)) == key


@pytest.mark.parametrize("path", ["chunk/x", "entry/.7.new", "other/7", "book/1"])
def test_unrelated_files_have_no_key(path: str) -> None:
    assert key_at(path) is None


def test_written_values_survive_restart(volume: Volume) -> None:
    volume.write(("lane", LaneId("s", 1)), ord("x"))
    volume.write(("lane", LaneId("s", 2)), ord("y"))
    volume.write(("lane", LaneId("s", 1)), ord("z"))
    volume.erase(("lane", LaneId("s", 2)))
    volume.write(("outbox", 5), b"bytes")
    volume.write(("chunk", LANE, 7), Chunk(NOTE, (segment("payments/0", 0, 3),)))
    assert Volume(volume.directory).contents() == {
        ("lane", LaneId("s", 1)): ord("z"),
        ("outbox", 5): (),
        ("chunk", LANE, 7): Chunk(NOTE, None),
    }
    assert volume.buffer(("outbox", 5)).to_pybytes() == b"bytes"


def test_every_start_increments_incarnation(tmp_path: Path) -> None:
    numbers = []
    for _ in range(2):
        volume = volume_at(tmp_path)
        numbers.append(volume.incarnation)
        volume.release()
    assert numbers == [1, 2]


def test_second_process_is_refused(volume: Volume) -> None:
    code = (
        "import sys, pathlib; from tandem_runtime.volume.volume import Volume; "
        "Volume(pathlib.Path(sys.argv[1])).claim()"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, volume.directory], capture_output=True, text=True, check=False
    )
    assert VolumeInUse.__name__ in other.stderr


def test_volume_of_another_boot_is_trusted_only_if_left_clean(tmp_path: Path) -> None:
    volume = volume_at(tmp_path)
    volume.leave_clean()
    volume.release()
    (volume.directory / "boot").write_text("another")
    volume_at(tmp_path).release()
    (volume.directory / "boot").write_text("another")
    with pytest.raises(VolumeDistrusted):
        volume_at(tmp_path)


def test_failed_sync_leaves_no_clean_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volume = volume_at(tmp_path)
    broken = SimpleNamespace(syncfs=lambda _: -1)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: broken)
    volume.leave_clean()
    volume.release()
    (volume.directory / "boot").write_text("another")
    with pytest.raises(VolumeDistrusted):
        volume_at(tmp_path)


@pytest.mark.parametrize("key", [("book",), ("entry", 4)])
def test_unreadable_header_log_record_raises_unknown_record(volume: Volume, key: Key) -> None:
    volume.write(key, {"fence": (1, 0), "entry": {"type": "OfALaterVersion"}})
    with pytest.raises(UnknownRecord):
        volume.contents()


def test_other_unreadable_record_raises_undecodable(volume: Volume) -> None:
    volume.write(("generation", 1), {"type": "OfALaterVersion"})
    with pytest.raises(Undecodable) as refused:
        volume.contents()
    assert not isinstance(refused.value, UnknownRecord)
