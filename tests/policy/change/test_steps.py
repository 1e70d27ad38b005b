"""Changes of pairs, step by step, by operators that remember nothing but the intent."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.change.data_plane import DataPlane, first

from tandem.policy.change.generations import building_generation, new_pairs
from tandem.policy.change.roster import pairs_to_run, slots_to_run
from tandem.policy.change.wanted import Wanted
from tandem_core.contract.intent import ChangeRequest, KeyMove
from tandem_core.contract.reports import LeadReport, PairReport
from tandem_core.model.states import ChangeStage, EventReason

KEY = 0x1234_5678_9ABC_DEF0


def wanted(pairs: int, **more: object) -> Wanted:
    return Wanted(pairs=pairs, splits=2, slots=1, **more)  # type: ignore[arg-type]


def plane(pairs: int) -> DataPlane:
    return DataPlane(*first(pairs))


def test_change_passes_through_its_stages_in_order() -> None:
    it = plane(2)
    stages = [
        step.intent.change.stage if step.intent.change else None
        for step in it.until_idle(wanted(3))
    ]
    seen = [stage for stage, _ in itertools.groupby(stages)]
    assert seen == [
        ChangeStage.PLANNED,
        ChangeStage.BUILDING,
        ChangeStage.SYNCED,
        ChangeStage.CUTTING,
        ChangeStage.RETIRING,
        None,
    ]
    assert len(it.pairs) == 3
    assert [past.pairs_after for past in it.intent.history] == [3]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 4), (4, 1), (1, 8), (8, 1)])
def test_change_ends_with_the_wanted_number_of_pairs(before: int, after: int) -> None:
    it = plane(before)
    it.until_idle(wanted(after))
    assert len(it.pairs) == after
    assert it.intent.change is None
    assert [(past.pairs_before, past.pairs_after) for past in it.intent.history] == [
        (before, after)
    ]
    assert len(it.intent.generations) == 1


def test_step_builds_at_most_the_surge_at_a_time() -> None:
    it = plane(2)
    built = []
    for step in it.until_idle(wanted(8, max_surge=3)):
        building = building_generation(step.intent)
        built.append(len(new_pairs(building)) if building else 0)
    assert max(built) <= 3


def test_pair_with_the_same_share_is_carried_over() -> None:
    it = plane(3)
    before = {pair.name: pair for pair in it.intent.generations[0].pairs}
    it.until_idle(wanted(4))
    after = {pair.name: pair for pair in it.intent.generations[0].pairs}
    carried = before.keys() & after.keys()
    assert len(carried) == 2
    assert all(after[name] == before[name] for name in carried)


def test_target_is_set_only_when_every_new_replica_is_synced() -> None:
    it = plane(1)
    for _ in range(5):
        it.turn(wanted(2))
    assert it.intent.target == 1
    it.synced |= {"pair-1": 2, "pair-2": 1}
    for _ in range(5):
        it.turn(wanted(2))
    assert it.intent.target == 1
    assert it.intent.change is not None
    assert it.intent.change.reason == "3 of 4 replicas synced"
    it.synced["pair-2"] = 2
    for _ in range(5):
        it.turn(wanted(2))
    assert it.intent.target == 2


def test_old_generation_stays_until_the_lead_has_retired_its_pairs() -> None:
    it = plane(1)
    for _ in range(3):
        it.turn(wanted(2))
    it.synced |= {"pair-1": 2, "pair-2": 2}
    for _ in range(8):
        it.turn(wanted(2))
    assert [each.number for each in it.intent.generations] == [1, 2]
    it.cut = 2
    for _ in range(8):
        it.turn(wanted(2))
    assert [each.number for each in it.intent.generations] == [1, 2]
    it.retired.add("pair-0")
    it.has_lead = False
    for _ in range(3):
        it.turn(wanted(2))
    assert [each.number for each in it.intent.generations] == [1, 2]
    it.has_lead = True
    it.turn(wanted(2))
    assert [each.number for each in it.intent.generations] == [2]


def test_failed_build_is_abandoned_and_not_tried_again_for_its_goal() -> None:
    it = plane(2)
    it.failures = {"pair-2": "no node accepts its pods"}
    steps = [it.turn(wanted(3, manifest=4)) for _ in range(10)]
    assert it.pairs == ("pair-0", "pair-1")
    assert it.intent.change is not None
    assert it.intent.change.stage is ChangeStage.ABANDONED
    assert "no node" in it.intent.change.reason
    told = [(record.event, record.subject) for step in steps if step for record in step.records]
    assert told == [
        (EventReason.GENERATION_PLANNED, "generation 2"),
        (EventReason.GENERATION_ABANDONED, "generation 2"),
    ]
    assert it.intent.history[0].abandoned == it.intent.change.reason


def test_corrected_manifest_starts_another_change_under_new_names() -> None:
    it = plane(2)
    it.failures = {"pair-2": "it crashed", "pair-3": "it crashed"}
    for _ in range(6):
        it.turn(wanted(3, manifest=4))
    it.synced = {"pair-0": 2, "pair-1": 2}
    it.until_idle(wanted(3, manifest=5))
    assert len(it.pairs) == 3
    assert not {"pair-2", "pair-3"} & set(it.pairs)
    assert it.intent.generations[0].number == 3


def test_build_that_takes_too_long_is_abandoned_with_what_held_it_up() -> None:
    it = plane(2)
    for turn in range(40):
        it.obstacles = {"pair-2": f"no node has room, asked {turn} times"}
        it.turn(wanted(3, timeout_ms=20_000))
    assert it.intent.change is not None
    assert it.intent.change.stage is ChangeStage.ABANDONED
    assert "no node has room" in it.intent.change.reason
    assert "20 s (spec.change.timeout)" in it.intent.change.reason
    # The limit is one of the stage, not of the change.
    assert "Building" in it.intent.change.reason
    # Texts that change all the time are no reason to write the intent again.
    assert it.intent.version < 10


def test_change_waits_for_recovery() -> None:
    it = plane(2)
    it.synced["pair-1"] = 1
    for _ in range(6):
        it.turn(wanted(3))
    assert len(it.intent.generations) == 1
    assert it.intent.change is not None
    assert it.intent.change.stage is ChangeStage.PLANNED
    assert "pair-1" in it.intent.change.reason
    it.synced["pair-1"] = 2
    it.turn(wanted(3))
    assert len(it.intent.generations) == 2


def test_goal_taken_back_during_a_build_is_given_up() -> None:
    it = plane(2)
    for _ in range(3):
        it.turn(wanted(3))
    assert building_generation(it.intent) is not None
    it.until_idle(wanted(2))
    assert it.pairs == ("pair-0", "pair-1")
    assert building_generation(it.intent) is None


def test_hot_key_moves_to_another_pair_and_back() -> None:
    it = plane(3)
    keys = np.array([KEY], dtype=np.uint64)

    def owner() -> str:
        generation = it.intent.generations[0]
        function = it.functions[generation.function]
        return function.pairs[int(function.owner_of(keys)[0])]

    home = owner()
    other = next(pair for pair in it.pairs if pair != home)
    carried = next(pair for pair in it.pairs if pair not in {home, other})
    it.until_idle(wanted(3, request=ChangeRequest("a", (KeyMove(KEY, other),))))
    assert len(it.pairs) == 3
    assert carried in it.pairs
    assert it.functions[it.intent.generations[0].function].hot_count == 1
    moved = owner()
    it.until_idle(wanted(3, request=ChangeRequest("b", (KeyMove(KEY, ""),))))
    assert owner() != moved
    assert it.functions[it.intent.generations[0].function].hot_count == 0
    assert [past.moves for past in it.intent.history] == [
        (KeyMove(KEY, ""),),
        (KeyMove(KEY, other),),
    ]


def test_keys_that_were_moved_are_told_of_once_although_the_request_stays() -> None:
    it = plane(2)
    moves = tuple(KeyMove(key, "pair-0") for key in range(4))
    request = ChangeRequest("a", moves)
    it.until_idle(wanted(2, request=request))
    it.until_idle(wanted(3, request=request, manifest=2))
    assert [past.moves for past in it.intent.history] == [(), moves]


def test_move_to_a_pair_that_does_not_exist_is_abandoned() -> None:
    it = plane(2)
    request = ChangeRequest("a", (KeyMove(KEY, "pair-9"),))
    steps = it.until_idle(wanted(2, request=request))
    assert [record.subject for step in steps for record in step.records] == ["the change of pairs"]
    assert it.intent.change is not None
    assert it.intent.change.stage is ChangeStage.ABANDONED
    assert it.pairs == ("pair-0", "pair-1")


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 12), st.booleans()), max_size=4),
)
def test_names_and_numbers_are_never_used_twice_and_no_key_has_two_owners(
    pairs: int, wishes: list[tuple[int, int, bool]]
) -> None:
    it = plane(pairs)
    shares: dict[str, str] = {}
    numbers: dict[int, str] = {}
    for manifest, (count, turns, fails) in enumerate([*wishes, (2, 100, False)]):
        for _ in range(turns):
            it.turn(wanted(count, manifest=manifest))
            for generation in it.intent.generations:
                assert numbers.setdefault(generation.number, generation.function) == (
                    generation.function
                )
                assert it.functions[generation.function].pairs == tuple(sorted(generation.names()))
                for pair in generation.pairs:
                    assert shares.setdefault(pair.name, pair.share) == pair.share
            building = building_generation(it.intent)
            if fails and building is not None:
                it.failures = dict.fromkeys(new_pairs(building), "it crashed")
            else:
                it.work()
        it.failures = {}
    it.until_idle(wanted(2, manifest=99))
    assert len(it.pairs) == 2


def test_routing_functions_of_all_generations_are_kept_and_no_others() -> None:
    it = plane(1)
    before = it.intent.functions_named()
    for _ in range(3):
        it.turn(wanted(2))
    assert it.intent.functions_named() == it.functions.keys()
    it.until_idle(wanted(2))
    assert not it.intent.functions_named() & before


def test_pair_that_the_lead_lists_keeps_its_workload() -> None:
    intent, _ = first(1)
    lead = LeadReport(term=1, pairs=(PairReport("pair-0"), PairReport("pair-7")))
    assert pairs_to_run(intent, lead, ("pair-7", "pair-0", "pair-8")) == ("pair-7", "pair-0")
    assert pairs_to_run(intent, None, ("pair-8", "pair-0")) == ("pair-8", "pair-0")
    assert pairs_to_run(intent, lead, ()) == ("pair-0",)


@pytest.mark.parametrize(
    ("slots", "opened", "ending", "next_slot", "before", "runs"),
    [
        (1, (), (), 0, (), (0,)),
        (3, (0,), (), 1, (0,), (0, 1)),
        (3, (0, 1), (), 2, (0, 1), (0, 1, 2)),
        (3, (0, 1, 2), (), 3, (0, 1, 2), (0, 1, 2)),
        (1, (0, 1, 2), (), 3, (0, 1, 2), (0, 1, 2)),
        (1, (0,), (1, 2), 3, (0, 1, 2), (0, 1, 2)),
        (1, (0,), (), 3, (0, 1, 2), (0,)),
        (2, (0,), (), 3, (0,), (0, 3)),
        (2, (0,), (), 3, (0, 3), (0, 3)),
        (1, (0,), (), 3, (0, 3), (0,)),
    ],
)
def test_slot_runs_until_it_is_sealed_and_new_ones_have_new_numbers(
    slots: int,
    opened: tuple[int, ...],
    ending: tuple[int, ...],
    next_slot: int,
    before: tuple[int, ...],
    runs: tuple[int, ...],
) -> None:
    intent, _ = first(1, slots=slots)
    lead = LeadReport(term=1, open_slots=opened, next_slot=next_slot, ending_slots=ending)
    assert slots_to_run(intent, lead, before) == runs
