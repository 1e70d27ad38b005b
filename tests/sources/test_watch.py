"""A directory in which nothing happens is not listed again and again."""

from pathlib import Path

from tests.sources.builders import FakeClock

from tandem_runtime.sources.listing import Listing, list_files
from tandem_runtime.sources.watch import Watch


class Looked:
    """Counts how often a directory is listed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.times = 0

    def __call__(self) -> Listing:
        self.times += 1
        return list_files(self.directory, 0, 1)


def looked_again(watch: Watch, clock: FakeClock, times: int) -> str | None:
    found = None
    for _ in range(times):
        clock.wait(0.05)
        found, _ = watch.after("b.json")
    return found


def test_an_idle_directory_is_listed_twice_and_then_only_now_and_then(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.json").touch()
    look, clock = Looked(tmp_path), FakeClock()
    watch = Watch(look, clock, 0, bounded=False)
    assert looked_again(watch, clock, 20) is None
    assert look.times == 2
    looked_again(watch, clock, 40)
    assert look.times == 3


def test_a_new_file_is_found_at_once_also_in_a_subdirectory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.json").touch()
    look, clock = Looked(tmp_path), FakeClock()
    watch = Watch(look, clock, 0, bounded=False)
    looked_again(watch, clock, 10)
    (tmp_path / "sub" / "c.json").touch()
    assert looked_again(watch, clock, 1) == "sub/c.json"


def test_that_a_bounded_directory_has_no_more_is_never_taken_on_trust(tmp_path: Path) -> None:
    (tmp_path / "b.json").touch()
    look, clock = Looked(tmp_path), FakeClock()
    watch = Watch(look, clock, 0, bounded=True)
    looked_again(watch, clock, 5)
    assert look.times == 5
