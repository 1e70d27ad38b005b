"""The way back from a change: before the cut at once, after it by another change."""

from __future__ import annotations

import pytest
from tests.policy.change.data_plane import DataPlane, first

from tandem.policy.change.wanted import Wanted
from tandem_core.model.states import ChangeStage, EventReason

PAIRS = ("pair-0", "pair-1")


def wanted(pairs: int = 3, **more: object) -> Wanted:
    return Wanted(pairs=pairs, splits=2, slots=1, **more)  # type: ignore[arg-type]


def cutting() -> DataPlane:
    """Two pairs become three: pair-0 is split; the lead has not cut the target yet."""
    it = DataPlane(*first(2))
    while it.intent.target == 1:
        it.turn(wanted())
        names = [name for each in it.intent.generations for name in each.names()]
        it.synced = dict.fromkeys(names, 2)
    assert stage(it) is ChangeStage.CUTTING
    return it


def retiring() -> DataPlane:
    """The same, and the lead has cut it."""
    it = cutting()
    it.cut = it.intent.target
    it.turn(wanted())
    assert stage(it) is ChangeStage.RETIRING
    return it


def stage(it: DataPlane) -> ChangeStage | None:
    return it.intent.change.stage if it.intent.change is not None else None


def reason(it: DataPlane) -> str:
    return it.intent.change.reason if it.intent.change is not None else ""


def replaced(it: DataPlane) -> set[str]:
    return set(PAIRS) - set(it.pairs)


# --- before the cut -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "failures"),
    [
        (wanted(), {"pair-2": "it crashed"}),
        (wanted(2), {}),
        (wanted(timeout_ms=500), {}),
    ],
)
def test_target_that_is_not_cut_is_given_up_for_the_pairs_before_it(
    asked: Wanted, failures: dict[str, str]
) -> None:
    it = cutting()
    before = it.intent.generations[0]
    it.failures = failures
    step = it.turn(asked)
    assert step is not None
    assert [record.event for record in step.records] == [EventReason.GENERATION_ABANDONED]
    assert [each.number for each in it.intent.generations] == [1, 2, 3]
    assert it.intent.generations[-1] == before.replace(number=3)
    assert (it.intent.target, it.intent.next_generation) == (3, 4)
    assert stage(it) is ChangeStage.ABANDONED
    assert it.intent.history[0].abandoned == reason(it)
    assert (it.intent.history[0].generation, it.intent.history[0].pairs_after) == (2, 2)
    # The routing function of the former generation never left the intent.
    assert not step.functions
    it.until_idle(asked)
    assert it.intent.generations == (before.replace(number=3),)
    assert it.retired == {"pair-2", "pair-3"}
    assert it.pairs == PAIRS


def test_change_that_was_given_up_is_not_tried_again_for_its_goal() -> None:
    it = cutting()
    it.failures = {"pair-2": "it crashed"}
    it.until_idle(wanted(manifest=0))
    assert list(it.pairs) == list(PAIRS)
    it.failures = {}
    it.until_idle(wanted(manifest=1))
    assert len(it.pairs) == 3
    assert not {"pair-2", "pair-3"} & set(it.pairs)
    assert it.intent.generations[0].number == 4


def test_new_pairs_stay_until_the_lead_has_cut_the_way_back() -> None:
    it = cutting()
    it.turn(wanted(2))
    assert "2 pairs" in reason(it)
    for cut in (1, 2):
        it.cut = cut
        for _ in range(5):
            it.turn(wanted(2))
        assert [each.number for each in it.intent.generations] == [1, 2, 3]
    it.cut = 3
    for _ in range(5):
        it.turn(wanted(2))
    assert [each.number for each in it.intent.generations] == [1, 2, 3]
    it.retired |= {"pair-2", "pair-3"}
    step = it.turn(wanted(2))
    assert [each.number for each in it.intent.generations] == [3]
    assert step is not None
    (told,) = step.records
    assert (told.event, told.subject) == (EventReason.GENERATION_RETIRED, "generation 3")
    assert "replaced" not in told.detail
    assert "the pairs from before the change that was given up" in told.detail
    assert all(pair in told.detail for pair in ("pair-2", "pair-3"))


def test_way_back_to_retired_pairs_becomes_the_way_forward() -> None:
    """The lead cut and retired before the operator gave the change up, unknown to it."""
    it = cutting()
    it.turn(wanted(2))
    made = it.intent.generations[1]
    it.cut = 2
    it.retired |= set(PAIRS) - set(made.names())
    it.turn(wanted(2))
    assert it.intent.target == 4
    assert it.pairs == made.names()
    assert it.intent.generations[-1].function == made.function
    assert stage(it) is ChangeStage.RETIRING
    it.until_idle(wanted(2))
    assert len(it.pairs) == 2
    assert not it.retired & set(it.pairs)
    assert [(past.pairs_before, past.pairs_after) for past in it.intent.history] == [(3, 2), (2, 3)]


def test_target_is_not_given_up_without_a_lead() -> None:
    it = cutting()
    it.has_lead = False
    it.failures = {"pair-2": "it crashed"}
    assert it.turn(wanted(2, timeout_ms=1)) is None


def test_cut_tells_how_many_replicas_it_waits_for() -> None:
    it = cutting()
    it.synced["pair-2"] = 1
    it.turn(wanted())
    assert reason(it) == "3 of 4 replicas synced"
    it.synced["pair-2"] = 2
    it.turn(wanted())
    assert reason(it) == ""
    assert it.intent.target == 2


# --- after the cut ------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [True, False])
def test_change_asked_for_after_the_cut_begins_once_the_old_pairs_are_retired(fails: bool) -> None:
    it = retiring()
    it.failures = {"pair-2": "it crashed"} if fails else {}
    for _ in range(5):
        it.turn(wanted(2, manifest=1))
    assert [each.number for each in it.intent.generations] == [1, 2]
    assert "asked for meanwhile" in reason(it)
    it.retired |= replaced(it)
    it.failures = {}
    stages = []
    while it.intent.target == 2:
        it.turn(wanted(2, manifest=1))
        it.work()
        stages.append(stage(it))
    assert stages[:2] == [None, ChangeStage.PLANNED]
    it.until_idle(wanted(2, manifest=1))
    assert len(it.pairs) == 2
    assert [(past.pairs_before, past.pairs_after) for past in it.intent.history] == [(3, 2), (2, 3)]


def test_change_taken_back_and_asked_for_again_after_the_cut_is_carried_out_once() -> None:
    it = retiring()
    it.turn(wanted(2, manifest=1))
    it.turn(wanted(3, manifest=2))
    assert reason(it) == ""
    it.until_idle(wanted(3, manifest=2))
    assert [past.pairs_after for past in it.intent.history] == [3]


def test_retirement_names_the_pair_that_it_waits_for() -> None:
    it = retiring()
    version = it.intent.version
    it.turn(wanted())
    assert it.intent.version == version
    it.synced["pair-3"] = 0
    for _ in range(3):
        it.turn(wanted())
    assert "pair-3" in reason(it)
    assert it.intent.version == version + 1
    it.synced["pair-3"] = 2
    it.turn(wanted())
    assert reason(it) == ""


def test_report_of_an_earlier_lead_changes_nothing_after_the_cut() -> None:
    it = retiring()
    it.cut = 1
    it.failures = {"pair-2": "it crashed"}
    assert it.turn(wanted(2, timeout_ms=1)) is None
