"""Which split keeps the second copy."""

import pytest
from tests.protocol.builders import MEMBERS

from tandem_runtime.protocol.split.buddy_choice import Neighbours
from tandem_runtime.protocol.types import Member


def around(name: str, *members: Member) -> Neighbours:
    me = next(m for m in members if m.name == name)
    found = Neighbours(me, set())
    found.members = members
    return found


def turns(neighbours: Neighbours, count: int = 4) -> list[str | None]:
    return [neighbours.next_for_lane() for _ in range(count)]


@pytest.mark.parametrize(
    ("me", "order"),
    [("a", ["b", "c", "b", "c"]), ("b", ["c", "a", "c", "a"]), ("c", ["a", "b", "a", "b"])],
)
def test_next_name_comes_first(me: str, order: list[str]) -> None:  # [8]
    assert turns(around(me, *reversed(MEMBERS))) == order


def test_lanes_and_header_log_rotate_candidates_independently() -> None:
    found = around("a", *MEMBERS)
    assert found.next_for_lane() == "b"
    assert [found.next_for_log(), found.next_for_log()] == ["b", "c"]
    assert found.next_for_lane() == "c"


def test_candidates_for_the_header_log_follow_the_order_of_names() -> None:
    found = around("a", *MEMBERS, Member("d", "d", "n4"))
    assert [found.next_for_log() for _ in range(3)] == ["b", "c", "d"]


def test_another_node_is_preferred() -> None:  # [8]
    same = Member("b", "b", "n1")
    assert turns(around("a", MEMBERS[0], same, MEMBERS[2]), 2) == ["c", "c"]


def test_own_node_is_accepted_if_it_is_the_only_one() -> None:
    same = Member("b", "b", "n1")
    assert turns(around("a", MEMBERS[0], same), 2) == ["b", "b"]


def test_gone_or_leaving_splits_are_no_candidates() -> None:
    found = around("a", *MEMBERS)
    found.gone = {"b"}
    assert turns(found, 2) == ["c", "c"]
    found.leaving = {"c"}
    assert turns(found, 2) == [None, None]


def test_older_volume_of_own_name_is_no_candidate() -> None:
    found = around("a", MEMBERS[0], Member("a", "a.old", "n9"))
    assert turns(found, 2) == [None, None]
