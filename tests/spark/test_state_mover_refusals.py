"""What must not become a checkpoint; each test changes one thing of a move that works."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.move_keys import TEXT
from tests.spark.moves import ALL, HALVES, QUERIES, Query, Story, state_partitions

from tandem_runtime.spark.checks.key_places import UnknownKeyPlace
from tandem_runtime.spark.jvm.launch import SparkDriver
from tandem_runtime.spark.state.checkpoint import committed_epochs
from tandem_runtime.spark.state.mover import CannotMove, MoveTarget, Parent, move_state

Move = Callable[..., int]


@pytest.fixture(scope="module")
def story(driver: SparkDriver, tmp_path_factory: pytest.TempPathFactory) -> Story:
    place = tmp_path_factory.mktemp("story")
    return Story(driver.session, place, QUERIES["distinct"], TEXT)


@pytest.fixture(scope="module")
def halves(story: Story) -> list[Parent]:
    """Both halves, after epochs 1 to 3."""
    owners = {pair: story.fresh(pair) for pair in HALVES.pairs}
    with state_partitions(story.session, 2):
        story.run(owners, HALVES, range(1, 4))
    return [Parent(owners[pair], HALVES.share_of(pair)) for pair in HALVES.pairs]


@pytest.fixture
def move(story: Story, halves: list[Parent], tmp_path: Path) -> Move:
    """Unite the halves into `whole`; return the number of rows."""

    def move(**changes: object) -> int:
        with_changes: dict[str, Any] = {
            "parents": halves,
            "epoch": 3,
            "target": MoveTarget(tmp_path / "whole", ALL.share_of("all"), 1),
            "places": story.places,
            **changes,
        }
        return sum(one.kept for one in move_state(story.session, **with_changes))

    return move


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert {path.name for path in tmp_path.iterdir()} <= {"whole"}


def test_target_is_complete_and_ends_at_epoch(move: Move, tmp_path: Path) -> None:
    (tmp_path / ".whole.building").mkdir()
    assert move(epoch=2) > 0
    assert committed_epochs(tmp_path / "whole") == [1, 2]
    with pytest.raises(FileExistsError):
        move(epoch=2)


def test_field_that_is_not_key_is_noticed(move: Move, story: Story, tmp_path: Path) -> None:
    (place,) = story.places
    other = replace(place, positions=(1 - place.positions[0],))
    with pytest.raises(CannotMove, match="does not own its key"):
        move(places=[other])
    assert not (tmp_path / "whole").exists()


def test_rows_of_same_key_in_two_parents_are_noticed(
    move: Move, halves: list[Parent], tmp_path: Path
) -> None:
    with pytest.raises(CannotMove, match="was kept"):
        move(parents=[*halves, halves[0]])
    assert not (tmp_path / "whole").exists()


def test_places_of_another_query_are_refused(move: Move, story: Story) -> None:
    for places in ((), [replace(story.places[0], name="symmetricHashJoin")]):
        with pytest.raises(CannotMove, match="operators"):
            move(places=places)


def test_epoch_that_parent_lacks_is_refused(move: Move) -> None:
    with pytest.raises(CannotMove, match="epoch 4"):
        move(epoch=4)


def test_parents_of_different_queries_are_refused(
    move: Move, halves: list[Parent], story: Story
) -> None:
    altered = story.fresh("altered")
    copy_files(halves[0].checkpoint, altered)
    (altered / "fingerprint").write_text("another")
    with pytest.raises(CannotMove, match="queries"):
        move(parents=[halves[1], replace(halves[0], checkpoint=altered)])


def test_state_outside_of_its_partition_is_noticed(
    move: Move, halves: list[Parent], story: Story
) -> None:
    altered = story.fresh("altered")
    copy_files(halves[0].checkpoint, altered)
    state = altered / "state" / "0"
    for number in (1, 2, 3):
        one, two = (state / part / f"{number}.delta" for part in "01")
        content = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(content)
    with pytest.raises(CannotMove, match="belongs to"):
        move(parents=[replace(halves[0], checkpoint=altered), halves[1]])


@pytest.mark.parametrize(
    "query",
    [
        Query("append", "SELECT * FROM payments LIMIT 3"),
        Query(
            "append",
            "SELECT p.user FROM payments p JOIN refunds r ON p.user <=> r.user AND p.at = r.at",
            streams=("payments", "refunds"),
        ),
    ],
)
def test_state_without_place_for_key_is_refused(
    driver: SparkDriver, story: Story, query: Query
) -> None:
    with pytest.raises(UnknownKeyPlace):
        Story(driver.session, story.place, query, TEXT)


def copy_files(checkpoint: Path, target: Path) -> None:
    """Copy a checkpoint without checksums, so that its files can be changed."""
    shutil.copytree(checkpoint, target, ignore=shutil.ignore_patterns(".*"))
