"""Splits and merge slots come and go although the operator is killed after any write."""

from tests.control.test_resize import replicas, running, slots
from tests.control.world import KEY, World

from tandem_core.model.kubernetes_names import splits_name


def change_counts(world: World) -> None:
    """One split and one slot more, then fewer."""
    world.edit(splits={"count": 3}, merges={"count": 2})
    world.until(lambda: is_as_wanted(world, 3, [0, 1]), 60)
    world.edit(splits={"count": 1}, merges={"count": 1})
    world.until(lambda: is_as_wanted(world, 1, [0]), 60)
    assert world.is_paired(2)


def is_as_wanted(world: World, splits: int, open_slots: list[int]) -> bool:
    return (
        replicas(world, splits_name(KEY.name)) == len(world.of_kind("split")) == splits
        and world.plane.book.open_slots == open_slots
        and slots(world) == set(map(str, open_slots))
    )


def test_operator_killed_after_any_write_resumes_the_change_of_splits_and_merges() -> None:
    whole = running()
    first = whole.mortal
    change_counts(whole)
    assert first.writes > 10
    for number in range(1, first.writes + 1):
        world = running(dies_after=number)
        change_counts(world)
        intent = world.recorded().intent
        assert (intent.splits, intent.slots) == (1, 1), f"died after write {number}"
        # Numbers of slots are used once, and none is passed over.
        assert world.plane.book.next_slot == 2, f"died after write {number}"
