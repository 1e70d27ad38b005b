"""Which files of a state store a version needs."""

from tandem_runtime.spark.state.state_files import can_restore, needed, versioned


def kept(files: list[str], oldest: int, newest: int) -> set[str]:
    return {file.name for file in needed(versioned(files), oldest, newest)}


DELTAS = [f"{version}.delta" for version in range(1, 11)]


def test_all_deltas_are_needed_without_snapshot() -> None:
    assert kept(DELTAS, 4, 5) == {f"{version}.delta" for version in range(1, 6)}


def test_snapshot_replaces_earlier_files() -> None:
    files = [*DELTAS, "3.snapshot", "8.snapshot"]
    assert kept(files, 5, 6) == {"3.snapshot", "4.delta", "5.delta", "6.delta"}
    assert kept(files, 3, 3) == {"3.snapshot"}
    assert kept(files, 8, 9) == {"8.snapshot", "9.delta"}


def test_snapshots_within_range_are_kept() -> None:
    files = [*DELTAS, "3.snapshot", "5.snapshot"]
    assert kept(files, 4, 6) == {"3.snapshot", "4.delta", "5.delta", "5.snapshot", "6.delta"}


def test_rocksdb_file_names_are_recognised() -> None:
    files = ["4.zip", "4.changelog", "5.changelog", "6_some-lineage.changelog", "7.changelog"]
    assert kept(files, 5, 6) == {"4.zip", "5.changelog", "6_some-lineage.changelog"}


def test_files_without_version_are_ignored() -> None:
    assert (
        versioned(["schema", ".3.delta.crc", ".4.delta.1234.tmp", "x.delta", "5.delta.tmp"]) == []
    )


def test_gap_cannot_be_restored() -> None:
    without_two = [name for name in DELTAS if name != "2.delta"]
    assert can_restore(versioned(DELTAS), 10)
    assert not can_restore(versioned(without_two), 10)
    assert can_restore(versioned([*without_two, "2.snapshot"]), 10)
    assert not can_restore(versioned([*DELTAS[:4], "9.snapshot"]), 5)
    assert not can_restore(versioned([]), 1)
