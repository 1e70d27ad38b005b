"""Results of several merge slots: a position for each, names of their own, sealed at the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough
from tests.sinks.builders import UID, beside, opened, results, table
from tests.sinks.test_interleavings import Stepped, stepwise

from tandem_core.model.spec import FilesSink, ResultFormat, SinkSpec
from tandem_runtime.sinks import files, slot_positions
from tandem_runtime.sinks.base import SinkFailed, SlotPosition
from tandem_runtime.sinks.factory import count_rows


def rows(*values: int, pair: str = "pair-0") -> list[tuple[str, Any]]:
    return [(pair, table(*values))]


def names(directory: Path) -> list[str]:
    return list(results(directory))


def test_slots_sharing_epoch_write_one_file_each(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path, slot=1)
    assert first.deliver(1, rows(1), shared=True) == 1
    assert names(tmp_path) == ["000000000001-0.json"]
    assert (first.position(), second.position()) == (1, 0)
    assert second.deliver(1, rows(2, 3, pair="pair-1"), shared=True) == 1
    assert names(tmp_path) == ["000000000001-0.json", "000000000001-1.json"]
    assert (first.rows_out, second.rows_out) == (1, 2)


def test_unshared_epoch_keeps_plain_file_name(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.deliver(1, rows(1))
    assert names(tmp_path) == ["000000000001.json"]
    (position,) = beside(tmp_path)
    assert position.startswith("position-000000000001-1-")
    sink.deliver(2, rows(2), shared=True)
    sink.deliver(3, rows(3))
    assert names(tmp_path) == ["000000000001.json", "000000000002-0.json", "000000000003.json"]


def test_slot_begins_once_right_before_its_first_epoch(tmp_path: Path) -> None:
    sink = opened(tmp_path, slot=2, first=8)
    assert sink.position() == 7
    sink.deliver(8, rows(1), shared=True)
    # One that slept before it opened the slot does not open it again, wherever it would.
    assert opened(tmp_path, slot=2, first=8).position() == 8
    assert opened(tmp_path, slot=2, first=3).position() == 8


def test_each_slot_clears_only_its_own_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path).deliver(1, rows(1), shared=True)
    second = opened(tmp_path, slot=1)
    with monkeypatch.context() as patch:
        patch.setattr(files, "move_position", _fails)
        with pytest.raises(SinkFailed):
            second.deliver(1, rows(9), shared=True)
    # Slot 0 is further, and clears away nothing of slot 1.
    opened(tmp_path)
    (draft,) = (tmp_path / "_tandem" / "slot-1").glob("draft-*")
    assert second.deliver(1, rows(2), shared=True) == 1
    assert draft.exists()
    opened(tmp_path, slot=1)
    assert not draft.exists()


def _fails(*_: object) -> None:
    raise OSError


def test_unpublished_slot_result_is_published_on_next_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(tmp_path, slot=1)
    with monkeypatch.context() as patch:
        patch.setattr(sink, "_publish", _fails)
        with pytest.raises(SinkFailed):
            sink.deliver(1, rows(1), shared=True)
    assert names(tmp_path) == []
    assert opened(tmp_path, slot=1).position() == 1
    assert names(tmp_path) == ["000000000001-1.json"]


# --- the end of a slot ----------------------------------------------------------------------


def test_sealed_slot_accepts_nothing_more(tmp_path: Path) -> None:
    zombie = opened(tmp_path, slot=1)
    zombie.deliver(1, rows(1), shared=True)
    sealer = opened(tmp_path)
    assert sealer.seal(1, 1, 2) == SlotPosition(position=1, sealed=False)
    zombie.deliver(2, rows(2), shared=True)
    assert sealer.seal(1, 1, 2) == SlotPosition(position=2, sealed=True)
    assert sealer.seal(1, 1, 2) == SlotPosition(position=2, sealed=True)
    before = results(tmp_path)
    assert zombie.deliver(3, rows(3), shared=True) == 2
    assert zombie.sealed
    again = opened(tmp_path, slot=1)
    assert (again.deliver(3, rows(3), shared=True), again.sealed) == (2, True)
    assert results(tmp_path) == before
    assert [path.name[:6] for path in (tmp_path / "_tandem" / "slot-1").iterdir()] == ["sealed"]


def test_delivery_paused_across_seal_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = opened(tmp_path, slot=1)
    move = slot_positions.move_position

    def seal_first(*arguments: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(files, "move_position", move)
            assert opened(tmp_path).seal(1, 1, 0).sealed
        move(*arguments)

    monkeypatch.setattr(files, "move_position", seal_first)
    assert zombie.deliver(1, rows(1), shared=True) == 0
    assert zombie.sealed
    assert names(tmp_path) == []
    assert not list((tmp_path / "_tandem" / "slot-1").glob("draft-*"))


def test_slot_sealed_before_it_began_cannot_be_opened(tmp_path: Path) -> None:
    assert opened(tmp_path).seal(3, 5, 4) == SlotPosition(position=4, sealed=True)
    late = opened(tmp_path, slot=3, first=5)
    assert (late.deliver(5, rows(1), shared=True), late.sealed) == (4, True)


def test_rows_of_ended_slots_are_counted_with_slot_0(tmp_path: Path) -> None:
    target = SinkSpec(name="s", target=FilesSink(path=str(tmp_path), format=ResultFormat.JSON))
    sink = opened(tmp_path)
    sink.deliver(1, rows(1), shared=True)
    opened(tmp_path, slot=1).deliver(1, rows(2, 3), shared=True)
    opened(tmp_path, slot=2).deliver(1, rows(4, 5, 6), shared=True)
    sink.seal(1, 1, 1)
    sink.position()
    assert sink.rows_out == 3
    assert count_rows(target, UID, tmp_path) == 6


# --- interleavings ---------------------------------------------------------------------------

LAST = 2


class OfSlot(Stepped):
    """One of two merges of a slot: delivers the epochs through `last`."""

    def __init__(self, number: int, directory: Path, slot: int, last: int) -> None:
        super().__init__(number, directory)
        self.slot = slot
        self.last = last

    def work(self) -> None:
        sink = opened(self.directory, slot=self.slot)
        while not sink.sealed and (position := sink.position()) < self.last:
            told = [(f"pair-{self.slot}", table(self.slot, self.number))]
            sink.deliver(position + 1, told, shared=True)


class Sealer(Stepped):
    """Seals slot 1 at `LAST`, unless it is further already."""

    standing = SlotPosition(position=0, sealed=False)

    def work(self) -> None:
        sink = opened(self.directory)
        while not self.standing.sealed and self.standing.position <= LAST:
            self.standing = sink.seal(1, 1, LAST)


@thorough(60)
@given(
    schedule=st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1, 1, 2, 5, 20])), max_size=80),
    order=st.permutations(range(5)).flatmap(
        lambda numbers: st.tuples(
            *(st.tuples(st.just(n), st.sampled_from([1, 3, 9, 40])) for n in numbers)
        )
    ),
    dies=st.none() | st.integers(0, 3),
    zombie=st.booleans(),
)
def test_each_slot_delivers_once_and_seal_excludes_zombie(
    tmp_path_factory: pytest.TempPathFactory,
    schedule: list[tuple[int, int]],
    order: tuple[tuple[int, int], ...],
    dies: int | None,
    zombie: bool,
) -> None:
    """Slot 0 goes on to epoch 3. One of slot 1 may not know that it ends before that."""
    directory = tmp_path_factory.mktemp("out")
    sealer = Sealer(4, directory)
    workers: Sequence[Stepped] = [
        OfSlot(0, directory, 0, LAST + 1),
        OfSlot(1, directory, 0, LAST + 1),
        OfSlot(2, directory, 1, LAST),
        OfSlot(3, directory, 1, LAST + zombie),
        sealer,
    ]
    with stepwise(pytest.MonkeyPatch()):
        for worker in workers:
            worker.begin()
        for number, steps in schedule:
            for _ in range(steps):
                workers[number].step()
        if dies is not None:
            workers[dies].kill()
        while not all(worker.finished for worker in workers):
            for number, steps in order:
                for _ in range(steps):
                    workers[number].step()
        for worker in workers:
            worker.join()
    visible = {name: {row["n"] for row in found} for name, found in results(directory).items()}
    late = f"{LAST + 1:012}-1.json" in visible
    assert sealer.standing.sealed != late
    assert len([name for name in visible if name.endswith("-0.json")]) == LAST + 1
    assert len([name for name in visible if name.endswith("-1.json")]) == LAST + late
    for name, values in visible.items():
        slot = int(name.partition("-")[2].partition(".")[0])
        assert len(values - {slot}) <= 1
        assert values <= ({0, 1} if slot == 0 else {1, 2, 3})
    left = [path.name for path in (directory / "_tandem" / "slot-1").iterdir()]
    assert len([name for name in left if not name.startswith("draft")]) == 1


def test_furthest_slot_is_reported_without_opening_one(tmp_path: Path) -> None:
    assert opened(tmp_path).furthest() == 0
    opened(tmp_path, slot=2, first=8)
    assert opened(tmp_path).furthest() == 7
    assert sorted(path.name for path in (tmp_path / "_tandem").glob("slot-*")) == ["slot-2"]
