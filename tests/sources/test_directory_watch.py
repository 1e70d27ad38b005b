"""How often a directory is looked at, and how thoroughly."""

from collections.abc import Mapping
from pathlib import Path

from tests.sources.builders import FakeClock

from tandem_runtime.sources.files.directory_watch import DirectoryWatch
from tandem_runtime.sources.files.listing import Listing, list_files


class Looked:
    """Lists a directory, and remembers of how many files it believed that they had not changed.

    Each look takes as long as `seconds` says.
    """

    def __init__(self, directory: Path, clock: FakeClock) -> None:
        self.directory = directory
        self.clock = clock
        self.seconds = 0.0
        self.believed: list[int] = []

    @property
    def times(self) -> int:
        return len(self.believed)

    def __call__(self, known: Mapping[str, int]) -> Listing:
        self.believed.append(len(known))
        self.clock.wait(self.seconds)
        return list_files(self.directory, 0, 1, known)


def change(file: Path) -> None:
    """Until the file system's time, which has steps, shows it."""
    before = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == before:
        file.write_text("more")


def looked_again(watch: DirectoryWatch, clock: FakeClock, times: int) -> str | None:
    found = None
    for _ in range(times):
        clock.wait(0.05)
        found, _ = watch.after("b.json")
    return found


def test_idle_directory_is_listed_twice_and_then_rarely(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.json").touch()
    clock = FakeClock()
    look = Looked(tmp_path, clock)
    watch = DirectoryWatch(look, clock, 0, bounded=False)
    assert looked_again(watch, clock, 20) is None
    assert look.times == 2
    looked_again(watch, clock, 40)
    assert look.times == 3


def test_new_file_is_found_at_once_even_in_subdirectory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.json").touch()
    clock = FakeClock()
    look = Looked(tmp_path, clock)
    watch = DirectoryWatch(look, clock, 0, bounded=False)
    looked_again(watch, clock, 10)
    (tmp_path / "sub" / "c.json").touch()
    assert looked_again(watch, clock, 1) == "sub/c.json"


def test_bounded_directory_is_always_listed_to_confirm_its_end(tmp_path: Path) -> None:
    (tmp_path / "b.json").touch()
    clock = FakeClock()
    look = Looked(tmp_path, clock)
    watch = DirectoryWatch(look, clock, 0, bounded=True)
    looked_again(watch, clock, 5)
    assert look.times == 5


def test_only_names_of_known_files_are_read_while_new_ones_arrive(
    tmp_path: Path,
) -> None:
    (tmp_path / "b.json").touch()
    clock = FakeClock()
    look = Looked(tmp_path, clock)
    watch = DirectoryWatch(look, clock, 0, bounded=False)
    found: list[str | None] = []
    for number in range(100):
        clock.wait(0.25)
        (tmp_path / f"c{number:02}.json").touch()
        found.append(watch.after(found[-1] if found else "b.json")[0])
    assert found == [f"c{number:02}.json" for number in range(100)]
    thorough = [number for number, believed in enumerate(look.believed) if not believed]
    assert thorough == list(range(0, 100, 8))


def test_change_of_passed_file_is_reported_while_new_ones_arrive(
    tmp_path: Path,
) -> None:
    (tmp_path / "a00.json").touch()
    clock = FakeClock()
    watch = DirectoryWatch(Looked(tmp_path, clock), clock, 0, bounded=False)
    told: list[str] = []
    name = None
    for number in range(1, 20):
        clock.wait(0.25)
        name, left_out = watch.after(name)
        assert name is not None
        told += [each.file for each in left_out]
        watch.passes(name, (tmp_path / name).stat().st_ctime_ns)
        (tmp_path / f"a{number:02}.json").touch()
        if number == 1:
            change(tmp_path / name)
    assert told == ["a00.json"]


def test_one_slow_listing_delays_no_file(tmp_path: Path) -> None:
    clock = FakeClock()
    look = Looked(tmp_path, clock)
    watch = DirectoryWatch(look, clock, 0, bounded=False)
    for number, held_up in enumerate([0.0, 0.0, 0.5, 0.0]):
        name = f"a{number}.json"
        (tmp_path / name).touch()
        look.seconds = held_up
        clock.wait(0.05)
        assert watch.after(f"a{number - 1}.json" if number else None)[0] == name


def test_slow_directory_is_listed_rarely(tmp_path: Path) -> None:
    clock = FakeClock()
    look = Looked(tmp_path, clock)
    look.seconds = 0.5
    watch = DirectoryWatch(look, clock, 0, bounded=False)
    began = clock.now()
    for number in range(1000):
        (tmp_path / f"a{number:03}.json").touch()
        clock.wait(0.05)
        watch.after(f"a{number:03}.json")
    assert look.times * look.seconds < 0.1 * (clock.now() - began)
