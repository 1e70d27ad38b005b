"""Source partitions that the intent places on splits."""

from collections.abc import Mapping

import pytest
from tests.protocol.builders import (
    A1,
    B1,
    C1,
    header,
    intent,
    make_reports,
    split_report,
    state_of,
)

from tandem_runtime.protocol.lead.lane_rules import assign_partitions, partitions_to_release
from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.log.entries import LaneClosing, LaneOpened, PartitionOwned
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import LaneId, Mark

LANES = {"a": A1, "b": B1, "c": C1}
RELEASED = Mark(1, 1, PartitionState.RELEASED)


def lanes(*names: str, **owners: str) -> LogState:
    """Open lanes of these splits, with the owners of partitions."""
    opened = state_of(*(LaneOpened(LANES[name], None) for name in names))
    for partition, name in owners.items():
        opened.apply(PartitionOwned(partition, LANES[name]))
    return opened


def told(*splits: str, leaving: str = "", **placement: str) -> PeerReports:
    """Reports of splits `split-a` and so on, and where the intent places partitions."""
    reports = {
        split: split_report(leaving=split == leaving).replace(name=f"split-{split}")
        for split in splits
    }
    wanted = tuple((partition, f"split-{split}") for partition, split in placement.items())
    known = intent(partitions=("p", "q", "r", "s")).replace(placement=wanted)
    return make_reports(splits=reports, known=known)


def assigned(log_state: LogState, reports: PeerReports) -> Mapping[str, LaneId]:
    entries = list(assign_partitions(log_state, reports, 0))
    return {e.partition: e.lane for e in entries if isinstance(e, PartitionOwned)}


def settled(log_state: LogState, reports: PeerReports, most: int = 20) -> dict[str, str]:
    """The owners once nothing is assigned or released any more, within so many moves."""
    for epoch in range(1, most):
        for entry in assign_partitions(log_state, reports, 0):
            log_state.apply(entry)
        release = partitions_to_release(log_state, reports)
        if not release:
            return {partition: lane.split for partition, lane in log_state.owners.items()}
        ((split, partition),) = release.items()
        assert log_state.owners[partition].split == split
        log_state.apply(header(epoch, marks={partition: RELEASED}))
    raise AssertionError("partitions keep moving")


def test_free_partitions_go_where_they_are_placed_and_others_to_lanes_with_fewest() -> None:
    found = assigned(lanes("a", "b"), told("a", "b", p="b", q="b", r="b"))
    assert found == {"p": B1, "q": B1, "r": B1, "s": A1}


@pytest.mark.parametrize(
    "reports", [told("a", "b", p="c"), told("a", "b", "c", leaving="c", p="c")]
)
def test_placement_on_absent_or_leaving_split_is_ignored_until_it_is_there(
    reports: PeerReports,
) -> None:
    log_state = lanes("a", "b", "c", p="a", q="b")
    assert assigned(log_state, reports) == {"r": A1, "s": B1}
    assert partitions_to_release(log_state, reports) == {}
    assert partitions_to_release(log_state, told("a", "b", "c", p="c")) == {"a": "p"}


def test_placement_on_closing_lane_is_ignored() -> None:
    log_state = lanes("a", "b")
    log_state.apply(LaneClosing(B1))
    assert set(assigned(log_state, told("a", "b", p="b")).values()) == {A1}


def test_partition_elsewhere_is_released_though_loads_are_equal() -> None:
    log_state = lanes("a", "b", p="a", q="b")
    assert partitions_to_release(log_state, told("a", "b", p="b")) == {"a": "p"}
    log_state.apply(header(1, marks={"p": RELEASED}))
    assert partitions_to_release(log_state, told("a", "b", p="b", q="a")) == {}  # [9]
    assert assigned(log_state, told("a", "b", p="b"))["p"] == B1


def test_ended_partition_is_not_moved() -> None:
    log_state = lanes("a", "b", p="a", q="b")
    log_state.apply(header(1, marks={"p": Mark(1, 1, PartitionState.ENDED)}))
    assert partitions_to_release(log_state, told("a", "b", p="b")) == {}


def test_placed_partitions_are_not_balanced_away() -> None:
    log_state = lanes("a", "b", p="a", q="a", r="a")
    assert partitions_to_release(log_state, told("a", "b", p="a", q="a", r="a")) == {}
    assert partitions_to_release(log_state, told("a", "b", p="a", r="a")) == {"a": "q"}


def test_split_of_an_older_version_without_a_name_takes_its_part() -> None:
    reports = make_reports(
        splits={"a": split_report(), "b": split_report()},
        known=intent(partitions=("p", "q")).replace(placement=(("p", "split-b"),)),
    )
    assert assigned(lanes("a", "b"), reports) == {"p": A1, "q": B1}


@pytest.mark.parametrize(
    "placement",
    [
        {},
        {"p": "c"},
        {"p": "b", "q": "b", "r": "b", "s": "b"},
        {"p": "a", "q": "c", "r": "a"},
        {"p": "c", "q": "a", "r": "nowhere", "s": "c"},
    ],
)
@pytest.mark.parametrize("owner", ["a", "b"])
def test_moves_come_to_an_end_with_every_partition_in_its_place(
    placement: dict[str, str], owner: str
) -> None:
    log_state = lanes("a", "b", "c", **dict.fromkeys(("p", "q", "r", "s"), owner))
    found = settled(log_state, told("a", "b", "c", **placement))
    for partition, split in placement.items():
        assert split == "nowhere" or found[partition] == split
    free = [split for partition, split in found.items() if partition not in placement]
    assert all(free.count(split) <= 2 for split in "abc")
