"""What is left of a change that was given up: what is shown of it, and what is not tried again."""

import pytest
from tests.policy.change.data_plane import DataPlane, first

from tandem.policy.change.wanted import Wanted
from tandem_core.contract.intent import ChangeRequest, KeyMove
from tandem_core.model.states import ChangeStage

KEY = 0x1234_5678_9ABC_DEF0


def wanted(pairs: int, **more: object) -> Wanted:
    return Wanted(pairs=pairs, splits=2, slots=1, timeout_ms=10_000, **more)  # type: ignore[arg-type]


def plane_that_waits() -> DataPlane:
    """Two pairs, of which one never gets its second replica."""
    it = DataPlane(*first(2))
    it.synced["pair-1"] = 1
    return it


def until_given_up(it: DataPlane, what: Wanted) -> None:
    for _ in range(20):
        it.turn(what)
    assert it.intent.change is not None
    assert it.intent.change.stage is ChangeStage.ABANDONED


@pytest.mark.parametrize("pair", ["pair-0", "pair-1"])
def test_move_given_up_before_its_build_is_not_carried_out_by_a_later_manifest(pair: str) -> None:
    it = plane_that_waits()
    asked = ChangeRequest("a", (KeyMove(KEY, pair),))
    until_given_up(it, wanted(2, request=asked, manifest=1))
    it.synced["pair-1"] = 2
    it.until_idle(wanted(2, request=asked, manifest=2))
    assert [each.number for each in it.intent.generations] == [1]
    it.until_idle(wanted(3, request=asked, manifest=3))
    assert len(it.pairs) == 3
    assert all(function.hot_count == 0 for function in it.functions.values())


def test_move_asked_for_again_is_carried_out() -> None:
    it = plane_that_waits()
    moves = tuple(KeyMove(key, "pair-0") for key in range(4))
    until_given_up(it, wanted(2, request=ChangeRequest("a", moves)))
    it.synced["pair-1"] = 2
    it.until_idle(wanted(2, request=ChangeRequest("b", moves)))
    assert it.intent.change is None
    assert it.intent.history[0].moves == moves


def test_given_up_change_is_shown_until_something_else_is_asked_for() -> None:
    it = plane_that_waits()
    until_given_up(it, wanted(3, manifest=1))
    for _ in range(5):
        assert it.turn(wanted(3, manifest=1)) is None
    it.until_idle(wanted(2, manifest=2))
    assert it.intent.change is None
    assert [bool(past.abandoned) for past in it.intent.history] == [True]


def test_given_up_move_is_shown_while_the_manifest_is_the_same() -> None:
    it = plane_that_waits()
    asked = ChangeRequest("a", (KeyMove(KEY, "pair-0"),))
    until_given_up(it, wanted(2, request=asked))
    assert it.turn(wanted(2, request=asked)) is None
    assert it.intent.change is not None
