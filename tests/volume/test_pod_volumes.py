import shutil
from pathlib import Path

import pytest

from tandem_runtime.volume.pod_volumes import current_volume, succeed
from tandem_runtime.volume.volume import Volume

POD = "7d1f4d3e"


def begun(home: Path) -> Path:
    """The pod's volume, with something on it."""
    volume = Volume(current_volume(home, POD))
    volume.claim()
    volume.write(("lanes",), 7)
    volume.release()
    return volume.directory


def names(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


def test_pod_begins_with_volume_0_and_keeps_it_across_restarts(tmp_path: Path) -> None:
    (tmp_path / "dead-letter").mkdir()
    first = begun(tmp_path)
    assert first == tmp_path / f"{POD}.0"
    again = Volume(current_volume(tmp_path, POD))
    assert again.directory == first
    assert again.contents() == {("lanes",): 7}


def test_next_volume_is_empty_and_last_one_is_removed(tmp_path: Path) -> None:
    first = begun(tmp_path)
    second = succeed(first)
    assert second.name == f"{POD}.1"
    assert names(tmp_path) == {f"{POD}.1"}
    assert list(second.iterdir()) == []
    assert current_volume(tmp_path, POD) == second


def test_pair_file_moves_to_next_volume(tmp_path: Path) -> None:
    first = begun(tmp_path)
    (first / "pair").write_text("pair-3")
    assert (succeed(first) / "pair").read_text() == "pair-3"


def test_crash_before_next_volume_exists_keeps_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", dies)
        succeed(first)
    found = current_volume(tmp_path, POD)
    assert found == first
    assert Volume(found).contents() == {("lanes",): 7}
    assert succeed(found).name == f"{POD}.1"


def test_crash_after_next_volume_exists_never_reuses_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(shutil, "rmtree", lambda path, **_: path == first and dies())
        succeed(first)
    assert names(tmp_path) == {f"{POD}.0", f"{POD}.1"}
    assert current_volume(tmp_path, POD).name == f"{POD}.1"
    assert names(tmp_path) == {f"{POD}.1"}


def dies(*_: object) -> bool:
    raise KeyboardInterrupt


def test_only_pod_volume_has_successor(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no volume of a pod"):
        succeed(tmp_path / "split-0")
