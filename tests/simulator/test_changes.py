"""Changes in the simulator: its labels, what users ask for, and the account of intents."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tandem.policy.change.planning import next_layout
from tandem.policy.change.wanted import Wanted
from tandem_core.contract.intent import ChangeRequest, Generation, Intent, KeyMove, PastChange
from tandem_simulator.campaign.campaign import run_campaign
from tandem_simulator.engine.configuration import configure, stream
from tandem_simulator.engine.demands import (
    ChangePlan,
    Demand,
    DemandKind,
    SimulatedUser,
    draw_plan,
)
from tandem_simulator.externals.layouts import LabelCodec
from tandem_simulator.externals.shares import MOST_KEYS, generation_of, keys_of, label_of
from tandem_simulator.oracle.changes import ChangeAccount
from tandem_simulator.oracle.violation import BrokenError

BUCKETS = 8
FIRST = generation_of(1, (("pair-0", frozenset(range(4))), ("pair-1", frozenset(range(4, 8)))))


def intent(*generations: Generation, version: int = 1, target: int = 1, **more: object) -> Intent:
    made = Intent(version, generations, target, (), next_pair=2, next_generation=2)
    return made.replace(**more)


def wanted(pairs: int, key: int | None = None, to: str = "") -> Wanted:
    request = ChangeRequest("move", (KeyMove(key, to),)) if key is not None else None
    return Wanted(pairs=pairs, splits=2, slots=1, request=request)


def successor(codec: LabelCodec, now: Intent, asked: Wanted) -> Intent:
    """The intent whose target is the next generation."""
    planned = next_layout(codec, now, asked, asked.request)
    before = next(each for each in now.generations if each.number == now.target)
    generation, _ = codec.generation_of(now.next_generation, planned, before)
    return now.replace(
        version=now.version + 1,
        generations=(generation,),
        target=generation.number,
        next_pair=planned.after.next_pair,
        next_generation=generation.number + 1,
    )


def owners(generation: Generation, key: int) -> list[str]:
    return [pair.name for pair in generation.pairs if key in keys_of(pair.label, BUCKETS)]


# --- labels ------------------------------------------------------------------------------------


def test_label_lists_buckets_and_hot_keys() -> None:
    label = label_of({0, 3}, won={12}, lost={8})
    assert label == "0.3.+12.-8"
    assert keys_of(label, BUCKETS) == {0, 3, 11, 12}


@pytest.mark.parametrize("seed", range(30))
def test_every_key_has_one_owner_through_all_changes(seed: int) -> None:
    rng = stream(seed, 0, "labels")
    codec = LabelCodec(BUCKETS, rng)
    now = intent(FIRST)
    for _ in range(6):
        names = now.generations[0].names()
        key, others = rng.randrange(MOST_KEYS), rng.randint(1, 5)
        elsewhere = [name for name in names if name not in owners(now.generations[0], key)]
        if elsewhere and rng.random() < 0.5:
            asked = wanted(len(names), key, rng.choice(elsewhere))
        elif others != len(names):
            asked = wanted(others)
        else:
            continue
        before, now = now.generations[0], successor(codec, now, asked)
        carried = {pair.name: pair for pair in before.pairs}
        for pair in now.generations[0].pairs:
            assert pair.label == carried.get(pair.name, pair).label
        assert all(len(owners(now.generations[0], key)) == 1 for key in range(MOST_KEYS))


def test_moved_key_has_its_former_owner_as_parent() -> None:
    codec = LabelCodec(BUCKETS, stream(1, 0, "labels"))
    moved = successor(codec, intent(FIRST), wanted(2, key=9, to="pair-1")).generations[0]
    (owner,) = owners(moved, 9)
    assert moved.parents_of(owner) == ("pair-0", "pair-1")


# --- the account of intents --------------------------------------------------------------------


@contextmanager
def detected(kind: str) -> Iterator[None]:
    with pytest.raises(BrokenError) as caught:
        yield
    assert caught.value.violation.kind == kind


@pytest.fixture
def account() -> ChangeAccount:
    filled = ChangeAccount(BUCKETS)
    filled.written(intent(FIRST), ())
    return filled


def split(first: str, second: str, number: int = 2) -> Generation:
    made = generation_of(
        number,
        ((first, frozenset({0, 1})), (second, frozenset({2, 3})), ("pair-1", frozenset({4, 5}))),
        {first: ("pair-0",), second: ("pair-0",)},
    )
    return made.replace(pairs=(*made.pairs[:2], FIRST.pairs[1]))


SECOND = split("pair-2", "pair-3")
UNDONE = PastChange(2, 2, 2, 0, 1, abandoned="another change was asked for")


def test_change_and_its_end_are_accepted(account: ChangeAccount) -> None:
    account.written(intent(FIRST, SECOND, version=2), {"pair-0", "pair-1"})
    account.written(intent(FIRST, SECOND, version=3, target=2), {"pair-0", "pair-1"})
    account.written(intent(SECOND, version=4, target=2), {"pair-1", "pair-2", "pair-3"})
    account.removed("pair-0", {"pair-1", "pair-2", "pair-3"})


def test_used_pair_name_is_detected(account: ChangeAccount) -> None:
    account.written(intent(FIRST, SECOND, version=2), ())
    account.written(intent(FIRST, version=3, history=(UNDONE,)), ())
    with detected("name-twice"):
        account.written(intent(FIRST, split("pair-4", "pair-3", 3), version=4), ())


def test_used_generation_number_is_detected(account: ChangeAccount) -> None:
    account.written(intent(FIRST, SECOND, version=2), ())
    account.written(intent(FIRST, version=3, history=(UNDONE,)), ())
    with detected("name-twice"):
        account.written(intent(FIRST, split("pair-4", "pair-5", 2), version=4), ())


def test_other_keys_of_carried_pair_are_detected(account: ChangeAccount) -> None:
    other = SECOND.replace(pairs=(*SECOND.pairs[:2], SECOND.pairs[2].replace(label="4.5.6")))
    with detected("name-twice"):
        account.written(intent(FIRST, other, version=2), ())


def test_key_with_two_owners_is_detected(account: ChangeAccount) -> None:
    both = SECOND.pairs[0].replace(label="0.1.2", share="0.1.2")
    with detected("keys-divided"):
        account.written(
            intent(FIRST, SECOND.replace(pairs=(both, *SECOND.pairs[1:])), version=2), ()
        )


def test_generation_forgotten_before_its_pairs_are_retired_is_detected(
    account: ChangeAccount,
) -> None:
    account.written(intent(FIRST, SECOND, version=2, target=2), ())
    with detected("forgotten-early"):
        account.written(intent(SECOND, version=3, target=2), {"pair-0", "pair-1"})


def test_abandoned_generation_without_reason_is_detected(account: ChangeAccount) -> None:
    account.written(intent(FIRST, SECOND, version=2), ())
    with detected("abandoned-without-reason"):
        account.written(intent(FIRST, version=3), ())


@pytest.mark.parametrize(("version", "target"), [(2, 2), (3, 1)])
def test_intent_that_goes_back_is_detected(
    account: ChangeAccount, version: int, target: int
) -> None:
    account.written(intent(FIRST, SECOND, version=2, target=2), ())
    with detected("intent-fell"):
        account.written(intent(FIRST, SECOND, version=version, target=target), ())


def test_removed_workload_of_listed_pair_is_detected(account: ChangeAccount) -> None:
    account.written(intent(FIRST, SECOND, version=2, target=2), ())
    account.removed("pair-9", {"pair-9"})
    with detected("removed-early"):
        account.removed("pair-0", {"pair-0", "pair-1"})


# --- schedules ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reached() -> Counter[str]:
    return run_campaign(2, range(120)).coverage


def test_schedules_reach_every_stage_of_changes(reached: Counter[str]) -> None:
    rows = ("Planned", "Building", "Synced", "Cutting", "Retiring", "done", "Abandoned")
    assert {row for row in rows if not reached[f"change: {row}"]} == set()
    assert reached["operator killed"] > 0
    assert reached["change: next step"] > 0


def test_most_planned_changes_are_cut_and_some_schedules_finish_several(
    reached: Counter[str],
) -> None:
    assert reached["change: Cutting"] > reached["change: Planned"] * 0.4
    assert reached["change: done"] > reached["change: Planned"] * 0.2
    assert reached["change: done again"] >= 5
    assert reached["change: key moved"] >= 3


def test_spares_of_another_share_are_refused(reached: Counter[str]) -> None:
    assert reached["fault: foreign spare"] > 0
    assert reached["spares of another share refused"] > 0


@pytest.mark.parametrize("number", range(40))
def test_copies_take_two_to_thirty_seconds(number: int) -> None:
    plan = draw_plan(stream(1, number, "changes"), 2, 8)
    assert 2000 <= plan.copying[0] <= plan.copying[1] <= 30_000
    assert plan.until >= max((demand.at for demand in plan.demands), default=0)


def test_key_that_was_not_moved_is_not_moved_back() -> None:
    demand = Demand(0, DemandKind.KEY, amount=3, choice=0)
    drawn = configure(1, 0)
    quiet = drawn._replace(
        changing=ChangePlan((demand,)), resizes=(), scalings=(), buckets=BUCKETS, keys=8
    )
    user = SimulatedUser(quiet)
    user.follow(1, intent(FIRST))
    request = user.wanted.request
    assert request is not None
    assert [move.pair for move in request.moves] == ["pair-1"]
